"""Compiled Gibbs steps of many dense chains. Import lazily: loading numba takes a moment."""

from __future__ import annotations

from typing import Any

from numba import float32, njit


@njit("void(float32[:,:], float32[:,:], float32[:,::1])", cache=True, nogil=True)
def redraw(own: Any, inside: Any, missing: Any) -> None:
    """Draw the variables of a block one after the other, in all chains side by side.

    `own[i, c]` is ±1 in chain c. `missing[i, c]` is what the weights within the block must add to
    make it +1, given the states before; `inside` holds these weights. Both change in place.
    """
    size, chains = own.shape
    for i in range(size):
        for c in range(chains):  # from here on missing[i] holds the change
            new = float32(1.0) if missing[i, c] < float32(0.0) else float32(-1.0)
            missing[i, c] = new - own[i, c]
            own[i, c] = new
        for k in range(i + 1, size):
            weight = inside[k, i]
            for c in range(chains):
                missing[k, c] -= weight * missing[i, c]
