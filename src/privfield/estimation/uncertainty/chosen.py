"""Edges between yes/no variables that private selection chose, given that they passed its test.

A pair became an edge because its table looked unlike what the others explain, by a noisy distance
above a threshold. The people are the same when it is measured, so a pair without a link that chance
brought there still looks linked. What the test showed is released: how far it was passed.

If only the pair's own error z moves and all else that was released stays, noise of the test
included, the distance moves by 2c of each standard deviation √(c + V), c being the information of
the people and V the noise of their table. So the test would not have been passed with z within some
interval, and z has its law outside of it (Lee and others 2016). A strength is left out only if less
than half of what the level leaves lies beyond. Where a test was passed by far, nothing changes.
Whether the pair was the one to be tested depends on its people, too; that is not counted.
"""

from __future__ import annotations

import numpy as np

from privfield.estimation.uncertainty.tails import above
from privfield.estimation.uncertainty.two_by_two import FAR, Curves
from privfield.inference.factors import Table

_HALVINGS = 50
_TINY = 1e-12


def chosen_chance(curves: Curves, passed: Table, chance: Table) -> Table:
    """The p-value that there is no edge, given by how many people each test was passed."""
    return np.asarray(np.clip(2 * _beyond(curves, passed, np.zeros_like(passed)), chance, 1.0))


def chosen_ends(
    curves: Curves, passed: Table, level: float, low: Table, high: Table
) -> tuple[Table, Table]:
    """The ends of intervals, the one towards no link (or beyond it) moved as far as that says."""
    side = np.where(curves.z(np.zeros_like(passed)) > 0, 1.0, -1.0)
    start = np.clip(np.where(side > 0, low, -high), -FAR, FAR)
    near, far = start.copy(), np.full_like(start, -FAR)
    for _ in range(_HALVINGS):
        middle = (near + far) / 2
        held = _beyond(curves, passed, side * middle) >= (1 - level) / 2
        near, far = np.where(held, middle, near), np.where(held, far, middle)
    near = np.where(near < -0.99 * FAR, -np.inf, near)
    return (
        np.where(side > 0, np.minimum(low, near), low),
        np.where(side > 0, high, np.maximum(high, -near)),
    )


def _beyond(curves: Curves, passed: Table, t: Table) -> Table:
    """The chance to lie as far to the side of the sum, given that a test was passed by so much."""
    zero = curves.z(np.zeros_like(passed))
    side = np.where(zero > 0, 1.0, -1.0)
    z, (variance, share) = side * curves.z(t), curves.spread(t)
    moved = 2 * np.maximum(variance - curves.noise, _TINY) / np.sqrt(variance)
    distance = 2 * np.abs(zero) * np.sqrt(curves.spread(np.zeros_like(passed))[0])
    near = above(z - passed / moved, share)  # passed as it was, and on the other side of no link
    across = above((2 * distance - passed) / moved - z, share)
    return np.asarray(above(z, share) / np.maximum(near + across, _TINY))
