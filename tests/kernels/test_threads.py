"""Matrix products on one thread while chains run, and as many as before afterwards."""

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

import privfield as pf
from privfield.estimation.moments.matching import match_moments
from releases import measure_moments


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_moments_are_matched_on_one_thread():
    rows = np.random.default_rng(0).integers(0, 2, (500, 5))
    m = measure_moments(rows, pf.ZCDP(1.0))
    seen = []
    with threadpool_limits(limits=2, user_api="blas"):
        before = blas_threads()
        match_moments(m, method="sampled", progress=lambda news: seen.append(blas_threads()))
        assert blas_threads() == before == {2}
    assert len(seen) > 2
    assert all(threads == {1} for threads in seen)
