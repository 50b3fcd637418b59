"""Noisy gradients of the pseudo-likelihood: right, bounded, as noisy as stated."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import chi2

import privfield as pf
from privfield.files import unpack
from privfield.mechanisms.gradients import pseudolikelihood as module
from privfield.mechanisms.gradients.pseudolikelihood import (
    CHANCE,
    GRID,
    WEIGHT,
    PseudolikelihoodTrajectory,
    clipped_gradient,
    measure_pseudolikelihood,
)
from privfield.privacy.noise import NoiseLaw, add_noise

RNG = np.random.default_rng(5)
DATA = RNG.choice([-1, 1], (200, 4)).astype(np.int8)


def some_joint(rng, p, size=0.5):
    """Weights and a field on the public grid."""
    weights = rng.normal(0, size, (p, p))
    weights = np.triu(weights, 1) + np.triu(weights, 1).T
    return np.rint(np.column_stack([weights, rng.normal(0, size, p)]) * GRID) / GRID


def square(clip_squared):
    return Fraction(clip_squared) * (WEIGHT * CHANCE) ** 2


def log_pseudolikelihood(parameters, data):
    p = data.shape[1]
    weights = np.zeros((p, p))
    weights[np.triu_indices(p, 1)] = parameters[: p * (p - 1) // 2]
    field = data @ (weights + weights.T) + parameters[p * (p - 1) // 2 :]
    return -np.logaddexp(0, -2 * data * field).sum()


def test_it_is_half_the_gradient_of_the_log_pseudolikelihood():
    p = 4
    joint = some_joint(RNG, p)
    found = clipped_gradient(iter([DATA]), joint, square(10**6)) / (WEIGHT * CHANCE)
    at = np.concatenate([joint[:, :p][np.triu_indices(p, 1)], joint[:, p]])
    for k in range(len(at)):
        step = np.zeros_like(at)
        step[k] = 1e-5
        up, down = (log_pseudolikelihood(at + s * step, DATA) for s in (1, -1))
        assert found[k] == pytest.approx((up - down) / 2e-5 / 2, abs=200 * 1e-4)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.floats(0.05, 6))
def test_no_row_adds_more_than_the_clip_and_rows_just_add(seed, p, clip):
    """Every row of p signs, in exact whole numbers; a row's term does not depend on its company."""
    joint = some_joint(np.random.default_rng(seed), p, 1.0)
    rows = np.array(list(product([-1, 1], repeat=p)), np.int8)
    bound = square(Fraction(clip) ** 2)
    terms = [clipped_gradient(iter([row[None]]), joint, bound) for row in rows]
    assert all(sum(int(v) ** 2 for v in term) <= bound for term in terms)
    together = clipped_gradient(iter([rows[:3], rows[3:]]), joint, bound)
    assert (together == np.sum(terms, axis=0)).all()


@pytest.mark.parametrize("p", [2, 3, 4, 6])
def test_at_the_start_every_row_has_the_same_norm_and_none_is_clipped(p):
    """√(p(2p−1))/2 exactly, and below the default clip."""
    joint = np.zeros((p, p + 1))
    bound = square(Fraction(p * (2 * p - 1)) * Fraction(25, 64))
    for row in product([-1, 1], repeat=p):
        term = clipped_gradient(iter([np.array([row], np.int8)]), joint, bound)
        assert (
            sum(int(v) ** 2 for v in term) == Fraction(p * (2 * p - 1), 4) * (WEIGHT * CHANCE) ** 2
        )


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_the_noise_covers_the_longest_move_of_any_neighbour(adjacency):
    """Along the released path, for all rows and pairs of rows; half the scale would not do."""
    budget = pf.ZCDP(0.3)
    t = measure_pseudolikelihood(
        DATA, budget, adjacency=adjacency, steps=6, declared_rows=200, clip=0.7
    )
    assert t.cost == budget
    rows = np.array(list(product([-1, 1], repeat=4)), np.int8)
    joint, worst = np.zeros((4, 5)), []
    for gradient in t.gradients:
        terms = [clipped_gradient(iter([r[None]]), joint, square(Fraction("0.49"))) for r in rows]
        others = terms if adjacency == "replace-one" else [0 * terms[0]]
        shifts = [int(((a - b).astype(object) ** 2).sum()) for a in terms for b in others]
        worst.append(max(shifts))
        joint = module._move(joint, gradient, 200.0, 2.0)
    loss = sum(worst) / (2 * Fraction(t.scale) ** 2)
    assert loss <= budget.exact_rho
    assert 4 * loss > budget.exact_rho


def noise_fits():
    """χ² of 30 × 3 × 10 noises at a public path; false alarms below 1e-7."""
    squares, count = 0.0, 0
    for _ in range(30):
        t = measure_pseudolikelihood(DATA, pf.ZCDP(0.3), steps=3)
        joint = np.zeros((4, 5))
        for gradient in t.gradients:
            clip = Fraction(28 * 25, 64)
            true = clipped_gradient(iter([DATA]), joint, square(clip))
            squares += (((gradient - true) / t.scale) ** 2).sum()
            count += gradient.size
            joint = module._move(joint, gradient, t.rows, t.width)
    low, high = chi2.ppf([5e-8, 1 - 5e-8], count)
    return low < squares < high


def test_the_noise_is_what_the_result_says():
    assert noise_fits()


def test_halved_noise_is_caught(monkeypatch):
    monkeypatch.setattr(
        module,
        "add_noise",
        lambda values, law, seed: add_noise(values, NoiseLaw(law.name, law.scale / 2), seed),
    )
    assert not noise_fits()


def test_without_noise_it_reaches_the_maximum_of_the_pseudolikelihood():
    truth = pf.IsingModel([[0, 0.4, 0], [0.4, 0, -0.3], [0, -0.3, 0]], [0.2, 0, -0.1])
    data = truth.sample(3000, np.random.default_rng(1)).astype(float)
    best = minimize(lambda w: -log_pseudolikelihood(w, data), np.zeros(6)).x
    t = measure_pseudolikelihood(data, pf.NON_PRIVATE, steps=60, clip=10)
    weights, field = t.parameters()
    assert weights[np.triu_indices(3, 1)] == pytest.approx(best[:3], abs=1e-3)
    assert field == pytest.approx(best[3:], abs=1e-3)
    assert t.stamp.startswith("NOT PRIVATE") and "NOT PRIVATE" in repr(t)


def test_the_width_holds_roughly_and_separable_data_stay_finite():
    copies = np.repeat(DATA[:, :1], 3, axis=1)
    weights, field = measure_pseudolikelihood(copies, pf.ZCDP(1.0), width=1.0).parameters()
    assert (np.abs(weights).sum(axis=1) + np.abs(field) <= 1.5).all()


def public_parts(data, adjacency):
    news = []
    t = measure_pseudolikelihood(
        *(data, pf.ZCDP(0.1)),
        adjacency=adjacency,
        steps=3,
        declared_rows=200 if adjacency == "add-remove" else None,
        insecure_seed=2,
        progress=news.append,
    )
    header, arrays = unpack("pseudolikelihood-trajectory", t.to_bytes(), "this")
    return header, arrays["gradients"].shape, news


def test_public_metadata_is_the_same_on_neighbours():
    changed = DATA.copy()
    changed[0] = -changed[0]
    assert public_parts(DATA, "replace-one") == public_parts(changed, "replace-one")
    assert public_parts(DATA, "add-remove") == public_parts(DATA[1:], "add-remove")


def test_saved_trajectories_come_back(tmp_path):
    t = measure_pseudolikelihood(DATA, pf.ApproxDP(1, 1e-6), steps=2)
    t.save(tmp_path / "t.pf")
    again = PseudolikelihoodTrajectory.load(tmp_path / "t.pf")
    assert again.to_bytes() == t.to_bytes() and (again.gradients == t.gradients).all()
    (tmp_path / "t.pf").write_bytes(b"nothing")
    with pytest.raises(pf.InputError, match="damaged"):
        PseudolikelihoodTrajectory.load(tmp_path / "t.pf")


def test_a_finished_job_is_returned(tmp_path):
    ledger = pf.Ledger(tmp_path / "l", total=pf.ZCDP(1), adjacency="replace-one")
    first, again = (
        measure_pseudolikelihood(DATA, pf.ZCDP(0.6), steps=2, ledger=ledger, job="m")
        for _ in range(2)
    )
    assert (first.gradients == again.gradients).all()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"budget": pf.PureDP(1)}, "no pure"),
        ({"budget": pf.Cost(1, 0, 1)}, "budget must"),
        ({"clip": -5}, "clip must be"),
        ({"declared_rows": 10**400}, "declared_rows must be"),
        ({"budget": pf.ApproxDP(1, 0)}, "no pure"),
        ({"budget": 1.0}, "budget must be"),
        ({"width": 0}, "width must lie"),
        ({"width": float("nan")}, "width must be"),
        ({"width": 1e9}, "width must lie"),
        ({"steps": 0}, "steps must be"),
        ({"steps": 2.5}, "steps must be"),
        ({"clip": 0}, "clip must be"),
        ({"adjacency": "add-remove"}, "declared_rows must be"),
        ({"adjacency": "add-remove", "declared_rows": 0}, "declared_rows must be"),
        ({"adjacency": "flip-outcome"}, "adjacency must be"),
        ({"data": np.zeros(4)}, "2-D"),
        (
            {"data": DATA, "schema": pf.Schema({"a": 2, "b": 2}, unit=pf.Person("i", rows=1))},
            "unit must be None",
        ),
    ],
)
def test_bad_input_is_refused_by_name(change, text):
    arguments = {"data": DATA, "budget": pf.ZCDP(0.1), **change}
    with pytest.raises(pf.InputError, match=text):
        measure_pseudolikelihood(**arguments)


@pytest.mark.parametrize("rows", [0, 1])
def test_few_rows_are_no_reason_to_fail(rows):
    weights, _ = measure_pseudolikelihood(DATA[:rows], pf.ZCDP(0.5), steps=2).parameters()
    assert np.isfinite(weights).all()
