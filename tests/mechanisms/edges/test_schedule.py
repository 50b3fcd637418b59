"""How a search is planned before any record is read."""

import pytest

from privfield.mechanisms.edges import schedule


@pytest.mark.parametrize("most", [10, 95, 10**9])
@pytest.mark.parametrize("shape", [(), (3,), (1, 2, 5), (2, 3, 4, 4, 1, 3, 2, 7), (2,) * 12])
def test_pairs_are_counted_without_making_them(shape, most, monkeypatch):
    monkeypatch.setattr(schedule, "MOST_CELLS", most)
    found, _ = schedule.number_of_candidates(shape)
    assert found == len(schedule.candidate_pairs.__wrapped__(shape))


def test_small_tables_leave_room_for_more_pairs():
    assert schedule.number_of_candidates((2,) * 1000) == (499_500, 524_288)
    assert schedule.number_of_candidates((10,) * 1000) == (499_500, 131_072)


@pytest.mark.parametrize(("columns", "most"), [(3, 3), (9, 36), (12, 60), (30, 150)])
def test_a_search_may_go_on_to_five_edges_for_each_of_a_tree(columns, most):
    shape = (3,) * columns
    pairs = schedule.candidate_pairs(shape)
    assert schedule.make_schedule(shape, pairs, pure=False).most == most
