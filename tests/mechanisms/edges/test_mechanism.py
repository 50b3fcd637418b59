"""Selecting edges: what is found, what is released, and what is refused."""

from itertools import product

import numpy as np
import pytest

import privfield as pf
from privfield.files import pack, unpack
from privfield.mechanisms.edges.mechanism import select_edges
from privfield.mechanisms.edges.selection import Selection

SCHEMA = pf.Schema({"a": 3, "b": 2, "c": 3, "d": 2, "e": 2})
EDGES = (("a", "b"), ("b", "c"), ("c", "d"))
BUDGETS = [pf.ZCDP(1), pf.ApproxDP(3, 1e-6), pf.PureDP(8)]


def expected_rows(n=50_000):
    """Rows whose tables are those of a chain a-b-c-d beside e: no sampling error at all."""
    tables = [np.log([[6, 1], [1, 4], [2, 2]]), np.log([[5, 1, 2], [1, 5, 2]])]
    tables += [np.log([[4, 1], [2, 2], [1, 5]]), np.log([3, 1])]
    truth = pf.MarkovRandomField(SCHEMA, [*EDGES, ("e",)], tables)
    states = np.array(list(product(*map(range, SCHEMA.shape))))
    counts = np.rint(n * truth.marginal(SCHEMA.names).ravel()).astype(int)
    return np.repeat(states, counts, axis=0)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("budget", BUDGETS)
def test_a_strong_structure_is_found(budget, adjacency):
    """Fails with probability below 1e-6.

    Each edge's score is over 11,000 above that of any false pair at the time, and scales of choices
    are below 57: e^-190. Every false pair's excess is 250 below 0 and thresholds are 694: 944 are
    13 deviations of a Gaussian test, or 16 scales of a Laplace test, which adds up to 2e-7.
    """
    found = select_edges(expected_rows(), SCHEMA, budget, adjacency=adjacency)
    assert found.edges == EDGES
    assert found.measurements.cost <= budget
    assert list(found.graph().nodes) == list(SCHEMA.names)
    assert set(found.graph().edges) == set(EDGES)
    assert all(choice.round >= 1 for choice in found.choices)
    assert len(found.choices) <= found.most <= found.candidates == 10


def test_without_noise_the_tables_are_the_counts():
    rows = expected_rows()
    found = select_edges(rows, SCHEMA, pf.NON_PRIVATE)
    assert found.edges == EDGES and "NOT PRIVATE" in found.stamp
    counted = np.zeros((3, 2))
    np.add.at(counted, (rows[:, 0], rows[:, 1]), 1)
    np.testing.assert_array_equal(found.measurements.table(("a", "b")), counted)


@pytest.mark.parametrize("budget", [pf.ZCDP(0.5), pf.PureDP(4)])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_released_tables_scatter_as_stated(budget, adjacency):
    """False-alarm rate below 1e-6: the mean of over 400 squares within 0.5 to 2 of its expectation.

    Five and more standard deviations below, nine above, for Laplace noise too. With noise of half
    the stated scale the mean would be 0.25.
    """
    rows = expected_rows(5_000)
    squares = []
    for _ in range(16):
        found = select_edges(rows, SCHEMA, budget, adjacency=adjacency).measurements
        for clique, table, law, centred in zip(
            found.cliques, found.tables, found.laws, found.centred, strict=True
        ):
            away = tuple(v for v in range(5) if SCHEMA.names[v] not in clique)
            true = np.zeros(SCHEMA.shape)
            np.add.at(true, tuple(rows.T), 1)
            true = true.sum(axis=away)
            if centred:
                for axis in range(true.ndim):
                    true = true - true.mean(axis=axis, keepdims=True)
            squares += (((table - true) / law.deviation) ** 2).ravel().tolist()
    assert len(squares) > 400
    assert 0.5 < np.mean(squares) < 2


@pytest.mark.parametrize("budget", [pf.ZCDP(0.01), pf.PureDP(0.5), pf.NON_PRIVATE])
def test_a_saved_selection_is_the_same_again(budget, tmp_path):
    found = select_edges(expected_rows(2_000), SCHEMA, budget, insecure_seed=3)
    found.save(tmp_path / "selection")
    again = Selection.load(tmp_path / "selection")
    assert again.choices == found.choices and again.edges == found.edges
    assert again.to_bytes() == found.to_bytes()
    assert "NOT PRIVATE" in repr(again)
    with pytest.raises(pf.InputError, match=r"damaged|not a"):
        Selection.from_bytes(found.to_bytes()[:-200])


@pytest.mark.parametrize(
    ("change", "fine"),
    [
        ({}, True),
        ({"choices": [[0, 1, 1, 5, 2.5, True]]}, True),
        ({"choices": [[1, 0, 1, 5.0, 2.5, True]]}, False),
        ({"choices": [[0, 5, 1, 5.0, 2.5, True]]}, False),
        ({"choices": [[-1, 1, 1, 5.0, 2.5, True]]}, False),
        ({"choices": [[0, 1, 1, 5.0, 2.5]]}, False),
        ({"choices": [[0, 1, 1, "5", 2.5, True]]}, False),
        ({"most": None}, False),
        ({"triples": [[0, 1, 3, 5.0, 2.5, True]]}, True),
        ({"triples": [[0, 1, 1, 5.0, 2.5, True]]}, False),
        ({"triples": [[0, 1, 5, 5.0, 2.5, True]]}, False),
    ],
)
def test_files_that_exist_are_read(change, fine):
    """A choice is stored as first, second, round, excess, threshold, fits."""
    found = select_edges(expected_rows(500), SCHEMA, pf.ZCDP(1))
    header, arrays = unpack("edge-selection", found.to_bytes(), "x")
    assert header.pop("triples") is not None  # older files have none
    assert set(header) == {"kind", "format", "version", "candidates", "most", "choices"}
    assert all(len(choice) == 6 for choice in header["choices"])
    kind = header.pop("kind")
    del header["version"]  # older files have none
    data = pack(kind, {**header, **change}, arrays)
    if fine:
        assert Selection.from_bytes(data).measurements.scales == found.measurements.scales
        return
    with pytest.raises(pf.InputError, match="damaged"):
        Selection.from_bytes(data)


def test_progress_tells_released_numbers_only():
    """Under add-remove not even how many rows there are; choices are released anyway."""
    news = []
    found = select_edges(
        expected_rows(2_000), SCHEMA, pf.ZCDP(0.1), adjacency="add-remove", progress=news.append
    )
    assert [n.stage for n in news[:2]] == ["counting", "selecting edges"]
    choices = len(found.choices) + len(found.triples)
    assert [n.done for n in news] == [None, None, *range(1, choices + 1)]


def test_an_unfinished_job_goes_on_with_what_it_has_shown(tmp_path):
    """Progress counts choices with a ledger too: none of them is drawn again."""
    ledger = pf.Ledger(tmp_path / "l.ledger", pf.ZCDP(1), adjacency="add-remove")
    rows, news, draws = expected_rows(2_000), [], []
    given = {"budget": pf.ZCDP(0.1), "adjacency": "add-remove", "ledger": ledger, "job": "j"}

    def stop(each):
        news.append(each.done)
        if each.done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        select_edges(rows, SCHEMA, progress=stop, **given)
    assert news == [None, None, 1, 2]
    first = [ledger.journal("j").read(number) for number in range(7)]
    assert first[5] is not None and first[6] is None  # total, tables, two choices, two tests

    def watch(each):
        news.append(each.done)
        draws.append([ledger.journal("j").read(number) for number in range(5)])

    found = select_edges(rows, SCHEMA, progress=watch, **given)
    choices = len(found.choices) + len(found.triples)
    assert news[4:] == [None, None, *range(1, choices + 1)]
    assert all(kept == first[:5] for kept in draws)
    assert len(ledger.charges()) == 1 and ledger.charges()[0].cost == pf.ZCDP(0.1)
    with pytest.raises(pf.InputError):
        select_edges(rows, SCHEMA, **{**given, "budget": pf.ZCDP(0.2)})


@pytest.mark.parametrize("rows", [0, 1, 2])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("budget", [pf.ZCDP(0.01), pf.PureDP(0.1)])
def test_next_to_no_rows_are_no_reason_to_fail(rows, adjacency, budget):
    found = select_edges(np.zeros((rows, 5), int), SCHEMA, budget, adjacency=adjacency)
    assert np.isfinite(np.concatenate([t.ravel() for t in found.measurements.tables])).all()


@pytest.mark.parametrize("budget", [pf.ZCDP(1), pf.PureDP(5)])
def test_constant_and_duplicate_columns(budget):
    """Columns that are equal get an edge (margin of thousands); a constant one shows nothing.

    Fails with probability below 1e-6: 5,000 is more than 50 standard deviations of a test. (A pair
    without an edge may pass all the same, by luck: the test asks for 1.5 of them.)
    """
    schema = pf.Schema({"x": 3, "same": 3, "constant": 4, "one": 1})
    x = np.tile([0, 1, 2], 10_000)
    rows = np.column_stack([x, x, np.full_like(x, 2), np.zeros_like(x)])
    found = select_edges(rows, schema, budget)
    assert found.edges[0] == ("x", "same")
    assert all(abs(choice.excess) < 5_000 for choice in found.choices[1:])
    assert found.candidates == 3  # a variable with one level has no edges
    table = pf.estimate(found.measurements).marginal(["x", "same"])
    np.testing.assert_allclose(table, np.eye(3) / 3, atol=0.02)


def test_inference_stays_within_the_memory_given():
    schema = pf.Schema({f"v{i}": 6 for i in range(6)})
    rng = np.random.default_rng(0)
    hidden = rng.integers(0, 6, 20_000)  # all pairs depend on each other
    rows = np.where(rng.random((20_000, 6)) < 0.7, hidden[:, None], rng.integers(0, 6, (20_000, 6)))
    few = select_edges(rows, schema, pf.ZCDP(1), max_bytes=20_000)
    many = select_edges(rows, schema, pf.ZCDP(1))
    assert 5 <= len(few.edges) < len(many.edges)
    pf.estimate(few.measurements, max_bytes=20_000)  # would refuse to use more


def test_only_asked_candidates_are_looked_at():
    asked = [("b", "a"), ("d", "e")]
    found = select_edges(expected_rows(), SCHEMA, pf.ZCDP(1), candidates=asked)
    assert found.candidates == 2
    assert {choice.pair for choice in found.choices} <= {(0, 1), (3, 4)}


def test_people_with_several_rows():
    """One person's rows move the scores and tables by their summed weight."""
    import pandas as pd

    rows = pd.DataFrame(expected_rows(20_000), columns=list(SCHEMA.names)).sample(
        frac=1, random_state=0
    )
    rows["who"] = np.arange(len(rows)) // 3
    for limit in (2, None):
        schema = pf.Schema(
            dict(zip(SCHEMA.names, SCHEMA.shape, strict=True)), unit=pf.Person("who", rows=limit)
        )
        for adjacency in ("replace-one", "add-remove"):
            found = select_edges(rows, schema, pf.ZCDP(2), adjacency=adjacency)
            assert found.measurements.total is None  # private
            assert max(found.measurements.scales) < 5  # all of the budget is spent, in any unit
            assert set(EDGES[:2]) <= set(found.edges)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": None}, "schema must be a pf.Schema"),
        ({"schema": pf.Schema({"a": 3, "b": 1})}, "no pair of variables"),
        ({"schema": pf.Schema({"a": 3})}, "no pair of variables"),
        ({"budget": 1}, "budget must be"),
        ({"adjacency": "flip-outcome"}, "adjacency must be"),
        ({"noise": "uniform"}, "noise must be"),
        ({"budget": pf.PureDP(1), "noise": "gaussian"}, "satisfies no pure"),
        ({"budget": pf.PureDP(1e-100)}, "must lie between"),  # nothing would be left for tables
        ({"max_bytes": 10}, "max_bytes"),
        ({"max_bytes": "much"}, "max_bytes must be a number"),
        ({"max_bytes": float("nan")}, "max_bytes must be a number"),
        ({"candidates": [("a", "b", "c")]}, "pairs of variables"),
        ({"candidates": "ab"}, "candidates must be"),
        ({"candidates": []}, "no pair of variables"),
        ({"insecure_seed": -1}, "insecure_seed"),
        ({"progress": 3}, "progress must be"),
        ({"job": "j", "ledger": 3}, "ledger must be"),
    ],
)
def test_bad_input_is_refused(change, message):
    given = {"data": np.zeros((4, 5), int), "schema": SCHEMA, "budget": pf.ZCDP(1), **change}
    with pytest.raises(pf.InputError, match=message):
        select_edges(**given)
