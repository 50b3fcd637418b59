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
