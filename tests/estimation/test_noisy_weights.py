"""Posterior means of noisy weights: against a fine grid, and where there is hardly any noise."""

import numpy as np
import pytest
from scipy.special import betaln, logsumexp

from privfield.estimation.noisy_weights import SHAPES, log_likelihood, posterior_means
from privfield.privacy.noise import NoiseLaw


def by_grid(value, mean, law):
    """The same integrals, summed over 200,001 points of log λ."""
    logs = np.linspace(
        np.log(1e-14 * mean), np.log(1e4 * (mean + abs(value) + law.deviation)), 200_001
    )
    rates = np.exp(logs)
    likelihood = log_likelihood(value - rates, rates + 0.25, law) + np.log(logs[1] - logs[0])
    evidence, means = [], []
    for shape in SHAPES:
        rate = shape / (1 + shape) / mean
        prior = shape * (np.log(rate) + logs) - betaln(shape, shape + 2)
        weight = prior - (2 * shape + 2) * np.log1p(rate * rates) + likelihood
        evidence.append(logsumexp(weight))
        means.append(np.exp(logsumexp(weight + logs) - evidence[-1]))
    share = np.exp(np.array(evidence) - logsumexp(evidence))
    return float(share @ means), float(logsumexp(evidence) - np.log(len(SHAPES)))


@pytest.mark.parametrize("law", [NoiseLaw("discrete-laplace", 2.0), NoiseLaw("gaussian", 30.0)])
@pytest.mark.parametrize("value", [-50.0, 0.0, 3.0, 1000.0])
@pytest.mark.parametrize("mean", [1.0, 200.0])
def test_means_and_evidence_are_those_of_a_fine_grid(value, mean, law):
    found, evidence = posterior_means(np.array([value]), np.array([mean]), law)
    expected, log_evidence = by_grid(value, mean, law)
    assert found[0] == pytest.approx(expected, rel=0.01)
    assert evidence == pytest.approx(log_evidence, abs=0.02)


def test_a_huge_budget_leaves_no_noise_and_no_warning():
    """At ε = 1000 per count the noise has a deviation of 0 in double precision."""
    law = NoiseLaw("discrete-laplace", 1e-3)
    assert law.deviation == 0
    values = np.array([0.0, 7.0, 5000.0, 1e12])
    found, _ = posterior_means(values, np.full(4, 10.0), law)
    assert np.isfinite(found).all() and (np.diff(found) > 0).all()
    assert found[2] == pytest.approx(5000, rel=0.05)
