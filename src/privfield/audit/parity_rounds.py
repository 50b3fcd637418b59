"""Parities in rounds (PMW and sepFEM): what one record does to every choice and measurement."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.audit.finding import (
    Finding,
    bounded,
    drawn,
    log_likelihood,
    remove_one,
    replace_one,
)
from privfield.audit.primitives.selection import softmax
from privfield.mechanisms.parities.counts import sum_parities
from privfield.mechanisms.parities.pmw import Synthetic, pmw
from privfield.mechanisms.parities.sepfem import range_sensitivity, signed_scores
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.noise import NoiseLaw
from privfield.privacy.randomness import Entropy
from privfield.privacy.selection import selection_scale_zcdp

_PMW_PAGE, _SEPFEM_PAGE = "parities.md", "parities-sepfem.md"
_P, _ORDER, _ROWS = 3, 2, 2
_PATHS, _ROUNDS = 20, 4
_DRAWS = 800
_RHO = Fraction(1, 2)

Sums = NDArray[np.int64]


def audit_parity_rounds() -> list[Finding]:
    """Three variables, two rows, whatever was answered so far."""
    how = f"every table of {_ROWS} rows of {_P} variables, every neighbour, {_PATHS} random states"
    found = []
    for adjacency in (Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE):
        for name, loss, page in (
            ("PMW", _pmw_loss, _PMW_PAGE),
            ("sepFEM", _sepfem_loss, _SEPFEM_PAGE),
        ):
            mechanism = f"parities by {name} ({adjacency})"
            found.append(bounded(mechanism, "ρ", float(_RHO), loss(adjacency), how, page))
    return [*found, *_draws()]


def _pairs(adjacency: Adjacency) -> Iterator[tuple[Sums, Sums]]:
    """The sums of all neighbouring tables."""
    rows = list(product((-1, 1), repeat=_P))

    def sums(data: tuple[Any, ...]) -> Sums:
        table = np.array(data, np.int8).reshape(-1, _P)
        return np.asarray(sum_parities([table], _P, _ORDER)[0])

    for data in combinations_with_replacement(rows, _ROWS):
        public = adjacency is Adjacency.REPLACE_ONE
        for other in replace_one(data, rows) if public else remove_one(data):
            yield sums(data), sums(other)


def _worst_choice(
    adjacency: Adjacency, scores: Callable[[Sums, NDArray[Any]], Sums], scale: float, states: Any
) -> float:
    """(range/τ)²/8, the largest over neighbours and over what was answered before."""
    worst = 0.0
    for one, other in _pairs(adjacency):
        for state in states:
            change = scores(one, state) - scores(other, state)
            worst = max(worst, (float(change.max() - change.min()) / scale) ** 2 / 8)
    return worst


def _pmw_loss(adjacency: Adjacency) -> float:
    """All rounds: a choice and a noisy sum each, with the scales that PMW says it used."""
    counts = np.zeros(6, np.int64)
    _, about = pmw(
        *(counts, _P, _ORDER, _ROWS, _RHO),
        adjacency=adjacency,
        rounds=_ROUNDS,
        entropy=Entropy.system(),
    )
    rng = np.random.default_rng(0)
    answers = rng.uniform(-1, 1, (_PATHS, len(counts)))
    choice = _worst_choice(adjacency, _pmw_scores, about["selection_scale"], answers)
    move = max(float(np.abs(one - other).max()) for one, other in _pairs(adjacency))
    return float(about["rounds"] * (choice + (move / about["noise_scale"]) ** 2 / 2))


def _pmw_scores(counts: Sums, answers: NDArray[Any]) -> Sums:
    return np.asarray(np.abs(counts - np.rint(_ROWS * answers).astype(np.int64)))


def _sepfem_loss(adjacency: Adjacency) -> float:
    """All rounds: one choice each among signed parities."""
    draws, rng = 5, np.random.default_rng(0)
    drawn_states = [
        sum_parities([rng.choice(np.array([-1, 1], np.int8), (draws, _P))], _P, _ORDER)[0]
        for _ in range(_PATHS)
    ]
    scale = float(selection_scale_zcdp(draws * range_sensitivity(adjacency), _RHO / _ROUNDS))

    def scores(counts: Sums, state: NDArray[Any]) -> Sums:
        return signed_scores(counts, state, _ROWS, draws)

    return _ROUNDS * _worst_choice(adjacency, scores, scale, drawn_states)


def _draws() -> list[Finding]:
    """A real run of PMW: what it chose, and the noise that it added."""
    counts, rows = np.array([40, -20, 0, 30, 10, -10], np.int64), 100
    _, about = pmw(
        *(counts, _P, _ORDER, rows, Fraction(400)),
        adjacency=Adjacency.REPLACE_ONE,
        rounds=_DRAWS,
        entropy=Entropy.system(),
    )
    noise = np.array(about["measured"]) - counts[about["chosen"]]
    law = NoiseLaw("discrete-gaussian", about["noise_scale"])
    claimed = halved = 0.0
    synthetic = Synthetic(_P, _ORDER)
    for pick, noisy in zip(about["chosen"], about["measured"], strict=True):
        scores = np.abs(counts - np.rint(rows * synthetic.answers).astype(np.int64)).tolist()
        claimed += float(np.log(softmax(scores, about["selection_scale"])[pick]))
        halved += float(np.log(softmax(scores, about["selection_scale"] / 2)[pick]))
        synthetic.learn(pick, min(1.0, max(-1.0, noisy / rows)))
    sums = log_likelihood(noise, law), log_likelihood(noise, law, 0.5)
    return [
        drawn("parities by PMW, choices", claimed, halved, _DRAWS, _PMW_PAGE),
        drawn("parities by PMW, sums", *sums, _DRAWS, _PMW_PAGE),
    ]
