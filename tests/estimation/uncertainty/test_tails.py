"""Chances of normal, Laplace and mixed errors."""

import math

import numpy as np
import pytest

from privfield.estimation.uncertainty.tails import beyond, laplace_share, quantile


def test_both_ends_of_the_family():
    z = np.array([0.0, 0.5, 1.96, 4.0])
    normal = [math.erfc(x / math.sqrt(2)) for x in z]
    np.testing.assert_allclose(beyond(z, np.zeros(4)), normal, rtol=1e-9)
    np.testing.assert_allclose(beyond(z, np.ones(4)), np.exp(-math.sqrt(2) * z), rtol=1e-3)


@pytest.mark.parametrize("share", [0.05, 0.3, 0.7, 0.95])
def test_mixtures_by_integration(share):
    from scipy.integrate import quad
    from scipy.stats import norm

    s, b = math.sqrt(1 - share), math.sqrt(share / 2)
    for z in (0.3, 1.0, 2.5, 5.0):
        total, _ = quad(
            lambda u, z=z: (
                math.exp(-u / b) / (2 * b) * (norm.sf((z - u) / s) + norm.sf((z + u) / s))
            ),
            0,
            60 * b,
            epsabs=1e-13,
            limit=200,
        )
        assert float(beyond(np.array(z), np.array(share))) == pytest.approx(2 * total, rel=1e-5)


def test_quantiles_undo_chances():
    share = np.array([0.0, 0.2, 0.777, 1.0])
    for level in (0.5, 0.95, 0.999):
        np.testing.assert_allclose(beyond(quantile(level, share), share), 1 - level, rtol=1e-3)
    assert float(quantile(0.95, np.zeros(()))) == pytest.approx(1.959964, abs=1e-6)


def test_a_mean_of_several_draws_counts_less():
    own = np.full((4, 1), 0.25)
    assert laplace_share(own, 1.0, np.ones(1))[0] == pytest.approx(0.5)
    assert laplace_share(own, 0.0, np.ones(1))[0] == 0
