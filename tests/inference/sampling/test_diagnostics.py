"""Split-R̂ and effective sample size against known values. Seeds were fixed once."""

import numpy as np
import pytest

from privfield.errors import InputError
from privfield.inference.sampling import effective_sample_size, split_r_hat
from privfield.inference.sampling.diagnostics import r_hat_limit


def autoregressive(rng, chains, draws, phi):
    noise = rng.normal(size=(chains, draws))
    values = np.empty_like(noise)
    values[:, 0] = noise[:, 0] / np.sqrt(1 - phi**2)
    for t in range(1, draws):
        values[:, t] = phi * values[:, t - 1] + noise[:, t]
    return values


@pytest.mark.parametrize("phi", [-0.3, 0.0, 0.5, 0.9])
@pytest.mark.parametrize("ranks", [True, False])
def test_effective_size_of_an_autoregression(phi, ranks):
    # an AR(1) series is worth draws · (1 − φ)/(1 + φ); the estimate's error here is near 3 %
    values = autoregressive(np.random.default_rng(1), 4, 20_000, phi)
    expected = values.size * (1 - phi) / (1 + phi)
    assert effective_sample_size(values, ranks=ranks) == pytest.approx(expected, rel=0.2)
    assert split_r_hat(values) < 1.01


def test_effective_size_does_not_grow_without_bound():
    values = np.tile([1.0, -1.0], (2, 500)) + np.random.default_rng(2).normal(0, 0.1, (2, 1000))
    assert effective_sample_size(values) <= values.size * np.log10(values.size) + 1e-9


def test_r_hat_of_chains_at_different_places():
    # halves' means are ±δ, twice each: their variance is 4δ²/3; W is 1. Scores change it little
    rng = np.random.default_rng(3)
    values = rng.normal(size=(2, 50_000)) + np.array([[0.5], [-0.5]])
    assert split_r_hat(values) == pytest.approx(np.sqrt(1 + 4 * 0.25 / 3), rel=0.02)


def test_r_hat_by_hand_without_ties():
    # one chain 1..4: halves (1, 2), (3, 4). Scores z and −z by symmetry
    from scipy.special import ndtri

    high, low = ndtri(3.625 / 4.25), ndtri(2.625 / 4.25)
    within = (high - low) ** 2 / 2
    between = 2 * ((high + low) / 2) ** 2
    assert split_r_hat([[1.0, 2.0, 3.0, 4.0]]) == pytest.approx(
        np.sqrt((within / 2 + between) / within)
    )


def test_r_hat_sees_a_difference_of_spread_alone():
    rng = np.random.default_rng(4)
    values = rng.normal(size=(2, 5000)) * [[1.0], [3.0]]
    assert split_r_hat(values) > 1.1


def test_r_hat_sees_a_drift_within_one_chain():
    values = np.linspace(0, 3, 1000) + np.random.default_rng(5).normal(size=(1, 1000))
    assert split_r_hat(values) > 1.1


def test_r_hat_ignores_heavy_tails():
    assert split_r_hat(np.random.default_rng(6).standard_cauchy((4, 2000))) < 1.01


def test_frozen_chains():
    apart = np.repeat([[0.0], [1.0], [1.0]], 10, axis=1)
    assert split_r_hat(apart) == np.inf
    assert effective_sample_size(apart) == 3
    together = np.full((3, 10), 2.0)
    assert split_r_hat(together) == 1
    assert effective_sample_size(together) == 30


@pytest.mark.parametrize(("chains", "draws"), [(1, 200), (4, 8), (4, 100), (64, 16)])
def test_limit_is_rarely_passed_by_chance(chains, draws):
    # 1e-4 for each of two measures: more than 7 of 1,000 has a chance below 1e-6 even at 5e-4
    rng = np.random.default_rng(7)
    limit = r_hat_limit(chains, draws)
    passed = sum(split_r_hat(rng.normal(size=(chains, draws))) > limit for _ in range(1000))
    assert passed <= 7
    assert r_hat_limit(4, 10**6) == 1.01


@pytest.mark.parametrize("values", [[1.0, 2.0], [[1.0, 2.0, 3.0]], np.zeros((0, 9))])
def test_too_few_values_are_refused(values):
    with pytest.raises(InputError, match=r"shape \(chains, draws\)"):
        split_r_hat(values)


def test_values_that_are_not_finite_are_refused():
    with pytest.raises(InputError, match="finite"):
        effective_sample_size([[1.0, 2.0, np.nan, 3.0]])
