"""Does a mechanism keep its promise? Every neighbour on a tiny domain, and the draws it makes.

One data set leads: what its run draws is written to a journal, and its neighbour's run reads the
same outcomes back. Then both must ask for the same laws at the same steps, what each step tells
about which of the two it was must add up to the cost at most, and both must release the same.
docs/privacy/mechanisms.md says why this is the definition, step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from privfield.errors import InputError
from privfield.privacy.budgets import Budget, Cost, NonPrivate
from privfield.privacy.coins import Coins, Words
from privfield.privacy.laws import total_loss
from privfield.privacy.mechanism import Mechanism, MemoryJournal, World
from privfield.privacy.randomness import Draw, Likeliest, Randomness

_DIFFERENT = "neighbours take different steps, or draw from different laws"
SLACK = 1 + Fraction(1, 10**9)  # what floats in the noise scales may hide


@dataclass(frozen=True)
class Kept:
    """What was looked at: `share` of the cost that the worst pair of neighbours used."""

    pairs: int
    share: float
    problem: str | None = None


def check_world(world: World, seeds: Iterable[int] = (0, 1)) -> Kept:
    """The largest share of the cost over all neighbours; a problem in words if it is broken."""
    worst, pairs = 0.0, 0
    cost, budget = world.mechanism.cost, world.mechanism.terms.budget
    if isinstance(budget, Budget) and isinstance(cost, Budget) and not cost <= budget:
        return Kept(0, worst, f"{world.name}: the stated {cost} is above the budget {budget}")
    leads: dict[int | None, _Lead] = {}
    before: Any = leads  # no data set
    for data, neighbour in world.neighbours():
        if data is not before:
            leads, before = {}, data
        for seed in (*seeds, None) if world.seldom else seeds:
            pairs += 1
            if seed not in leads:
                leads[seed] = _Lead.of(world.mechanism, data, seed)
            share, problem = _follow(world.mechanism, leads[seed], neighbour, seed)
            worst = max(worst, share)
            if problem is not None:
                return Kept(pairs, worst, f"{world.name}: {problem}")
    return Kept(pairs, worst)


class Coupling:
    """Lets the records of a neighbour keep their coins, as the proofs do: docs/privacy/coins.md.

    The first run leads. In the next, records with a name that the first has not seen get the coins
    of those that are gone. Names change places in a function that is random anyway, so this is a
    run as likely as any other.
    """

    def __init__(self, led: Mapping[int, Mapping[bytes, int]] | None = None) -> None:
        self._led = {step: dict(coins) for step, coins in (led or {}).items()}

    def again(self) -> Coupling:
        """The same for one more neighbour."""
        return Coupling(self._led)

    def __call__(self, step: int, coins: Coins) -> Coins:
        """The coins of a step."""
        return _Coupled(coins.key, self._led.setdefault(step, {}))


@dataclass(frozen=True)
class _Coupled(Coins):
    led: dict[bytes, int]

    def words(self, names: Words) -> Words:
        found, keys = super().words(names), [name.tobytes() for name in names]
        if not self.led:
            self.led.update(zip(keys, found.tolist(), strict=True))
            return found
        own = set(keys)
        gone = iter([word for name, word in self.led.items() if name not in own])
        for place, key in enumerate(keys):
            word = self.led.get(key)
            found[place] = next(gone, found[place]) if word is None else word
        return found


def watched(
    mechanism: Mechanism[Any],
    data: Any,
    seed: int | None,
    journal: MemoryJournal,
    couple: Callable[[int, Coins], Coins] | None = None,
) -> tuple[list[Draw], bytes]:
    """The draws of a run on made-up records, and what it releases.

    Without a seed every step gives out what is likeliest.
    """
    draws: list[Draw] = []
    source: Randomness = Likeliest(0, journal, draws.append, couple)
    if seed is not None:
        source = Randomness(seed, journal, draws.append, couple)
    released = mechanism.open(data)(source)
    return draws, released.to_bytes()


@dataclass(frozen=True)
class _Lead:
    """The run of a data set that its neighbours follow."""

    draws: list[Draw]
    released: bytes
    journal: MemoryJournal
    couple: Coupling

    @classmethod
    def of(cls, mechanism: Mechanism[Any], data: Any, seed: int | None) -> _Lead:
        journal, couple = MemoryJournal(), Coupling()
        return cls(*watched(mechanism, data, seed, journal, couple), journal, couple)


def _follow(
    mechanism: Mechanism[Any], lead: _Lead, neighbour: Any, seed: int | None
) -> tuple[float, str | None]:
    """The share of the cost that tells a neighbour from the data set that led, or a problem."""
    leading, released = lead.draws, lead.released
    journal, couple = MemoryJournal(dict(lead.journal.kept)), lead.couple.again()
    try:
        following, again = watched(mechanism, neighbour, seed, journal, couple)
    except InputError:  # the journal answers another question
        return 1.0, _DIFFERENT
    mine = [(draw.step, draw.law, draw.values.shape) for draw in leading]
    yours = [(draw.step, draw.law, draw.values.shape) for draw in following]
    if mine != yours:
        return 1.0, _DIFFERENT
    if released != again:
        return 1.0, "what is released depends on records beyond what was drawn"
    cost = mechanism.cost
    if isinstance(cost, NonPrivate):
        return 0.0, None
    pairs = [(a.law, a.values, b.values) for a, b in zip(leading, following, strict=True)]
    spent = total_loss(pairs, cost)
    share = _share(spent, cost)
    if not spent <= cost.as_cost() * SLACK:
        return share, f"a pair of neighbours costs {spent}, above the stated {cost}"
    return share, None


def _share(spent: Cost, cost: Budget) -> float:
    whole = cost.as_cost()
    if whole.exact_epsilon is not None and spent.exact_epsilon is not None:
        return float(spent.exact_epsilon / whole.exact_epsilon) if whole.exact_epsilon else 0.0
    if whole.exact_gaussian and spent.exact_gaussian is not None:
        return float(spent.exact_gaussian / whole.exact_gaussian)
    return float(spent.exact_rho / whole.exact_rho) if whole.exact_rho else 0.0
