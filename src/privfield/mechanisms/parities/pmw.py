"""Private multiplicative weights over all 2^p states, offline: docs/privacy/parities.md."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privfield.errors import InputError
from privfield.mechanisms.parities.answers import Method, ParityAnswers, parity_sets
from privfield.mechanisms.parities.base import ParityRounds, small_signs
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.laws import Choice, Noise
from privfield.privacy.mechanism import World
from privfield.privacy.noise import NoiseLaw
from privfield.privacy.randomness import Randomness
from privfield.privacy.rounding import sqrt_above
from privfield.privacy.selection import selection_scale_zcdp
from privfield.privacy.terms import Terms
from privfield.words import bytes_text

MOST_VARIABLES = 20
_MOST_ROUNDS = 1_000
_REUSED = 3  # old measurements that are applied again in each round

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MultiplicativeWeights(ParityRounds):
    """A distribution over all states that is tilted towards one measured parity after the other.

    It starts uniform. In each round the exponential mechanism picks a parity that it answers badly,
    the sum of this one is measured with noise, and the distribution is tilted towards what was
    measured, now and a few times before. Answers are averaged over the second half of the rounds.
    """

    noun = "parities by multiplicative weights"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.variables > MOST_VARIABLES:
            raise InputError(
                f"method='pmw' keeps a weight for each of 2^{self.variables} states, "
                f"{bytes_text(8 * 2.0**self.variables)} of memory; it is for up to "
                f"{MOST_VARIABLES} variables. Use method='gaussian' or 'sepfem'."
            )

    @property
    def method(self) -> Method:
        """Its name among the methods."""
        return "pmw"

    def _answer(
        self, counts: NDArray[np.int64], rows: int, randomness: Randomness
    ) -> ParityAnswers:
        divisor = self.public_rows(rows)
        turns = self.rounds or default_rounds(self.variables, len(counts), divisor, self.row_rho)
        part = self.row_rho / (2 * turns)  # of each selection, and of each measurement
        reach = 1 if self.terms.adjacency is Adjacency.ADD_REMOVE else 2  # of one row, on a sum
        scale = selection_scale_zcdp(2 * reach, part)
        law = NoiseLaw("discrete-gaussian", sqrt_above(reach**2 / (2 * part)))
        select, measure = Choice((scale,)), Noise.on(law, 1)
        synthetic = Synthetic(self.variables, self.order)
        total = np.zeros(len(counts))
        chosen, measured = [], []
        for turn in range(turns):
            answers = synthetic.answers
            if turn > turns // 2:
                total += answers
            scores = np.abs(counts - np.rint(divisor * answers).astype(np.int64))
            pick = int(randomness.draw("which parity", select, scores)[0])
            noisy = int(randomness.draw("its sum", measure, counts[pick : pick + 1])[0])
            synthetic.learn(pick, min(1.0, max(-1.0, noisy / divisor)))
            chosen.append(pick)
            measured.append(noisy)
            self.terms.tell("PMW", turn + 1)
        total += synthetic.answers
        about = {
            "rounds": turns,
            "selection_scale": float(scale),
            "noise_scale": law.scale,
            "chosen": chosen,
            "measured": measured,
        }
        mean = total / len(range(turns // 2, turns))
        return self._released(mean, divisor, rows, about=about)

    @classmethod
    def worlds(cls, terms: Terms) -> Iterator[World]:
        """Two variables, two rounds; three variables, one round."""
        for variables, rounds in ((2, 2), (3, 1)):
            for here, schema, units, build, name in small_signs(terms, variables):
                mechanism = cls(
                    here,
                    names=schema.names,
                    order=2,
                    schema=schema,
                    rounds=rounds,
                    declared_rows=3,
                )
                starts = [units[:2], units[-2:]]
                yield World(mechanism, units, build, starts, f"{variables} variables, {name}")


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
        from privfield.mechanisms.parities.kernels import answer_all, answer_one

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
        from privfield.mechanisms.parities.kernels import multiply_parity

        up = math.exp(target - now)
        total = ((1 + now) * up + (1 - now) / up) / 2
        multiply_parity(self._density, self._places[pick], up / total, 1 / up / total)
