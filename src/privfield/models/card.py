"""Where a model comes from: what was protected, what it cost, how it was made.

A card travels with its model: `attach` puts it on, `save` writes it, `pf.load` restores it. It
changes nothing about the distribution. What it says is public.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from privfield._version import __version__
from privfield.errors import InputError
from privfield.models.solution import Solution
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import Budget, NonPrivate
from privfield.privacy.released import Released, cost_from_json, cost_to_json

M = TypeVar("M")

GAPS = (  # a note
    "Links are those among those who answered: a gap is no answer. Gaps are counted, and no row is "
    "dropped."
)


class Site(NamedTuple):
    """One site of a pooled model; a number of people that is not whole is a noisy one."""

    name: str
    people: int | float
    promise: str


@dataclass(frozen=True)
class Card:
    """What a reader of a fitted model needs to know. None stands for "not known".

    `unit` is whose data is protected, in words; `cost` what was really spent, `budget` what was
    allowed. `rows` is the number of rows where that is public. `ledger` is the file name of the
    ledger, `job` the charge in it and `charged` its time. `levels_are_public` says that the
    schema's levels were read off the data because its owner declared them public. `intervals` maps
    parameters to (estimate, low, high) at `level`, where the learner gives them. `sites` are those
    of a pooled model. `stamp` is the model's: why it protects nobody, whatever was spent.
    """

    unit: str = "row"
    adjacency: Adjacency | None = None
    cost: Budget | NonPrivate | None = None
    budget: Budget | NonPrivate | None = None
    method: str | None = None
    noise: str | None = None
    rows: int | float | None = None
    ledger: str | None = None
    job: str | None = None
    charged: str | None = None
    created: str = field(default_factory=lambda: datetime.now(UTC).date().isoformat())
    version: str = __version__
    levels_are_public: bool = False
    notes: tuple[str, ...] = ()
    intervals: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    level: float = 0.95
    sites: tuple[Site, ...] = ()
    stamp: str | None = None

    def __post_init__(self) -> None:
        _check(self)

    def promise(self) -> str:
        """The privacy guarantee in one line; an empty text where none is known."""
        if self.stamp is not None:
            return f"none. {self.stamp}"
        if not isinstance(self.cost, Budget):
            return "" if self.cost is None else "none: no noise was added"
        relation = "" if self.adjacency is None else f", {self.adjacency} neighbours"
        return f"{guarantee(self.cost, self.budget)} for one {self.unit}{relation}"

    def to_json(self) -> dict[str, Any]:
        """Exact, as JSON values; `from_json` gives the same card back."""
        return {
            **{name: getattr(self, name) for name in _PLAIN},
            "adjacency": None if self.adjacency is None else str(self.adjacency),
            "cost": cost_to_json(self.cost),
            "budget": cost_to_json(self.budget),
            "notes": list(self.notes),
            "intervals": {name: list(map(float, three)) for name, three in self.intervals.items()},
            **({"sites": [list(site) for site in self.sites]} if self.sites else {}),
            **({"stamp": self.stamp} if self.stamp is not None else {}),
        }

    @classmethod
    def from_json(cls, data: Any) -> Card:
        """Undo `to_json`; anything else is an `InputError`."""
        try:
            adjacency = data["adjacency"]
            if not isinstance(data["notes"], list):
                raise TypeError
            return cls(
                **{name: data[name] for name in _PLAIN},
                adjacency=None if adjacency is None else Adjacency.parse(adjacency),
                cost=cost_from_json(data["cost"]),
                budget=cost_from_json(data["budget"]),
                notes=tuple(data["notes"]),
                intervals={name: tuple(three) for name, three in data["intervals"].items()},
                sites=tuple(Site(*site) for site in data.get("sites", [])),
                stamp=data.get("stamp"),
            )
        except (KeyError, TypeError, ValueError, AttributeError):  # InputError too
            raise InputError("a model card is damaged.") from None


_PLAIN = (
    *("unit", "method", "noise", "rows", "ledger", "job", "charged", "created", "version"),
    *("levels_are_public", "level"),
)
_KINDS: tuple[tuple[tuple[str, ...], Any, str], ...] = (
    (("unit", "created", "version"), str, "text"),
    (("method", "noise", "ledger", "job", "charged", "stamp"), str | None, "text or None"),
    (("cost", "budget"), Budget | NonPrivate | None, "a budget or None"),
    (("levels_are_public",), bool, "True or False"),
)


def guarantee(cost: Budget, budget: Budget | NonPrivate | None = None) -> str:
    """A privacy cost in the words of papers, with the (ε, δ) that was asked for where it holds."""
    from privfield.privacy.budgets import ZCDP, ApproxDP, GaussianDP, PureDP

    asked = ""
    if isinstance(budget, ApproxDP) and budget.delta > 0 and cost <= budget:
        asked = f"(ε = {budget.epsilon:g}, δ = {budget.delta:g})-differential privacy"
    if isinstance(cost, PureDP):
        return f"ε-differential privacy with ε = {cost.epsilon:g}"
    if isinstance(cost, GaussianDP):
        spent = f"Gaussian differential privacy with μ = {cost.mu:.4g}, ρ = μ²/2 = {cost.rho:.4g}"
        return f"{asked} ({spent})" if asked else spent
    if isinstance(cost, ZCDP):
        spent = f"ρ-zero-concentrated differential privacy with ρ = {cost.rho:.4g}"
        return f"{asked} ({spent})" if asked else spent
    if isinstance(cost, ApproxDP):
        return f"(ε = {cost.epsilon:g}, δ = {cost.delta:g})-differential privacy"
    if asked:
        return asked
    if cost.as_cost().epsilon is not None:
        found = cost.as_cost()
        return f"(ε = {found.epsilon:g}, δ = {found.delta:g})-differential privacy"
    found = cost.as_cost()
    return f"δ-approximate zero-concentrated privacy with ρ = {found.rho:.4g}, δ = {found.delta:g}"


def attach(
    model: M,
    card: Card | None = None,
    measurements: Any = None,
    solution: Solution | None = None,
    ended: NDArray[np.float64] | None = None,
) -> M:
    """Put a card, what it was estimated from, and how, on a model; the same model comes back.

    None leaves what is there. The numbers of the model are not touched. The card of a stamped model
    is stamped. `ended` are finite numbers of the law of its errors (`estimation.items.law`).
    """
    if card is not None and not isinstance(card, Card):
        raise InputError(f"card must be a Card; got {type(card).__name__}.")
    if measurements is not None and not isinstance(measurements, Released):
        raise InputError(
            f"measurements must be something released; got {type(measurements).__name__}."
        )
    if solution is not None and not isinstance(solution, Solution):
        raise InputError(f"solution must be a Solution; got {type(solution).__name__}.")
    stamp = getattr(model, "stamp", None)
    if card is not None and card.stamp is None and stamp is not None:
        card = replace(card, stamp=stamp)  # its cost is no promise
    known = {"card": card, "measurements": measurements, "solution": solution, "ended": ended}
    for name, value in known.items():
        if value is not None:
            object.__setattr__(model, name, value)  # models are frozen
    return model


def _check(card: Card) -> None:
    """Refuse what a file could not hold, or what would show as nonsense."""
    for names, kind, what in _KINDS:
        for name in names:
            if not isinstance(getattr(card, name), kind):
                raise InputError(f"{name} of a card must be {what}.")
    try:
        date.fromisoformat(card.created)
    except ValueError:
        raise InputError("created of a card must be a date such as 2026-01-31.") from None
    number = isinstance(card.rows, int | float) and not isinstance(card.rows, bool)
    if card.rows is not None and not (number and 0 <= card.rows < float("inf")):
        raise InputError(f"rows of a card must be a number from 0 or None; got {card.rows!r}.")
    if not isinstance(card.notes, tuple) or not all(isinstance(note, str) for note in card.notes):
        raise InputError("notes of a card must be texts.")
    for site in card.sites:
        known = isinstance(site.people, int | float) and 0 <= site.people < float("inf")
        if not (known and isinstance(site.name, str) and isinstance(site.promise, str)):
            raise InputError("sites of a card must have a name, a number of people and a promise.")
    if not isinstance(card.level, float) or not 0 < card.level < 1:
        raise InputError(f"level of a card must lie between 0 and 1; got {card.level!r}.")
    for name, three in card.intervals.items():
        numbers = [isinstance(value, int | float) and math.isfinite(value) for value in three]
        if not isinstance(name, str) or numbers != [True] * 3:
            raise InputError("intervals of a card must map names to (estimate, low, high).")
