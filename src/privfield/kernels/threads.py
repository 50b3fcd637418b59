"""How many threads products of matrices may use."""

from __future__ import annotations

from contextlib import AbstractContextManager


def one_thread() -> AbstractContextManager[object]:
    """Matrix products on one thread, in the whole process, until the context ends.

    For many products of middling size: a second thread waits for the first by turning in circles,
    most of all where other programs want the same cores, and what it gains is less.
    """
    from threadpoolctl import threadpool_limits

    return threadpool_limits(limits=1, user_api="blas")  # type: ignore[no-any-return]
