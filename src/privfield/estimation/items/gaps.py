"""Who answered what: rates of pairs from noisy totals, and simulated people with such gaps."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from privfield.inference.factors import Table
from privfield.mechanisms.items.sums import ItemSums

_LEAST_RATE = 0.02
_MOST_CORRELATION = 0.99
_LEAST_EIGENVALUE = 1e-3
_SLACK = 3.0  # deviations of two rates that a pair's may be less than they allow


def pair_rates(sums: ItemSums) -> Table:
    """The share of people who answered both of two items; on the diagonal, one.

    As if answering one item said nothing about another, but for a correlation that all pairs have
    in common (some people leave many gaps), and for as much of a pair's own total as exceeds noise.
    """
    p = len(sums.schema)
    rates = np.maximum(sums.answered / sums.rows, _LEAST_RATE)
    found = np.outer(rates, rates)
    spread = np.sqrt(rates * (1 - rates))
    scale = np.outer(spread, spread)
    has_gap = np.array(sums.gaps if sums.gaps is not None else np.zeros(p)) != 0
    first, second = np.triu(np.outer(has_gap, has_gap), 1).nonzero()
    if sums.together is not None and len(first):
        own, noise = scale[first, second], sums.laws[4].deviation / sums.rows
        excess = sums.together[first, second] / sums.rows - found[first, second]
        common = float(np.clip(excess @ own / max(own @ own, 1e-12), 0, _MOST_CORRELATION))
        rest = excess - common * own
        beyond = max(0.0, float((rest**2).mean()) - noise**2)
        found[first, second] += common * own + rest * beyond / (beyond + noise**2 + 1e-300)
        found[second, first] = found[first, second]
    slack = _SLACK * math.sqrt(2) * _deviation(sums) / sums.rows
    least = np.maximum(rates[:, None] + rates - 1 - slack, _LEAST_RATE**2)
    found = np.clip(found, least, np.minimum(rates[:, None], rates))
    found[np.diag_indices(p)] = rates
    return np.asarray(found)


def _deviation(sums: ItemSums) -> float:
    """Of how many answered an item."""
    return 0.0 if sums.noise == "none" else sums.laws[0].deviation


def answered_by(sums: ItemSums, people: int, rng: np.random.Generator) -> NDArray[np.bool_] | None:
    """Which items simulated people answered; None where there are no gaps.

    They answer where correlated normal numbers are low: pairs go together about as often as they
    should. What exactly comes out is for the caller to count.
    """
    if sums.gaps is None:
        return None
    from scipy.special import ndtri

    rates = pair_rates(sums)
    own = rates.diagonal()
    spread = np.sqrt(np.maximum(own * (1 - own), 1e-12))
    phi = (rates - np.outer(own, own)) / np.outer(spread, spread)
    normal = np.sin(np.clip(phi, -1, 1) * math.pi / 2)  # exact at rates of one half
    np.fill_diagonal(normal, 1.0)
    values, vectors = np.linalg.eigh(normal)
    root = vectors * np.sqrt(np.maximum(values, _LEAST_EIGENVALUE))
    root /= np.linalg.norm(root, axis=1, keepdims=True)
    drawn = rng.standard_normal((people, len(own))) @ root.T
    return np.asarray(drawn <= ndtri(np.minimum(own, 1 - 1e-12)) + 1e9 * (own >= 1))
