"""Products of matrices of logarithms, term by term."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from privfield.inference.contraction import logs
from privfield.inference.contraction.logs import log_matmul


@given(
    seed=st.integers(0, 2**32 - 1),
    shape=st.tuples(*[st.integers(1, 6)] * 4),
    size=st.sampled_from([1.0, 100.0, 400.0, 1e4, 1e300]),
    zeros=st.sampled_from([0.0, 0.3, 0.9]),
    block=st.sampled_from([1, 7, 2**17]),
)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_sums_and_maxima_of_any_size(seed, shape, size, zeros, block):
    """Sizes at which the largest terms of a row and a column do not meet, and true zeros."""
    rng = np.random.default_rng(seed)
    batch, rows, inner, columns = shape
    x, y = rng.normal(0, size, (batch, rows, inner)), rng.normal(0, size, (batch, inner, columns))
    for table in (x, y):
        table[rng.random(table.shape) < zeros] = -np.inf
    terms = x[:, :, :, None] + y[:, None, :, :]
    with pytest.MonkeyPatch.context() as patch, np.errstate(divide="ignore", invalid="ignore"):
        patch.setattr(logs, "_BLOCK_CELLS", block)
        np.testing.assert_allclose(
            log_matmul(x, y), logsumexp(terms, axis=2), rtol=1e-12, atol=1e-12
        )
        np.testing.assert_array_equal(log_matmul(x, y, use_max=True), terms.max(axis=2))
