"""The two laws of outcomes on a network that are not plain noise, with exact probabilities.

docs/privacy/peer-effects.md holds the proofs.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise
from typing import Self

import numpy as np

from privfield.privacy.budgets import PI, Cost
from privfield.privacy.laws import UNBOUNDED, Law, Noise, Whole
from privfield.privacy.noise import NoiseLaw
from privfield.privacy.randomness import Entropy, Lazy
from privfield.privacy.rounding import decimals, to_decimal
from privfield.privacy.selection import bernoulli_exp

_CONTEXT = decimals(60)
_ROUNDING = Fraction(1, 10**30)  # added to losses: sums of decimals err by far less


@dataclass(frozen=True)
class Ladder(Law):
    """A whole number with probability ∝ exp(−ε k/2), k its rung around the true count.

    Values are the true count and the largest pull s of the data; rung k ≥ 1 holds
    min(ceiling, s + slope·(k−1)) numbers on either side. The outcome is the noisy count.
    """

    epsilon: Fraction
    ceiling: int
    slope: int

    def draw(self, values: Whole, entropy: Entropy) -> Whole:
        """By rejection, in whole numbers: exact, of random length."""
        count, pull = values.tolist()
        while True:
            rung = 0
            while bernoulli_exp(self.epsilon / 2, entropy):
                rung += 1
            size = 1 if rung == 0 else 2 * self.width(pull, rung)
            if entropy.below(2 * self.ceiling) >= size:
                continue
            if rung == 0:
                return np.array([count], np.int64)
            place = self.inside(pull, rung) + 1 + entropy.below(size // 2)
            return np.array([count + place if entropy.bits(1) else count - place], np.int64)

    def likeliest(self, values: Whole) -> Whole:
        """The count."""
        return values[:1]

    def width(self, pull: int, rung: int) -> int:
        """How many numbers on either side are in rung k ≥ 1; it bounds a flip k−1 flips on."""
        return rung_width(pull, self.ceiling, self.slope, rung)

    def inside(self, pull: int, rung: int) -> int:
        """The sum of the widths of rungs 1, …, k−1."""
        steps = max(rung - 1, 0)
        rising = min(steps, self._rising(pull))
        rise = self.slope * (rising * (rising - 1) // 2)
        return rising * pull + rise + (steps - rising) * self.ceiling

    def rung(self, pull: int, distance: int) -> int:
        """The rung of a number that far from the true count."""
        least = 1
        while self.inside(pull, least + 1) < distance:
            least *= 2
        return bisect_left(range(least + 1), distance, key=lambda k: self.inside(pull, k + 1))

    def loss(self, values: Whole, others: Whole) -> Cost:
        """ε = max |log p/p'|; ρ = W²/8, μ²/2 = πW²/16, W the range of log p/p' over all outcomes.

        log p/p' = ε(k' − k)/2 + log Z'/Z, and k' − k changes only where a rung begins. Far out both
        ladders are at the ceiling, and it repeats.
        """
        if np.array_equal(values, others):
            return Cost(0, 0, 0)
        (count, pull), (other, pulled) = values.tolist(), others.tolist()
        ends = [self.inside(each, self._rising(each) + 1) for each in (pull, pulled)]
        reach = abs(count - other) + max(ends) + 2 * self.ceiling
        moves = set()
        for middle, own in ((count, pull), (other, pulled)):
            for rung in range(self.rung(own, reach) + 1):
                edge = self.inside(own, rung + 1)
                for place in (middle - edge - 1, middle - edge, middle + edge, middle + edge + 1):
                    mine, yours = abs(place - count), abs(place - other)
                    moves.add(self.rung(pulled, yours) - self.rung(pull, mine))
        least, most = (self.epsilon * move / 2 for move in (min(moves), max(moves)))
        with localcontext(_CONTEXT):
            scale = Fraction((self._total(pulled) / self._total(pull)).ln())
        epsilon = max(abs(least + scale), abs(most + scale)) + _ROUNDING
        width = most - least
        return Cost(width**2 / 8, 0, epsilon, PI / 16 * width**2)

    def quieter(self, factor: Fraction) -> Self:
        """A larger ε."""
        return replace(self, epsilon=self.epsilon * factor)

    def _rising(self, pull: int) -> int:
        """How many rungs are narrower than the ceiling."""
        return max(0, -((pull - self.ceiling) // self.slope))

    def _total(self, pull: int) -> Decimal:
        """Z = 1 + 2 Σ_k width_k exp(−ε k/2)."""
        shrink = to_decimal(-self.epsilon / 2, _CONTEXT).exp()
        total, power = Decimal(1), shrink
        for rung in range(1, self._rising(pull) + 1):
            total += 2 * self.width(pull, rung) * power
            power *= shrink
        return total + 2 * self.ceiling * power / (1 - shrink)


def rung_width(pull: int, ceiling: int, slope: int, rung: int) -> int:
    """How many counts on either side have distance `rung` ≥ 1.

    One flip moves each node's pull by at most `slope`, so rung k of a neighbour is no wider than
    rung k + 1 here.
    """
    return min(ceiling, pull + slope * (rung - 1))


@dataclass(frozen=True)
class FirstCrossing(Law):
    """The first threshold that one noise reaches, the last one if it reaches none.

    Values are falling thresholds, whole numbers of any size; they may be `Lazy`, since bisection
    looks at few of them. The outcome is a position.
    """

    noise: NoiseLaw  # discrete Laplace

    def draw(self, values: Whole | Lazy, entropy: Entropy) -> Whole:
        """One noise, then bisection."""
        noise = Noise.on(self.noise, 1).draw(np.zeros(1, np.int64), entropy)
        return np.array([first_crossing(int(noise[0]), values)], np.int64)

    def likeliest(self, values: Whole | Lazy) -> Whole:
        """Where the thresholds cross 0."""
        return np.array([first_crossing(0, values)], np.int64)

    def loss(self, values: Whole, others: Whole) -> Cost:
        """ε = max |log p/p'| over all positions, from the distribution function of the noise."""
        if np.array_equal(values, others):
            return Cost(0, 0, 0)
        with localcontext(_CONTEXT):
            most = least = Decimal(1)
            for mine, yours in zip(self._masses(values), self._masses(others), strict=True):
                if mine is None and yours is None:
                    continue
                if not mine or not yours:
                    return UNBOUNDED
                most, least = max(most, mine / yours), min(least, mine / yours)
            epsilon = Fraction(max(most.ln(), -least.ln())) + _ROUNDING
        return Cost(epsilon**2 / 2, 0, epsilon)

    def quieter(self, factor: Fraction) -> Self:
        """A smaller scale."""
        return replace(self, noise=replace(self.noise, scale=float(self.noise.scale / factor)))

    def _masses(self, thresholds: Whole) -> list[Decimal | None]:
        """The probability of every position; None where no noise leads there."""
        rate = 1 / Fraction(self.noise.scale)
        both = 1 + to_decimal(-rate, _CONTEXT).exp()

        def beyond(least: int) -> Decimal:  # P(noise ≥ least) = P(noise ≤ −least), least ≥ 1
            return to_decimal(-rate * least, _CONTEXT).exp() / both

        ends = [(each, beyond(max(each, 1 - each))) for each in map(int, thresholds[:-1])]
        (first, over), (last, under) = ends[0], ends[-1]
        masses: list[Decimal | None] = [over if first >= 1 else 1 - over]
        for (high, over), (low, under) in pairwise(ends):
            if high <= low:
                masses.append(None)
            elif low >= 1 or high <= 0:  # both ends on one side of 0
                masses.append(abs(under - over))
            else:
                masses.append(1 - over - under)
        return [*masses, under if last <= 0 else 1 - under]


def first_crossing(noise: int, thresholds: Whole | Lazy) -> int:
    """The first position whose threshold is at most `noise`, or the last one; by bisection."""
    low, high = 0, thresholds.shape[0] - 1
    while low < high:
        middle = (low + high) // 2
        if thresholds[middle] <= noise:
            high = middle
        else:
            low = middle + 1
    return low
