"""An undirected chain with tied potentials against enumeration of all its sequences."""

from itertools import pairwise, product

import numpy as np
import pytest

from privfield.inference.tied_chain import TiedChain


@pytest.mark.parametrize(("states", "length"), [(2, 2), (3, 5), (4, 4)])
@pytest.mark.parametrize("size", [1.0, 300.0])
def test_log_z_and_expected_counts(states, length, size):
    rng = np.random.default_rng(states)
    chain = TiedChain(states, length)
    theta = size * rng.normal(size=chain.parameters)
    first, step = chain.split(theta)
    everything = list(product(range(states), repeat=length))
    scores = np.array([first[x[0]] + sum(step[pair] for pair in pairwise(x)) for x in everything])
    log_z = np.logaddexp.reduce(scores)
    expected = np.zeros(chain.parameters)
    for x, chance in zip(everything, np.exp(scores - log_z), strict=True):
        expected[x[0]] += chance
        for a, b in pairwise(x):
            expected[states + states * a + b] += chance
    found, mu = chain.run(theta)
    assert found == pytest.approx(log_z, rel=1e-12)
    assert mu == pytest.approx(expected, abs=1e-9)
