"""Noisy moments: right sums, exact sensitivities, the stated noise; nothing else tells."""

from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privfield as pf
from privfield.mechanisms.moments import moments as sums
from privfield.mechanisms.moments.mechanism import moment_sensitivity
from privfield.mechanisms.moments.moments import Moments, sum_moments
from privfield.privacy.adjacency import Adjacency
from releases import measure_moments

RNG = np.random.default_rng(31)
DATA = RNG.choice([-1, 1], (400, 4))
ADJACENCIES = ["replace-one", "add-remove"]
NAMES = ("a", "b", "c", "d")
SCHEMA = pf.Schema({name: ["no", "yes"] for name in NAMES})


def naive(rows):
    rows = np.asarray(rows)
    p = rows.shape[1]
    pairs = [int((rows[:, i] * rows[:, j]).sum()) for i, j in combinations(range(p), 2)]
    return pairs + [int(s) for s in rows.sum(axis=0)]


def released(m):
    upper = np.triu_indices(len(m.names), 1)
    extra = [] if m.count is None else [m.count]
    return [*m.pairs[upper].tolist(), *m.singles.tolist(), *extra]


# -- sums ------------------------------------------------------------------------------------------


def test_without_noise_the_sums_are_those_of_a_loop():
    m = measure_moments(DATA, pf.NON_PRIVATE)
    assert released(m) == naive(DATA) and m.total == 400 and m.count is None
    assert m.names == ("x0", "x1", "x2", "x3") and m.noise == "none"
    assert m.stamp.startswith("NOT PRIVATE") and "NOT PRIVATE" in repr(m)
    assert (
        m.correlations()[0, 1] == m.pairs[0, 1] / 400 and (m.correlations().diagonal() == 1).all()
    )
    assert (m.means() == m.singles / 400).all()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 40), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_blocks_of_any_size_add_up(rows, p, seed):
    data = np.random.default_rng(seed).choice([-1, 1], (rows, p)).astype(np.int8)
    found = sum_moments(np.array_split(data, 3), p)
    assert [*found[0][np.triu_indices(p, 1)], *found[1]] == naive(data) and found[2] == rows


def test_many_small_blocks_give_the_same_sums(monkeypatch):
    monkeypatch.setattr(sums, "_BLOCK_CELLS", 28)
    assert released(measure_moments(DATA, pf.NON_PRIVATE)) == naive(DATA)


def test_array_frame_and_file_agree(tmp_path):
    frame = pd.DataFrame(np.where(DATA > 0, "yes", "no"), columns=list(NAMES))
    frame.to_csv(tmp_path / "d.csv", index=False)
    frame.to_parquet(tmp_path / "d.parquet")
    for data in (frame, tmp_path / "d.csv", str(tmp_path / "*.parquet"), (DATA + 1) // 2):
        m = measure_moments(data, pf.NON_PRIVATE, schema=SCHEMA)
        assert released(m) == naive(DATA) and m.names == NAMES


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint16, np.float32, np.float64])
def test_above_zero_is_plus_one_whatever_the_type(dtype):
    raw = (DATA > 0).astype(dtype)
    assert released(measure_moments(raw, pf.NON_PRIVATE)) == naive(DATA)


def test_odd_values_never_raise():
    odd = np.array([[np.nan, np.inf], [-np.inf, 1e-300], [7, -0.0]])
    assert released(measure_moments(odd, pf.NON_PRIVATE)) == naive([[-1, 1], [-1, 1], [1, -1]])


# -- sensitivity -----------------------------------------------------------------------------------


def contribution(row, with_count):
    pairs, singles, rows = sum_moments([np.array([row], np.int8)], len(row))
    upper = np.triu_indices(len(row), 1)
    return np.concatenate([pairs[upper], singles, [rows] * with_count]).astype(int)


@pytest.mark.parametrize("p", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_sensitivity_is_attained_and_never_exceeded(p, adjacency):
    """Every row, or pair of rows, of p signs."""
    neighbours = Adjacency.parse(adjacency)
    count = adjacency == "add-remove"
    vectors = [contribution(row, count) for row in product([-1, 1], repeat=p)]
    others = [0 * vectors[0]] if adjacency == "add-remove" else vectors
    shifts = [a - b for a in vectors for b in others]
    claim = moment_sensitivity(neighbours, p, count)
    assert max(int(np.abs(s).sum()) for s in shifts) == claim.l1
    assert max(int((s * s).sum()) for s in shifts) == claim.l2_squared


@pytest.mark.parametrize("limit", [1, 2])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_person_level_sensitivity_by_enumeration(limit, adjacency):
    """Every person with up to three rows of three variables: first `limit` rows count."""
    rows = [contribution(row, True) for row in product([-1, 1], repeat=3)]
    histories = [sum(h[:limit]) + 0 * rows[0] for k in range(4) for h in product(rows, repeat=k)]
    unique = np.unique(np.array(histories), axis=0)
    gone = np.zeros_like(unique[:1])
    others = unique if adjacency == "replace-one" else gone
    shifts = (unique[:, None, :] - others[None, :, :]).reshape(-1, unique.shape[1])
    claim = moment_sensitivity(Adjacency.parse(adjacency), 3, True, limit)
    assert np.abs(shifts).sum(axis=1).max() <= claim.l1
    assert (shifts**2).sum(axis=1).max() <= claim.l2_squared
    if adjacency == "add-remove":
        assert (shifts**2).sum(axis=1).max() == claim.l2_squared


def test_people_are_limited_and_their_number_is_private():
    schema = pf.Schema({"a": ["no", "yes"], "b": ["no", "yes"]}, unit=pf.Person("id", rows=2))
    frame = pd.DataFrame({"id": [1, 1, 1, 2], "a": ["yes"] * 4, "b": ["no", "no", "no", "yes"]})
    m = measure_moments(frame, pf.NON_PRIVATE, schema=schema)
    assert released(m) == [-1, 3, -1, 3] and m.total is None and m.count == 3
    noisy = measure_moments(frame, pf.PureDP(1), schema=schema)
    assert noisy.scale == 2 * 2 * (3**2 // 4)


def test_the_exact_number_of_rows_is_kept_private_under_add_remove():
    m = measure_moments(DATA, pf.PureDP(1), adjacency="add-remove")
    assert m.total is None and m.rows == max(1, m.count)
    assert m.scale == 4 * 5 / 2 + 1


# -- files, bad input ------------------------------------------------------------------------------


def test_saved_moments_come_back(tmp_path):
    for budget in (pf.ApproxDP(1, 1e-6), pf.NON_PRIVATE):
        m = measure_moments(DATA, budget, adjacency="add-remove", insecure_seed=1)
        m.save(tmp_path / "m.pf")
        again = Moments.load(tmp_path / "m.pf")
        assert released(again) == released(m) and again.to_bytes() == m.to_bytes()
        assert again.cost == m.cost and again.adjacency == "add-remove" and again.law == m.law
    (tmp_path / "m.pf").write_bytes(m.to_bytes()[:-30])
    with pytest.raises(pf.InputError, match=r"damaged"):
        Moments.load(tmp_path / "m.pf")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"data": [[1, 2]]}, "schema is needed"),
        ({"data": np.zeros(3)}, "2-D"),
        ({"data": np.zeros((3, 2, 2))}, "2-D"),
        ({"data": np.zeros((3, 0))}, "columns"),
        ({"data": np.array([["a"]])}, "dtype"),
        ({"data": DATA, "schema": pf.Schema({"a": 3})}, "two levels"),
        ({"data": DATA, "schema": SCHEMA, "names": NAMES}, "names"),
        ({"data": DATA[:, :2], "schema": SCHEMA}, "4 variables"),
        ({"names": ["a"]}, "4 different names"),
        ({"noise": "cauchy"}, "noise must be"),
    ],
)
def test_bad_input_is_refused_by_name(change, text):
    arguments = {"data": DATA, "budget": pf.ZCDP(0.1), **change}
    with pytest.raises(pf.InputError, match=text):
        measure_moments(**arguments)


@pytest.mark.parametrize("rows", [0, 1, 2])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_few_rows_are_no_reason_to_fail(rows, adjacency):
    m = measure_moments(DATA[:rows], pf.ZCDP(0.5), adjacency=adjacency)
    assert m.rows >= 1 and np.isfinite(m.correlations()).all()
