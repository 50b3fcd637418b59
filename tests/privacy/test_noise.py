"""Additive noise: the right law, the right scale, and privacy that halved noise would break."""

import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

import privfield as pf
from privfield.privacy import noise as noise_module
from privfield.privacy.adjacency import Adjacency, Sensitivity, marginal_sensitivity
from privfield.privacy.noise import (
    NoiseLaw,
    add_noise,
    choose_noise,
    gaussian_cost,
    gaussian_scale,
    laplace_scale,
)

FALSE_ALARM = 1e-7  # per test; all statistical tests of this file together stay below 1e-6


def exact_law(law, reach):
    """Probabilities of -reach..reach from the definition, normalised over a far longer range."""
    k = np.arange(-60 * reach, 60 * reach + 1)
    if law.name == "discrete-laplace":
        weights = np.exp(-np.abs(k) / law.scale)
    else:
        weights = np.exp(-(k**2) / (2 * law.scale**2))
    weights /= weights.sum()
    return weights[59 * reach : 61 * reach + 1]


def chi2_p_value(draws, law):
    reach = max(3, math.ceil(2.5 * law.deviation))
    expected = exact_law(law, reach) * len(draws)
    inside = np.abs(draws) <= reach
    observed = np.bincount(draws[inside] + reach, minlength=2 * reach + 1)
    expected = np.append(expected, len(draws) - expected.sum())
    observed = np.append(observed, (~inside).sum())
    keep = expected > 5
    expected = np.append(expected[keep], expected[~keep].sum() + 1e-9)
    observed = np.append(observed[keep], observed[~keep].sum())
    statistic = ((observed - expected) ** 2 / expected)[expected > 1].sum()
    return chi2.sf(statistic, (expected > 1).sum() - 1)


LAWS = [
    NoiseLaw("discrete-laplace", 0.4),
    NoiseLaw("discrete-laplace", 7.3),
    NoiseLaw("discrete-gaussian", 0.6),
    NoiseLaw("discrete-gaussian", 10.3),
]


@pytest.mark.parametrize("seed", [None, 12345])
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_draws_follow_the_law(law, seed):
    draws = add_noise(np.zeros(60_000, dtype=np.int64), law, seed)
    assert chi2_p_value(draws, law) > FALSE_ALARM


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_halved_noise_would_be_noticed(law):
    halved = NoiseLaw(law.name, law.scale / 2)
    draws = add_noise(np.zeros(60_000, dtype=np.int64), halved)
    assert chi2_p_value(draws, law) < FALSE_ALARM


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_deviation_and_margin_match_the_law(law):
    reach = math.ceil(30 * law.scale) + 5
    k, p = np.arange(-reach, reach + 1), exact_law(law, reach)
    assert law.deviation == pytest.approx(math.sqrt((k**2) @ p), rel=1e-6)
    for level in (0.5, 0.9, 0.95, 0.999):
        margin = law.margin(level)
        assert p[np.abs(k) <= margin].sum() >= level - 1e-9
        assert margin == 0 or p[np.abs(k) <= margin - 1].sum() < level


def test_margins_of_continuous_and_gridded_laws():
    assert NoiseLaw("laplace", 2.0).margin(0.95) == pytest.approx(2 * math.log(20))
    assert NoiseLaw("gaussian", 2.0).margin(0.95) == pytest.approx(3.919928, rel=1e-6)
    fine, coarse = NoiseLaw("discrete-laplace", 2.0, 2**-20), NoiseLaw("discrete-laplace", 2.0)
    assert fine.deviation == pytest.approx(2 * math.sqrt(2), rel=1e-9)
    assert abs(fine.margin() - coarse.margin()) < 1
    assert NoiseLaw("none", 0.0).margin() == 0


def laplace_loss(law, shift):
    """The exact supremum of the privacy loss of discrete Laplace noise under a shift."""
    return Fraction(shift) / Fraction(law.scale)


@given(
    epsilon=st.floats(1e-4, 50),
    rho=st.floats(1e-6, 50),
    tables=st.integers(1, 500),
    weight=st.sampled_from([1, 5, 2**20]),
    adjacency=st.sampled_from(["replace-one", "add-remove"]),
)
def test_scales_keep_the_promise_in_exact_arithmetic(epsilon, rho, tables, weight, adjacency):
    sensitivity = marginal_sensitivity(Adjacency.parse(adjacency), tables, weight)
    e, r = Fraction(repr(epsilon)), Fraction(repr(rho))
    b = Fraction(laplace_scale(sensitivity, e))
    sigma = Fraction(gaussian_scale(sensitivity, pf.ZCDP(r)))
    assert sensitivity.l1 / b <= e < sensitivity.l1 / (b * (1 - Fraction(1, 10**12)))
    spent = sensitivity.l2_squared / (2 * sigma**2)
    assert spent <= r < spent * (1 + Fraction(1, 10**12))


@pytest.mark.parametrize("alpha", [1.01, 2, 8, 40])
@pytest.mark.parametrize("rho", [0.05, 0.5, 3])
def test_discrete_gaussian_divergence_stays_within_rho_and_breaks_it_when_halved(rho, alpha):
    scale = gaussian_scale(Sensitivity(3, 9), pf.ZCDP(rho))

    def divergence(sigma):
        k = np.arange(-4000, 4001)
        log_p, log_q = -(k**2) / (2 * sigma**2), -((k - 3.0) ** 2) / (2 * sigma**2)
        log_p, log_q = log_p - np.logaddexp.reduce(log_p), log_q - np.logaddexp.reduce(log_q)
        return np.logaddexp.reduce(alpha * log_p + (1 - alpha) * log_q) / (alpha - 1)

    assert divergence(scale) <= alpha * rho * (1 + 1e-9)
    assert divergence(scale / 2) > alpha * rho


def test_opendp_agrees_with_our_calibration():
    """OpenDP's own privacy map, the second opinion, charges no more than we do."""
    for law, sensitivity, claim in [
        (NoiseLaw("discrete-laplace", laplace_scale(Sensitivity(6, 6), Fraction(1, 3))), 6, 1 / 3),
        (
            NoiseLaw(
                "discrete-gaussian", gaussian_scale(Sensitivity(2, 4), pf.ZCDP(Fraction(1, 7)))
            ),
            2,
            1 / 7,
        ),
    ]:
        sampler = noise_module._sampler(law.name, law.scale)
        distance = sensitivity if law.name == "discrete-laplace" else float(sensitivity)
        assert sampler.map(distance) == pytest.approx(claim, rel=1e-12)


def test_the_quieter_law_is_chosen():
    def chosen(tables, budget, adjacency=Adjacency.ADD_REMOVE):
        return choose_noise(budget, marginal_sensitivity(adjacency, tables, 1))[0].name

    budget = pf.ApproxDP(1, 1e-6)  # Gaussian wins once 2|C|² > |C|·4.225² + 2, add-remove
    assert chosen(9, budget) == "discrete-laplace"
    assert chosen(10, budget) == "discrete-gaussian"
    assert chosen(1, pf.PureDP(1)) == chosen(1000, pf.PureDP(1)) == "discrete-laplace"
    assert chosen(1, pf.ZCDP(0.1)) == "discrete-gaussian"
    assert chosen(500, pf.ApproxDP(1, 0)) == "discrete-laplace"


def test_the_cost_is_what_the_chosen_law_really_spends():
    sensitivity = marginal_sensitivity(Adjacency.REPLACE_ONE, 50, 1)
    budget = pf.ApproxDP(1, 1e-6)
    law, cost = choose_noise(budget, sensitivity)
    assert law.name == "discrete-gaussian" and cost == gaussian_cost(budget, 100) and cost <= budget
    law, cost = choose_noise(pf.ZCDP(0.02), sensitivity, "laplace")
    assert law.name == "discrete-laplace" and isinstance(cost, pf.PureDP) and cost <= pf.ZCDP(0.02)


@pytest.mark.parametrize(
    ("budget", "noise", "text"),
    [
        (pf.PureDP(1), "gaussian", "Gaussian noise satisfies no pure"),
        (pf.ApproxDP(1, 0), "gaussian", "Gaussian noise satisfies no pure"),
        (pf.PureDP(1), "cauchy", "noise must be 'auto', 'laplace' or 'gaussian'; got 'cauchy'"),
        (pf.PureDP(1) + pf.ZCDP(1), "auto", "budget must be"),
    ],
)
def test_impossible_wishes_are_refused(budget, noise, text):
    with pytest.raises(pf.InputError, match=text):
        choose_noise(budget, Sensitivity(2, 2), noise)


def test_noise_differs_between_draws_and_repeats_only_with_a_seed():
    law, zeros = NoiseLaw("discrete-laplace", 100.0), np.zeros((20, 5), dtype=np.int64)
    assert (add_noise(zeros, law) != add_noise(zeros, law)).any()
    assert (add_noise(zeros, law, 7) == add_noise(zeros, law, 7)).all()
    assert (add_noise(zeros, law, 7) != add_noise(zeros, law, 8)).any()
    assert add_noise(np.zeros((0, 3), dtype=np.int64), law).shape == (0, 3)


def test_drawing_noise_loads_no_frame_library():
    """OpenDP's prelude loads all that are installed: 170 MB, and more than a second."""
    code = (
        "import sys, numpy as np\n"
        "from privfield.privacy.noise import NoiseLaw, add_noise\n"
        "for name in ('discrete-laplace', 'discrete-gaussian'):\n"
        "    add_noise(np.array([5]), NoiseLaw(name, 2.0))\n"
        "assert 'opendp.measurements' in sys.modules\n"
        "print(*{'opendp.prelude', 'polars', 'sklearn', 'pandas'} & sys.modules.keys())\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []
