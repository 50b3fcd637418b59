"""Undirected chains from noisy tables: optima by their conditions, models by the truth."""

from itertools import product

import numpy as np
import pytest

from privfield.estimation import tied
from privfield.estimation.chains import METHODS, estimate_chain
from privfield.estimation.tied import NoisyPairs, directed, tied_em, tied_mle
from privfield.inference.tied_chain import TiedChain
from privfield.mechanisms.chains.measurements import ChainMeasurements
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import NON_PRIVATE, PureDP

CHAIN = TiedChain(3, 4)
RNG = np.random.default_rng(5)
THETA = RNG.normal(size=CHAIN.parameters)
MU = CHAIN.run(THETA)[1]


def test_the_fit_meets_the_condition_of_its_optimum():
    noisy = 1000 * MU + RNG.laplace(0, 20, MU.size)
    around = RNG.normal(size=MU.size)
    theta = tied_mle(CHAIN, noisy, 0.01, around)
    shares = np.concatenate([noisy[:3] / noisy[:3].sum(), 3 * noisy[3:] / noisy[3:].sum()])
    assert CHAIN.run(theta)[1] - shares + 0.01 * (theta - around) == pytest.approx(0, abs=1e-5)
    exact = tied_mle(CHAIN, MU, 1e-9, np.zeros(MU.size))
    assert CHAIN.run(exact)[1] == pytest.approx(MU, abs=1e-5)


@pytest.mark.parametrize("laplace", [True, False])
def test_an_em_step_has_no_duality_gap(laplace):
    """l·(y − n) = s·|y − n|/b, or l = s·(y − n)/σ²: then n maximises the E-step's objective."""
    spread = np.repeat([30.0, 10.0], [3, 9])
    values = 500 * MU + RNG.laplace(0, spread)
    seen = NoisyPairs(values, spread, laplace, 500.0)
    step = tied._dual_step(CHAIN, seen, np.zeros(MU.size), 3.0)
    apart = values - 500 * CHAIN.run(step)[1]
    if laplace:
        assert (np.abs(step) <= 3 / spread + 1e-12).all()
        gap = (3 * np.abs(apart) / spread - step * apart).sum()
        assert 0 <= gap + 1e-9 < 0.5
    else:
        assert step == pytest.approx(3 * apart / spread**2, abs=1e-3)


def test_em_stops_when_noise_explains_the_rest():
    spread = np.full(MU.size, 10.0)
    values = 5000 * MU + RNG.laplace(0, spread)
    seen = NoisyPairs(values, spread, True, 5000.0)
    start = directed(np.ones(3), np.ones((3, 3)))
    theta = tied_em(CHAIN, seen, start, bearable=12.0)
    assert seen.left(5000 * CHAIN.run(theta)[1]) <= 12 < seen.left(5000 * CHAIN.run(start)[1])
    assert (tied_em(CHAIN, seen, theta, bearable=1e9) != start).any()


def released(values, scale, noise="laplace", share="segments"):
    first, pairs = CHAIN.split(values)
    cost = NON_PRIVATE if noise == "none" else PureDP(1)
    stamp = "NOT PRIVATE" if noise == "none" else None
    grid = 2.0**-20
    return ChainMeasurements(
        *(("a", "b", "c"), first.copy(), pairs.copy(), noise, scale, scale, grid, grid, 1.0, cost),
        *(Adjacency.ADD_REMOVE, "person", stamp, 4, share),
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("noise", "scale"), [("none", 0.0), ("laplace", 20.0), ("gaussian", 20.0)])
def test_the_model_has_the_moments_of_the_truth(method, noise, scale):
    noisy = 50_000 * MU + RNG.laplace(0, max(scale, 1e-9), MU.size)
    m = released(noisy, scale, noise)
    model = estimate_chain(m, method)
    assert model.schema.names == ("t1", "t2", "t3", "t4") and model.stamp == m.stamp
    assert model.marginal(["t1"]) == pytest.approx(MU[:3], abs=0.02)
    pairs = sum(model.marginal([f"t{t}", f"t{t + 1}"]) for t in (1, 2, 3))
    assert pairs == pytest.approx(MU[3:].reshape(3, 3), abs=0.03)
    assert ChainMeasurements.from_bytes(m.to_bytes()).segment == 4


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("share", ["segments", "pairs"])
def test_hopeless_tables_give_a_model(method, share):
    for values, scale in product(
        (np.zeros(12), -1e6 * np.ones(12), 1e6 * RNG.normal(size=12)), (1, 1e5)
    ):
        model = estimate_chain(released(values, float(scale), share=share), method)
        assert np.isfinite(model.log_partition())
        assert all(np.isfinite(table).all() for table in model.log_potentials)
