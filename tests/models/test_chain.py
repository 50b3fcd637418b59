"""`ChainModel` against enumeration of all sequences, and as a file."""

import copy
import math
import pickle
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

import privfield as pf
from privfield.models.chain import ChainModel
from privfield.models.loading import model_from_bytes
from privfield.models.saving import model_bytes
from small_models import enumerate_model

NAMES = ["home", "work", "shop"]


@st.composite
def chains(draw, zeros=True):
    size = draw(st.integers(2, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows = rng.dirichlet(np.ones(size), size + 1)
    if zeros and draw(st.booleans()):
        rows = np.where(rng.random(rows.shape) < 0.4, 0, rows)
        rows[rows.sum(axis=1) == 0, 0] = 1
        rows = rows / rows.sum(axis=1, keepdims=True)
    return ChainModel([f"s{i}" for i in range(size)], rows[0], rows[1:])


def probability(model, sequence):
    found = model.initial[sequence[0]]
    for before, after in pairwise(sequence):
        found *= model.transition[before, after]
    return float(found)


@settings(max_examples=40, deadline=None)
@given(chains(), st.integers(1, 4))
def test_all_sequences_of_a_length(model, length):
    sequences = list(product(range(len(model.states)), repeat=length))
    by_hand = np.array([probability(model, s) for s in sequences])
    assert by_hand.sum() == pytest.approx(1)
    found = model.log_likelihoods([list(s) for s in sequences])
    assert np.exp(found) == pytest.approx(by_hand, abs=1e-12)
    assert model.log_likelihoods(np.array(sequences)) == pytest.approx(found)
    possible = [list(s) for s, p in zip(sequences, by_hand, strict=True) if p > 0]
    total = sum(math.log(p) for p in by_hand if p > 0)
    assert model.log_likelihood(possible) == pytest.approx(total, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(chains(), st.integers(1, 4))
def test_as_a_markov_random_field(model, length):
    field = model.to_mrf(length)
    assert field.schema.names == tuple(f"t{i}" for i in range(1, length + 1))
    states, chance, log_z = enumerate_model(field)
    assert log_z == pytest.approx(0, abs=1e-9)
    assert chance == pytest.approx([probability(model, s) for s in states.tolist()], abs=1e-12)
    last = model.initial @ np.linalg.matrix_power(model.transition, length - 1)
    assert field.marginal([f"t{length}"]) == pytest.approx(last, abs=1e-9)


def test_gaps_and_labels_in_the_likelihood():
    model = ChainModel(NAMES, [0.5, 0.3, 0.2], [[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [1, 0, 0]])
    parts = [["home", "shop", None, "work", "bar", "home"], []]
    found = model.log_likelihoods(parts)
    assert found[0] == pytest.approx(math.log(0.5 * 0.7) + math.log(0.3) + math.log(0.5))
    assert found[1] == 0
    assert model.log_likelihood([["shop", "work"]]) == -math.inf
    assert model.log_likelihoods([["home"], ["work"], ["home"]], people=["a", "b", "a"]) == (
        pytest.approx([2 * math.log(0.5), math.log(0.3)])
    )


@settings(max_examples=60, deadline=None)
@given(chains())
def test_stationary_shares_are_long_run_averages(model):
    """The Cesàro average over many steps, for chains with traps and cycles too."""
    found = model.stationary()
    assert found.sum() == pytest.approx(1) and (found >= 0).all()
    assert found @ model.transition == pytest.approx(found, abs=1e-9)
    lazy = (np.eye(len(model.states)) + model.transition) / 2  # same shares, no cycles
    far = model.initial @ np.linalg.matrix_power(lazy, 2**20)
    assert found == pytest.approx(far, abs=1e-4)


def test_two_traps():
    model = ChainModel(NAMES, [0, 0, 1], [[1, 0, 0], [0, 1, 0], [0.1, 0.3, 0.6]])
    assert model.stationary() == pytest.approx([0.25, 0.75, 0])


def test_samples_follow_the_chain():
    """χ² over all 27 sequences of length 3 that can happen; false alarms below 1e-6."""
    model = ChainModel(NAMES, [0.5, 0.5, 0], [[0.1, 0.2, 0.7], [0.3, 0.7, 0], [0.25, 0.5, 0.25]])
    draws = model.sample(40_000, 3, np.random.default_rng(11))
    assert draws.shape == (40_000, 3) and draws.dtype == np.uint8
    seen = np.zeros((3, 3, 3))
    np.add.at(seen, tuple(draws.T.astype(int)), 1)
    chance = np.array([probability(model, s) for s in product(range(3), repeat=3)]) * 40_000
    possible = chance > 0
    assert not seen.ravel()[~possible].any()
    gap = ((seen.ravel() - chance)[possible] ** 2 / chance[possible]).sum()
    assert chi2.sf(gap, possible.sum() - 1) > 1e-6
    assert (
        model.sample(5, 4, np.random.default_rng(3)) == model.sample(5, 4, np.random.default_rng(3))
    ).all()
    assert model.sample(0, 4).shape == (0, 4)


class AlmostOne(np.random.Generator):
    """The largest number below 1, always: states that cannot happen must not."""

    def random(self, size=None, *arguments, **options):
        return np.full(size, np.nextafter(1, 0))


def test_the_largest_draw_gives_a_possible_state():
    model = ChainModel(NAMES, [0.1, 0.9, 0], [[0.3, 0.7, 0], [1 / 3, 2 / 3, 0], [0, 0, 1]])
    draws = model.sample(3, 4, AlmostOne(np.random.PCG64(0)))
    assert (draws == 1).all()


def test_saved_and_loaded_bit_for_bit(tmp_path):
    model = ChainModel(
        ["ä", "b c"], [1 / 3, 2 / 3], [[1, 0], [0.1, 0.9]], stamp="NOT PRIVATE: test"
    )
    model.save(tmp_path / "m.pf")
    back = pf.load(tmp_path / "m.pf")
    assert isinstance(back, ChainModel) and model_bytes(back) == model_bytes(model)
    assert back.states == model.states and back.stamp == model.stamp
    assert "NOT PRIVATE" in repr(back)
    for twin in (copy.deepcopy(model), copy.copy(model), pickle.loads(pickle.dumps(model))):
        assert model_bytes(twin) == model_bytes(model)
    data = model_bytes(model)
    for cut in (10, len(data) // 2, len(data) - 1):
        with pytest.raises(pf.InputError, match="damaged"):
            model_from_bytes(data[:cut])


def test_bad_input():
    good = {"states": NAMES, "initial": [1, 0, 0], "transition": np.eye(3)}
    bad = [
        ({"states": "abc"}, "states must be a list"),
        ({"states": ["a", "a", "b"]}, "different states"),
        ({"states": ["a"]}, "at least two"),
        ({"initial": [1, 1, 0]}, "initial must be probabilities"),
        ({"initial": [0.5, 0.5]}, r"shape \(3,\)"),
        ({"initial": [float("nan")] * 3}, "finite"),
        ({"transition": -np.eye(3)}, "rows that are probabilities"),
        ({"transition": np.zeros((3, 3))}, "add up to 1"),
        ({"transition": "x"}, "numbers only"),
    ]
    for change, text in bad:
        with pytest.raises(pf.InputError, match=text):
            ChainModel(**{**good, **change})
    model = ChainModel(**good)
    for call, text in (
        (lambda: model.sample(-1, 3), "n must be"),
        (lambda: model.sample(3, 0), "length must be"),
        (lambda: model.sample(3, True), "length must be"),
        (lambda: model.sample(3, 2, rng=5), "rng must be"),
        (lambda: model.sample(2**40, 2**20), "at most"),
        (lambda: model.to_mrf(0), "length must be"),
        (lambda: model.log_likelihood(5), "sequences must be"),
    ):
        with pytest.raises(pf.InputError, match=text):
            call()
