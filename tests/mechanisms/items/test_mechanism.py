"""Clipped scores and their sensitivity, by enumeration; the mechanism as a whole: test_contract."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import privfield as pf
from privfield.data.batch import CodedBatch
from privfield.mechanisms.items import mechanism as items
from privfield.mechanisms.items.mechanism import ItemScores, product_sensitivity
from privfield.mechanisms.items.scoring import (
    GRID,
    clipped,
    public_scores,
    standard_scores,
    sum_products,
    whole_scores,
)
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.terms import Terms

SCALE = pf.Schema({name: pf.Ordered(range(1, 6)) for name in "abc"})


def moved(s, t, weight):
    """What telling two rows apart is worth: squares have twice the variance of products."""
    total = Fraction(0)
    for i, (a, b) in enumerate(zip(s, t, strict=True)):
        total += weight**2 * (a - b) ** 2 + Fraction((a * a - b * b) ** 2, 2)
        for c, d in zip(s[i + 1 :], t[i + 1 :], strict=True):
            total += (a * c - b * d) ** 2
    return total


@pytest.mark.parametrize(("size", "radius"), [(2, 5), (3, 3), (4, 2)])
def test_sensitivity_by_enumeration_of_all_rows_of_a_ball(size, radius, monkeypatch):
    rows = [
        row
        for row in product(range(-radius, radius + 1), repeat=size)
        if sum(x * x for x in row) <= radius**2
    ]
    for weight in (0, 1, 2):
        monkeypatch.setattr(items, "SINGLES", weight)
        bound = product_sensitivity(Adjacency.REPLACE_ONE, radius**2)
        worst = max(moved(s, t, weight) for s in rows for t in rows)
        assert worst <= bound
        assert worst >= Fraction(9, 10) * bound  # nearly reached: the bound is no guess
        alone = max(moved(s, (0,) * size, weight) for s in rows)
        added = product_sensitivity(Adjacency.ADD_REMOVE, radius**2)
        assert alone <= added <= bound and added - alone < 1
        assert product_sensitivity(Adjacency.REPLACE_ONE, radius**2, 3) == 9 * bound


def with_gaps(size, each, scaled=True):
    """All answered patterns, with all rows whose sum of squares is at most `each` per answer."""
    found = []
    for answered in product((0, 1), repeat=size):
        most = each * (sum(answered) if scaled else size)
        reach = int(most**0.5)
        for row in product(*(range(-reach, reach + 1) if o else (0,) for o in answered)):
            if sum(x * x for x in row) <= most:
                found.append((row, answered))
    return found


def pair_totals(o, q):
    pairs = [(i, j) for i in range(len(o)) for j in range(i)]
    return sum((o[i] * o[j] - q[i] * q[j]) ** 2 for i, j in pairs)


@pytest.mark.parametrize(("size", "each"), [(2, 8), (3, 2)])
def test_pair_totals_cost_nothing_if_the_clip_goes_with_the_number_of_answers(
    size, each, monkeypatch
):
    monkeypatch.setattr(items, "SINGLES", 1)

    def worst(rows, weight, others):
        return max(
            moved(s, t, 1) + weight**2 * pair_totals(o, q) for s, o in rows for t, q in others
        )

    square, rows, absent = size * each, with_gaps(size, each), [((0,) * size, (0,) * size)]
    bound = product_sensitivity(Adjacency.REPLACE_ONE, square, 1, Fraction(1))
    assert bound == product_sensitivity(Adjacency.REPLACE_ONE, square)
    assert Fraction(8, 10) * bound <= worst(rows, each, rows) <= bound
    assert worst(with_gaps(size, each, scaled=False), each, rows) > bound  # one clip for all rows
    assert worst(rows, 2 * each, rows) > bound  # twice the weight
    for share in (Fraction(1, 2), Fraction(1)):
        added = product_sensitivity(Adjacency.ADD_REMOVE, square, 1, share)
        assert worst(rows, share * each, absent) <= added <= bound


@pytest.mark.parametrize("square", [1, 2, 50, 5_000, 12_345, 51_200])
def test_clipped_rows_stay_in_the_ball_whatever_floats_do(square):
    rng = np.random.default_rng(square)
    rows = rng.integers(-512, 513, (20_000, 7))
    rows[:50] = 512  # alike, where a coordinate falls on a whole number
    rows[50:100] = np.eye(7, dtype=int)[rng.integers(7, size=50)] * 300
    found = clipped(rows, square)
    exact = [sum(int(x) ** 2 for x in row) for row in found]
    assert max(exact) <= square
    assert (np.abs(found) <= np.abs(rows)).all() and (found * rows >= 0).all()
    inside = (rows**2).sum(axis=1) <= square
    assert (found[inside] == rows[inside]).all()
    lost = np.sqrt(square) - np.sqrt(exact)
    assert (lost[~inside] <= np.sqrt(7) + 1e-6).all()  # rounding takes less than one step each
    order = rng.permutation(len(rows))
    assert (clipped(rows[order], square) == found[order]).all()
    for place in (0, 60, 5_000):
        assert (clipped(rows[place : place + 1], square) == found[place]).all()


def test_sums_are_those_of_a_loop():
    rng = np.random.default_rng(0)
    scores = tuple(rng.integers(-200, 200, k) for k in (5, 3, 2))
    codes = [rng.integers(0, k, 3_000).astype(np.uint8) for k in (5, 4, 3)]  # two have gaps
    batches = [
        CodedBatch(tuple(c[a:b] for c in codes), b - a)
        for a, b in ((0, 1), (1, 2_000), (2_000, 3_000))
    ]
    pairs, singles, together = sum_products(batches, scores, 7_000)
    wanted, alone, both = np.zeros((3, 3), object), np.zeros(3, object), np.zeros((3, 3), int)
    for row in zip(*codes, strict=True):
        values = [s[c] if c < len(s) else 0 for s, c in zip(scores, row, strict=True)]
        answered = [c < len(s) for s, c in zip(scores, row, strict=True)]
        own = clipped(np.array([values]), 7_000 * sum(answered))[0]
        for i in range(3):
            alone[i] += int(own[i])
            for j in range(3):
                wanted[i, j] += int(own[i]) * int(own[j])
                both[i, j] += answered[i] and answered[j]
    assert pairs.tolist() == wanted.tolist() and singles.tolist() == alone.tolist()
    assert together.tolist() == both.tolist()


def test_scores_of_levels():
    assert [s.tolist() for s in public_scores(SCALE, "split")] == [[-1, -1, 0, 1, 1]] * 3
    assert public_scores(SCALE, "linear")[0].tolist() == [-1, -0.5, 0, 0.5, 1]
    assert public_scores(SCALE, "two-stage") is None
    whole = whole_scores(public_scores(SCALE, [[-2, -1, 0, 1, 2]] * 3))
    assert whole[0].tolist() == [-90, -45, 0, 45, 90]  # mean square 2: 64/√2 each, towards zero
    (standard,) = standard_scores((np.array([0, 100, 0, 100, 0]),), 0.0)
    assert abs(standard[3] - GRID) <= 1 and standard[3] == -standard[1]
    (flat,) = standard_scores((np.array([-50, -10, 0, 3]),), 1000.0)  # noise alone: all alike
    assert (np.diff(flat) > 0).all() and abs(flat.sum()) <= 4
    for wrong, said in (
        ("ranks", "'two-stage', 'linear', 'split'"),
        ([[1, 2]] * 3, "5 finite numbers"),
        ([[1] * 5] * 3, "not all the same"),
        ([[0, 1, 2, 3, float("nan")]] * 3, "finite"),
        ([["a"] * 5] * 3, "numbers"),
        ([[0, 1, 2, 3, 1e9]] * 3, "1,000,000"),
        ([[1, 2, 3, 4, 5]], "each of the 3 variables"),
    ):
        with pytest.raises(pf.InputError, match=said):
            public_scores(SCALE, wrong)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (pf.Schema({"a": ["x", "y", "z"], "b": 2}), "'a'. Declare a scale with"),
        (pf.Schema({"a": pf.Ordered(["x"]), "b": 2}), "one level"),
        (pf.Schema({"a": 2, "b": 2}, forbidden=[{"a": 0, "b": 1}]), "forbidden"),
        (pf.Schema({"a": 2, "b": 2}, unit=pf.Person("id", rows=None)), "limit them"),
        (pf.Schema({f"x{i}": 2 for i in range(70)}), "about 60 items"),
    ],
)
def test_what_is_refused_before_anything_is_charged(schema, said, tmp_path):
    ledger = pf.Ledger(tmp_path / "l", pf.ZCDP(1), "replace-one")
    with pytest.raises(pf.InputError, match=said):
        pf.OrdinalLearner(pf.ZCDP(1), schema=schema, ledger=ledger).fit(np.zeros((9, 2), int))
    with pytest.raises(pf.InputError, match="no pure ε"):
        pf.OrdinalLearner(pf.PureDP(1), schema=SCALE, ledger=ledger).fit(np.zeros((9, 3), int))
    assert not ledger.charges()


@pytest.mark.parametrize("last", [[0, 0, 0, 0, 1e-9], [1e6, 1e6, 1e6, 1e6, 1e6 - 1e-9]])
@pytest.mark.parametrize("first", [[0, 1, 2, 3, 4], [0, 0, 0, 0, 1e-200]])
def test_scores_that_are_the_same_on_the_grid_are_refused_before_the_charge(first, last, tmp_path):
    ledger = pf.Ledger(tmp_path / "l", pf.ZCDP(1), "replace-one")
    learner = pf.OrdinalLearner(
        pf.ZCDP(1), schema=SCALE, scores=[first, first, last], ledger=ledger
    )
    with pytest.raises(pf.InputError, match="too close together"):
        learner.fit(np.zeros((9, 3), int))
    assert not ledger.charges()


def test_a_stream_that_can_be_read_once_is_refused(tmp_path):
    import pyarrow as pa

    table = pa.table({name: ["1", "2"] for name in "abc"})
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    with pytest.raises(pf.InputError, match="two passes"):
        ItemScores(Terms(pf.ZCDP(1)), schema=SCALE).open(reader)


def test_the_number_of_rows_is_shown_only_where_it_is_public():
    rows = np.random.default_rng(0).integers(0, 5, (500, 3))
    public = ItemScores.measure(rows, pf.ZCDP(1), schema=SCALE)
    assert public.total == public.rows == 500
    private = ItemScores.measure(rows, pf.ZCDP(1), schema=SCALE, adjacency="add-remove")
    assert private.total is None and 350 < private.rows < 650  # noise of a sum: below 10
    again = type(private).from_bytes(private.to_bytes())
    assert again.to_bytes() == private.to_bytes() and again.schema == SCALE
