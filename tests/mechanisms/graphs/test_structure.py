"""Stable structure through its release: exact decisions, charged first, nothing else leaves."""

import warnings
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import privfield as pf
from privfield.mechanisms.graphs.release import StructureRelease, named_edges
from privfield.privacy import laws
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.coins import Coins
from privfield.privacy.stability import majority_stability, mode_stability, release_probability
from releases import measure_structure

BUDGET = pf.ApproxDP(1, 1e-6)
RNG = np.random.default_rng(12)
ADJACENCIES = ["replace-one", "add-remove"]
EDGES = [(0, 1), (0, 2), (1, 2)]
WEIGHTS = np.zeros((6, 6))
for _i in range(6):
    WEIGHTS[_i, (_i + 1) % 6] = WEIGHTS[(_i + 1) % 6, _i] = 0.6 * (-1) ** _i
MODEL = pf.IsingModel(WEIGHTS)
ROWS = MODEL.sample(30_000, RNG, method="independent").astype(np.int8)
CYCLE = {(f"x{i}", f"x{j}") for i, j in combinations(range(6), 2) if WEIGHTS[i, j]}


def read_edges(rows):
    """A learner for tests: a row of three signs says which of the three edges are there."""
    return [edge for edge, sign in zip(EDGES, rows[0], strict=True) if sign > 0]


def watched(monkeypatch, released=True):
    """Have every release decided, and keep what it was decided upon."""
    seen = []

    def decide(stable, epsilon, delta, *, entropy=None):
        seen.append((stable, epsilon, delta))
        return released

    monkeypatch.setattr(laws, "may_release", decide)
    return seen


def one_row_each(monkeypatch):
    """Coins that put every row into a block of its own."""
    monkeypatch.setattr(
        Coins, "of_records", lambda self, words, counts: np.arange(counts.sum(), dtype=np.uint64)
    )


# -- the mechanism as a whole ----------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["edge-majority", "mode"])
@pytest.mark.parametrize("blocks", [2, 3])
def test_all_votes_through_the_release_function(rule, blocks, monkeypatch):
    """One row in each block is its vote: every vector of votes, value and stability as by hand."""
    one_row_each(monkeypatch)
    seen = watched(monkeypatch)
    ballots = list(product([-1, 1], repeat=3))
    for votes in product(ballots, repeat=blocks):
        seen.clear()
        data = np.array(votes, np.int8)
        found = measure_structure(data, BUDGET, rule=rule, blocks=blocks, learner=read_edges)
        ((stable, epsilon, delta),) = seen
        assert (epsilon, delta) == (BUDGET.exact_epsilon, BUDGET.exact_delta)
        edges = {tuple(int(name[1:]) for name in edge) for edge in found.edges}
        if rule == "edge-majority":
            yes = (data > 0).sum(axis=0).tolist()
            assert edges == {e for e, v in zip(EDGES, yes, strict=True) if 2 * v > blocks}
            assert stable == min(majority_stability(v, blocks) for v in yes)
        else:
            counts = {ballot: votes.count(ballot) for ballot in votes}
            assert stable == mode_stability(counts.values())
            ballot = tuple(1 if e in edges else -1 for e in EDGES)
            assert counts[ballot] == max(counts.values())


@pytest.mark.parametrize("votes", [[1, 1, 1], [1, 1, -1]])
def test_released_as_often_as_stability_allows(votes, monkeypatch):
    """1,200 releases against π_s at (1, 0.2); two-sided binomial test, false alarm 10⁻⁷."""
    one_row_each(monkeypatch)
    budget = pf.ApproxDP(1, 0.2)
    data = np.array([[vote] * 3 for vote in votes], np.int8)
    stable = majority_stability(votes.count(1), 3)
    expected = float(release_probability(stable, budget.exact_epsilon, budget.exact_delta))
    count = sum(
        measure_structure(data, budget, blocks=3, learner=read_edges).edges is not None
        for _ in range(1200)
    )
    assert binom.isf(1 - 5e-8, 1200, expected) <= count <= binom.isf(5e-8, 1200, expected)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_known_graph_is_released(adjacency):
    """435 rows in each of 69 blocks: an edge is wrong in a block with probability far below 0.005
    (its estimate is 0.3 away from the threshold, with a standard deviation below 0.07). Fewer than
    8 wrong votes leave stability ≥ 27, where the release is certain: 15·P(Bin(69, 0.005) ≥ 8) <
    10⁻⁶."""
    found = measure_structure(ROWS, BUDGET, min_weight=0.6, adjacency=adjacency)
    assert set(found.edges) == CYCLE and found.stamp is None
    assert 15 * binom.sf(7, found.blocks, 0.005) < 1e-6
    assert found.cost == BUDGET and found.adjacency == adjacency


def test_three_levels_are_released():
    """As above: 500 rows in a block, where an edge is wrong with probability far below 0.005."""
    schema = pf.Schema({"a": 3, "b": 3, "c": 3, "d": 2})
    table = 0.8 * (1.5 * np.eye(3) - 0.5)
    model = pf.MarkovRandomField(schema, [("a", "b"), ("b", "c")], [table, -table])
    rows = model.sample(60_000, RNG, method="independent")
    found = measure_structure(rows, BUDGET, min_weight=0.8, schema=schema)
    assert found.edges == (("a", "b"), ("b", "c"))


def test_products_of_three_are_released():
    rows = pf.PolynomialMRF({(0, 1, 2): 0.7, (2, 3): 0.7}, size=5).sample(
        30_000, RNG, method="independent"
    )
    found = measure_structure(rows, BUDGET, min_weight=0.6, order=3)
    assert found.edges == (("x2", "x3"), ("x0", "x1", "x2"))
    assert set(found.graph().edges) == {("x0", "x1"), ("x0", "x2"), ("x1", "x2"), ("x2", "x3")}


def test_people_frames_and_files(tmp_path):
    names = list("abcdef")
    schema = pf.Schema({n: ["no", "yes"] for n in names}, unit=pf.Person("id"))
    frame = pd.DataFrame(np.where(ROWS > 0, "yes", "no"), columns=names)
    frame["id"] = np.arange(len(frame))
    frame.to_parquet(tmp_path / "rows.parquet")
    expected = {tuple(names[int(x[1:])] for x in edge) for edge in CYCLE}
    for adjacency in ADJACENCIES:
        found = measure_structure(
            tmp_path / "rows.parquet", BUDGET, schema=schema, min_weight=0.6, adjacency=adjacency
        )
        assert set(found.edges) == expected


def test_without_privacy_all_rows_at_once():
    found = measure_structure(ROWS[:3000], pf.NON_PRIVATE, min_weight=0.6)
    assert set(found.edges) == CYCLE and found.blocks is None
    assert found.stamp.startswith("NOT PRIVATE") and "NOT PRIVATE" in repr(found)
    with pytest.raises(ZeroDivisionError):  # a study may see what goes wrong
        measure_structure(ROWS, pf.NON_PRIVATE, learner=lambda rows: 1 / 0)


def test_a_seed_is_visible_and_repeats():
    data = np.array([[1, 1, 1], [1, 1, -1], [1, 1, 1]], np.int8)
    options = {"blocks": 3, "learner": read_edges, "adjacency": "add-remove", "insecure_seed": 5}
    first, second = (measure_structure(data, pf.ApproxDP(1, 0.3), **options) for _ in range(2))
    assert first == second and "NOT PRIVATE" in first.stamp


# -- nothing else leaves ---------------------------------------------------------------------------


def failing(rows):
    if (rows[:, 0] > 0).all():
        raise RuntimeError(f"private: {rows[0]}")
    warnings.warn(f"private: {rows[0]}", stacklevel=1)
    return "no edges at all" if (rows[:, 1] > 0).all() else [(0, 1)]


ODD = [
    ROWS[:500],
    np.ones((500, 6), np.int8),
    -np.ones((500, 6), np.int8),
    np.full((500, 6), np.nan),
    np.tile(ROWS[:500, :1], (1, 6)),
]


@pytest.mark.parametrize("learner", [None, failing])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("rule", ["edge-majority", "mode"])
def test_without_a_release_all_tables_look_the_same(
    rule, adjacency, learner, monkeypatch, capfd, tmp_path
):
    """Results, files, ledgers' texts and news of progress are equal; nothing is printed."""
    watched(monkeypatch, released=False)
    seen = []
    for number, data in enumerate(ODD):
        news, ledger = [], pf.Ledger(tmp_path / f"{number}.ledger", BUDGET, adjacency)
        found = measure_structure(
            data,
            BUDGET,
            rule=rule,
            adjacency=adjacency,
            learner=learner,
            ledger=ledger,
            progress=news.append,
        )
        (charge,) = ledger.charges()
        seen.append((found.to_bytes(), repr(found), news, charge.what, charge.cost))
    assert all(one == seen[0] for one in seen)
    assert capfd.readouterr() == ("", "")
    assert [n.done for n in seen[0][2]] == [None, *range(1, found.blocks + 1)]


@pytest.mark.parametrize("rows", [0, 40, 499])
def test_under_add_remove_the_number_of_rows_shows_nowhere(rows, monkeypatch):
    watched(monkeypatch, released=False)
    seen = []
    for data in (ROWS[:rows], ROWS[:500]):
        news = []
        found = measure_structure(data, BUDGET, adjacency="add-remove", progress=news.append)
        seen.append((found.to_bytes(), news))
    assert seen[0] == seen[1]


def test_a_released_graph_carries_nothing_but_edges(monkeypatch):
    watched(monkeypatch)
    header, arrays = measure_structure(ROWS[:500], BUDGET)._parts()
    assert not arrays and set(header) == {
        *("names", "edges", "method", "rule", "cost", "adjacency", "blocks", "stamp")
    }


# -- charged first ---------------------------------------------------------------------------------


def test_other_blocks_or_another_limit_are_another_job(tmp_path):
    ledger = pf.Ledger(tmp_path / "l", pf.ApproxDP(1, 1e-6))
    options = {"learner": read_edges, "ledger": ledger, "job": "j"}
    measure_structure(ROWS[:50, :3], BUDGET, blocks=5, **options)
    for other in ({"blocks": 7}, {"blocks": 5, "learner_seconds": 1}):
        with pytest.raises(pf.InputError, match="another request"):
            measure_structure(ROWS[:50, :3], BUDGET, **options, **other)


def test_interrupted_work_says_that_it_is_charged(tmp_path):
    ledger = pf.Ledger(tmp_path / "l", pf.ApproxDP(1, 1e-6))

    def stop(news):
        if news.done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        measure_structure(ROWS[:500], BUDGET, ledger=ledger, job="j", progress=stop)
    assert "job='j'" in caught.value.__notes__[0]
    assert measure_structure(ROWS[:500], BUDGET, ledger=ledger, job="j").blocks


# -- bad input -------------------------------------------------------------------------------------

PERSON = pf.Schema({"a": 2, "b": 2}, unit=pf.Person("id", rows=3))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"budget": pf.PureDP(1)}, "δ > 0.*cliques='learn'"),
        ({"budget": pf.ZCDP(1)}, "δ > 0.*cliques='learn'"),
        ({"budget": pf.ApproxDP(1, 0)}, "δ > 0.*cliques='learn'"),
        ({"budget": pf.ApproxDP(21, 1e-6)}, r"\(0, 20\]"),
        ({"budget": None}, "budget must be"),
        ({"min_weight": 0}, "min_weight"),
        ({"min_weight": float("nan")}, "min_weight"),
        ({"rule": "vote"}, "'edge-majority', 'mode'"),
        ({"order": 1}, "order must be"),
        ({"order": 7}, "order must be"),
        ({"order": 2.0}, "order must be"),
        ({"order": 3, "schema": pf.Schema(dict.fromkeys("abcdef", 3))}, "two levels"),
        ({"blocks": 0}, "blocks must be"),
        ({"blocks": True}, "blocks must be"),
        ({"blocks": 501}, "500 rows, too few for 501 blocks"),
        ({"budget": pf.ApproxDP(0.05, 1e-9)}, "too few"),
        ({"adjacency": "flip-outcome"}, "adjacency"),
        ({"adjacency": "none"}, "adjacency"),
        ({"learner": 7}, "learner must be"),
        ({"learner_seconds": 0}, "learner_seconds"),
        ({"schema": PERSON}, "rows=1"),
        ({"schema": pf.Schema(dict.fromkeys("abcdef", 3)), "names": list("abcdef")}, "names"),
        ({"schema": {"a": 2}}, "pf.Schema"),
        ({"names": ["a"]}, "names"),
        ({"insecure_seed": -1}, "insecure_seed"),
        ({"progress": 7}, "progress"),
        ({"job": "j"}, "ledger"),
        ({"budget": pf.NON_PRIVATE, "ledger": "l"}, "ledger"),
    ],
)
def test_bad_input_is_refused_before_anything_is_charged(options, text):
    options = {"budget": BUDGET, **options}
    with pytest.raises(pf.InputError, match=text):
        measure_structure(ROWS[:500], **options)


@pytest.mark.parametrize("levels", [2, 3])
@pytest.mark.parametrize("rows", [2, None])
def test_people_with_more_rows_are_refused_with_what_to_do(rows, levels):
    schema = pf.Schema({"a": levels, "b": levels}, unit=pf.Person("id", rows=rows))
    with pytest.raises(pf.InputError, match=r"pf.Person\(.*, rows=1\)"):
        measure_structure("people.csv", BUDGET, schema=schema)


def test_too_many_variables_for_an_order():
    wide = np.ones((200, 400), np.int8)
    with pytest.raises(pf.InputError, match="too many possible edges"):
        measure_structure(wide, BUDGET, order=4)


def test_columns_without_information_and_one_variable():
    """Constant, duplicate and one-level columns, or a single one: never an error."""
    assert measure_structure(ROWS[:500, :1], BUDGET).edges == ()
    for data in ODD:
        measure_structure(data, BUDGET)
        measure_structure(data, BUDGET, order=3, blocks=20)
    schema = pf.Schema({"one": ["only"], "a": 2, "b": 3})
    measure_structure(np.zeros((300, 3), int), BUDGET, schema=schema)


def test_least_weight_above_all_weights_gives_an_empty_graph():
    """No vote for any edge: stability is (m − 1)/2 = 34, where the release is certain."""
    assert measure_structure(ROWS[:7000], BUDGET, min_weight=8).edges == ()


# -- the value -------------------------------------------------------------------------------------


def test_saved_and_loaded(tmp_path):
    for edges in (None, (), (("a", "c"), ("a", "b", "c"))):
        value = StructureRelease(
            ("a", "b", "c"), edges, "regression", "mode", BUDGET, Adjacency.REPLACE_ONE, 5
        )
        value.save(tmp_path / "s.pf")
        assert StructureRelease.load(tmp_path / "s.pf") == value
        graph = value.graph()
        assert (graph is None) == (edges is None)
        assert graph is None or list(graph.nodes) == ["a", "b", "c"]


@pytest.mark.parametrize(
    "edges", [(("a",),), (("b", "a"),), (("a", "z"),), (("a", "a"),), (("a", "b"), ("a", "b"))]
)
def test_impossible_edges_are_refused(edges):
    with pytest.raises(pf.InputError, match="edges"):
        StructureRelease(("a", "b"), edges, "m", "r", BUDGET, Adjacency.REPLACE_ONE)


def test_edges_are_named_in_column_order():
    assert named_edges("abcd", [(2, 1), (0, 1, 2), (1, 2), (3, 0)]) == (
        *(("a", "d"), ("b", "c")),
        ("a", "b", "c"),
    )
