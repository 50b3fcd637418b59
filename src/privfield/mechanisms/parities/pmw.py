"""Private multiplicative weights over all 2^p states, offline: docs/privacy/parities.md."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.mechanisms.parities.answers import parity_sets
from privfield.privacy.adjacency import Adjacency, Sensitivity
from privfield.privacy.noise import NoiseLaw, add_noise, gaussian_scale
from privfield.privacy.randomness import Entropy
from privfield.privacy.released import tell
from privfield.privacy.selection import exponential_mechanism, selection_scale_zcdp
from privfield.progress import Progress, ProgressCallback

_MOST_ROUNDS = 1_000
_REUSED = 3  # old measurements that are applied again in each round

Floats = NDArray[np.float64]


def pmw(
    counts: NDArray[np.int64],
    variables: int,
    order: int,
    rows: int,
    rho: Fraction,
    *,
    adjacency: Adjacency,
    rounds: int | None = None,
    entropy: Entropy,
    progress: ProgressCallback | None = None,
) -> tuple[Floats, dict[str, Any]]:
    """Answers to all parities, ρ-zCDP, from their exact sums, and how it was done (public).

    A distribution over all states starts uniform. In each round the exponential mechanism picks a
    parity that it answers badly, the sum of this one is measured with noise, and the distribution
    is tilted towards what was measured, now and a few times before. Answers are averaged over the
    second half of the rounds. `rows` is public: sums are divided by it.
    """
    turns = rounds or default_rounds(variables, len(counts), rows, rho)
    part = rho / (2 * turns)  # of each selection, and of each measurement
    reach = 1 if adjacency is Adjacency.ADD_REMOVE else 2  # how far one row moves a sum
    select = selection_scale_zcdp(2 * reach, part)
    law = NoiseLaw("discrete-gaussian", gaussian_scale(Sensitivity(reach, reach**2), part))
    seed = None if entropy.secure else entropy.bits(32)
    noise: list[int] = add_noise(np.zeros(turns, np.int64), law, seed).tolist()  # of all rounds
    synthetic = Synthetic(variables, order)
    total = np.zeros(len(counts))
    chosen, measured = [], []
    for turn in range(turns):
        answers = synthetic.answers
        if turn > turns // 2:
            total += answers
        scores = np.abs(counts - np.rint(rows * answers).astype(np.int64))
        pick = exponential_mechanism(scores, select, entropy=entropy)
        noisy = int(counts[pick]) + noise[turn]
        synthetic.learn(pick, min(1.0, max(-1.0, noisy / rows)))
        chosen.append(pick)
        measured.append(noisy)
        tell(progress, Progress("PMW", turn + 1))
    total += synthetic.answers
    about = {
        "rounds": turns,
        "selection_scale": float(select),
        "noise_scale": law.scale,
        "chosen": chosen,
        "measured": measured,
    }
    return total / len(range(turns // 2, turns)), about


def default_rounds(variables: int, parities: int, rows: int, rho: Fraction) -> int:
    """A quarter of the number that is best for the proved bound, from 2p to 1,000.

    That number, √(2p ln 2)·n·√ρ / (2 + 2 ln|Q|), assumes the worst at every step. The quarter was
    chosen by simulation: docs/privacy/parities.md.
    """
    best = math.sqrt(2 * variables * math.log(2)) * rows * math.sqrt(rho)
    best /= 2 * (1 + math.log(parities))
    return math.ceil(min(_MOST_ROUNDS, max(2 * variables, best / 4)))


class Synthetic:
    """A distribution over {−1,+1}^p that is tilted, one measured parity at a time. No data here."""

    def __init__(self, variables: int, order: int) -> None:
        sets = parity_sets(variables, order)
        self._places = np.array([sum(1 << j for j in chosen) for chosen in sets], np.int64)
        self._density = np.full(1 << variables, 2.0**-variables)
        self._spare = np.empty_like(self._density)
        self._picks: list[int] = []
        self._targets: list[float] = []
        self.answers: Floats = np.zeros(len(sets))
        """To all parities, in the order of `parity_sets`."""

    def learn(self, pick: int, target: float) -> None:
        """Tilt towards parity number `pick` = `target`, and towards what it misses most of old."""
        from privfield.mechanisms.parities.pmw_kernels import answer_all, answer_one

        self._tilt(pick, target, float(self.answers[pick]))
        missed = np.abs(self.answers[self._picks] - self._targets)
        for old in np.argsort(-missed)[:_REUSED].tolist():
            pick_again = self._picks[old]
            now = answer_one(self._density, self._places[pick_again])
            self._tilt(pick_again, self._targets[old], now)
        self._picks.append(pick)
        self._targets.append(target)
        answers = np.empty_like(self.answers)
        answer_all(self._density, self._spare, self._places, answers)
        self.answers = answers

    def _tilt(self, pick: int, target: float, now: float) -> None:
        """density(x) ← density(x) · exp(parity(x) · (target − now)), summing to one again."""
        from privfield.mechanisms.parities.pmw_kernels import multiply_parity

        up = math.exp(target - now)
        total = ((1 + now) * up + (1 - now) / up) / 2
        multiply_parity(self._density, self._places[pick], up / total, 1 / up / total)
