"""The Walsh–Hadamard transform against direct sums."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privfield.kernels.walsh_hadamard import transform


def transformed(values):
    found = values.copy()
    transform(found)
    return found


def direct(values, chosen):
    """Σ_x f(x) Π_{j in I} x_j, straight from the definition of the numbering."""
    states = np.arange(len(values))
    product = np.ones(len(values))
    for j in range(len(values).bit_length()):
        if chosen >> j & 1:
            product *= np.where(states >> j & 1, -1.0, 1.0)
    return float(values @ product)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 9), st.integers(0, 2**32 - 1))
def test_all_sums_are_those_of_the_definition(p, seed):
    values = np.random.default_rng(seed).integers(-1000, 1000, 2**p).astype(float)
    found = transformed(values)
    assert found.tolist() == [direct(values, chosen) for chosen in range(2**p)]


@pytest.mark.parametrize("p", [11, 12, 13, 14, 16, 19, 20, 21])
def test_large_sizes_use_blocks_and_strips(p):
    """Whole numbers, so that sums are exact in any order."""
    rng = np.random.default_rng(p)
    values = rng.integers(-1000, 1000, 2**p).astype(float)
    found = transformed(values)
    some = [0, 1, 2**p - 1, 2 ** (p - 1), *rng.integers(0, 2**p, 8).tolist()]
    assert [found[k] for k in some] == [direct(values, k) for k in some]
    assert (transformed(found) == values * 2**p).all()
