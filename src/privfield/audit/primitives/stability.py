"""Stable release: its recursion in exact fractions, its stabilities by enumeration, real draws."""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import pairwise, product

from privfield.audit.finding import Finding, drawn
from privfield.privacy.stability import (
    majority_stability,
    may_release,
    mode_stability,
    release_probabilities,
)

_PAGE = "structure.md"
_DRAWS = 4000
_BUDGETS = ((Fraction(1), Fraction(1, 10**6)), (Fraction(1, 2), Fraction(1, 100)))


def audit_stability() -> list[Finding]:
    """The rule and what it rests on."""
    wrong = [str(budget) for budget in _BUDGETS if not _keeps(*budget)]
    return [
        Finding(
            "stable release",
            "(ε, δ) between stabilities s and s + 1",
            "every step keeps it" if not wrong else f"broken at {', '.join(wrong)}",
            not wrong,
            "exact fractions, every s, ε = 1 and δ = 1e-6, ε = 0.5 and δ = 0.01",
            _PAGE,
        ),
        _majority(),
        _mode(),
        _draws(),
    ]


def _keeps(epsilon: Fraction, delta: Fraction) -> bool:
    with localcontext(Context(prec=60)):
        growth = (Decimal(epsilon.numerator) / Decimal(epsilon.denominator)).exp()
        above = Fraction(growth * (1 + Decimal("1e-50")))
    chances = release_probabilities(epsilon, delta)
    return chances[0] <= delta and all(
        low <= high <= above * low + delta and 1 - low <= above * (1 - high) + delta
        for low, high in pairwise(chances)
    )


def _majority() -> Finding:
    """One person changes one of 9 votes: s moves by at most 1, and is 0 where the outcome flips."""
    blocks = 9
    right = True
    for votes in range(blocks):
        pair = majority_stability(votes, blocks), majority_stability(votes + 1, blocks)
        flips = (2 * votes > blocks) != (2 * (votes + 1) > blocks)
        right &= abs(pair[0] - pair[1]) <= 1 and not (flips and max(pair))
    return _finding("stability of a majority", right, f"all votes of {blocks} blocks")


def _mode() -> Finding:
    """All votes of 6 blocks for 3 graphs, and every change of one vote."""
    right = True
    for votes in product(range(3), repeat=6):
        for place, new in product(range(6), range(3)):
            other = (*votes[:place], new, *votes[place + 1 :])
            tallies = [[v.count(graph) for graph in range(3)] for v in (votes, other)]
            pair = [mode_stability(tally) for tally in tallies]
            best = [tally.index(max(tally)) for tally in tallies]
            right &= abs(pair[0] - pair[1]) <= 1 and not (best[0] != best[1] and max(pair))
    return _finding("stability of the most frequent graph", right, "6 blocks, 3 graphs, all votes")


def _finding(mechanism: str, right: bool, how: str) -> Finding:
    claim = "one person moves it by at most 1, and it is 0 where the outcome changes"
    return Finding(mechanism, claim, "so in every case" if right else "broken", right, how, _PAGE)


def _draws() -> Finding:
    """Released as often as claimed, against twice as often."""
    epsilon, delta = _BUDGETS[1]
    chances = release_probabilities(epsilon, delta)
    stability = max(s for s, chance in enumerate(chances) if chance < Fraction(1, 3))
    yes = sum(may_release(stability, epsilon, delta) for _ in range(_DRAWS))
    chance = float(chances[stability])
    claimed, doubled = (
        yes * math.log(p) + (_DRAWS - yes) * math.log1p(-p) for p in (chance, 2 * chance)
    )
    found = drawn("stable release", claimed, doubled, _DRAWS, _PAGE)
    return Finding(
        found.mechanism,
        "released no more often than claimed",
        found.observed.replace("half the noise", "twice as often"),
        found.passed,
        found.how,
        _PAGE,
    )
