"""How likely a pair that a private search passed over is linked all the same.

A test that fails is a noisy number around the excess of its pair. A pair that was never selected
was left over several times, in each of the last rounds of the search; had it been selected, its
test might have failed. Forecasts say so beforehand, and intervals afterwards.
"""

from __future__ import annotations

import math

import numpy as np

from privfield.inference.factors import Table

DEVIATIONS = 1.5  # of a test's noise, that a threshold is at least
MOST_MEAN_RISK = 0.05  # of all chosen pairs together: beyond, the search itself was too noisy
MOST_LOG = 50.0
TINY = 1e-9
_SELECTING = math.sqrt(0.5)  # scale of a choice, in deviations of a test: it gets twice its share
_MOST_DENSE = 0.5
_ROUNDS = 50
_HALF_NORMAL = math.sqrt(2 / math.pi)


def excess_of(moves: Table, cells: Table, people: float) -> Table:
    """How far a link that moves a table by so much stands out of the distance that chance makes."""
    by_chance = _HALF_NORMAL * np.sqrt(people * np.maximum(cells - 1, 0))
    return np.asarray(np.hypot(moves, by_chance) - by_chance)


def passed_over_odds(excess: Table, threshold: float, misses: int, left: float) -> Table:
    """How much more likely pairs are passed over if they are linked than if they are not.

    `misses` tests failed in a row at the end, when so many pairs were `left`.
    """
    from scipy.special import ndtr

    spread = max(threshold / DEVIATIONS, TINY)
    taken = 1 / (1 + left * np.exp(-np.minimum(excess / (_SELECTING * spread), MOST_LOG)))
    never = (1 - taken) ** misses
    return np.asarray(never + (1 - never) * (1 - ndtr((excess - threshold) / spread)))


def link_chances(odds: Table, found: float) -> Table:
    """That each pair with these odds is linked as strongly as the `found` ones.

    How many pairs are linked at all is estimated with it: those that were found, and these.
    """
    chances = np.zeros(len(odds))
    for _ in range(_ROUNDS):
        dense = min((found + float(chances.sum()) + 1) / (found + len(odds) + 2), _MOST_DENSE)
        chances = dense * odds / (1 - dense + dense * odds)
    return chances
