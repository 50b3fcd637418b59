"""How well a chain predicts people it has not seen: for the owner, or released for a price.

docs/privacy/chains.md. The model must come from other people, or from an earlier release.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from privfield.data.sequences.read import COLUMNS, Sequences, SequenceSource, StateSet
from privfield.errors import InputError
from privfield.mechanisms.chains.mechanism import check_adjacency
from privfield.models.chain import ChainModel
from privfield.models.saving import model_bytes
from privfield.privacy.adjacency import Adjacency, Sensitivity
from privfield.privacy.budgets import (
    Budget,
    NonPrivate,
    check_budget,
)
from privfield.privacy.ledger import Ledger
from privfield.privacy.mechanism import release
from privfield.privacy.noise import NoiseLaw, add_noise, check_seed, choose_noise
from privfield.privacy.released import stamp_of
from privfield.privacy.rounding import Number, exact

GRID = 1024  # grid steps of one nat
_MOST = 1 << 20  # the largest bound, in nats
PRIVATE = "PRIVATE: for the data's owner"


@dataclass(frozen=True, repr=False)
class OwnerScore:
    """PRIVATE: exact log-likelihood of records. For the data's owner, never to publish or store."""

    log_likelihood: float
    people: int

    @property
    def stamp(self) -> str:
        """Says that nothing protects these numbers."""
        return PRIVATE

    @property
    def mean(self) -> float:
        """Log-likelihood per person, in nats; NaN without people."""
        return self.log_likelihood / self.people if self.people else float("nan")

    def __repr__(self) -> str:
        return (
            f"<{PRIVATE} only, never publish it: log-likelihood {self.log_likelihood:.6g} "
            f"of {self.people:,} people, {self.mean:.6g} each>"
        )


@dataclass(frozen=True, repr=False)
class ReleasedScore:
    """A noisy sum of people's log-likelihoods, each clipped to [−bound, 0], and how many there are.

    `people` is exact where it is public and noisy otherwise. `margin` gives the privacy noise in
    the sum.
    """

    log_likelihood: float
    people: float
    bound: float
    law: NoiseLaw
    people_law: NoiseLaw | None
    cost: Budget | NonPrivate
    adjacency: Adjacency
    stamp: str | None

    @property
    def mean(self) -> float:
        """Clipped log-likelihood per person, in nats, within [−bound, 0]."""
        return float(np.clip(self.log_likelihood / max(self.people, 1.0), -self.bound, 0.0))

    def margin(self, level: float = 0.95) -> float:
        """How far privacy noise moves the sum at most, with that probability."""
        return self.law.margin(level)

    def __repr__(self) -> str:
        stamp = f"{self.stamp}. " if self.stamp else ""
        return (
            f"<{stamp}Log-likelihood {self.log_likelihood:.6g} ± {self.margin():.3g} (95% of the "
            f"privacy noise), {self.mean:.6g} per person, cost {self.cost}, {self.adjacency}>"
        )


def owner_score(
    model: ChainModel,
    sequences: Any,
    states: StateSet,
    people: Any = None,
    columns: tuple[str, str | None, str] = COLUMNS,
) -> OwnerScore:
    """The exact log-likelihood: PRIVATE, for the data's owner only; nothing is charged."""
    _check(model, states)
    scores = model._scores(SequenceSource(states, sequences, people, columns).read())
    return OwnerScore(float(scores.sum()), len(scores))


def release_score(
    model: ChainModel,
    sequences: Any,
    states: StateSet,
    budget: Budget | NonPrivate,
    bound: Number,
    adjacency: str = "replace-one",
    *,
    people: Any = None,
    columns: tuple[str, str | None, str] = COLUMNS,
    unit: str = "person",
    ledger: Ledger | None = None,
    job: str | None = None,
    insecure_seed: int | None = None,
) -> ReleasedScore:
    """The sum of people's log-likelihoods, each clipped to [−bound, 0], plus noise.

    How many people there are is public only under replace-one where every entry of `sequences` is
    a person; otherwise it is measured as well, with about a third of the budget.
    """
    _check(model, states)
    spend = check_budget(budget)
    neighbours = check_adjacency(adjacency)
    most = exact(bound, "bound")
    if not Fraction(1, GRID) <= most <= _MOST:
        raise InputError(f"bound must lie between 1/{GRID} and {_MOST:,}; got {bound}.")
    if insecure_seed is not None:
        check_seed(insecure_seed)
    steps = int(most * GRID)
    public = neighbours is Adjacency.REPLACE_ONE and people is None and _entries(sequences)
    person = 0 if public else max(1, steps // 2)  # what a person counts, in the same grid steps
    law, cost = _law(spend, Sensitivity(steps + person, steps**2 + person**2))

    def prepare() -> Callable[[], bytes]:
        source = SequenceSource(states, sequences, people, columns)

        def run() -> bytes:
            found = source.read()
            values = np.array([clipped_sum(model, found, steps), person * len(found)], np.int64)
            if law.name != "none":
                values[: 1 if public else 2] = add_noise(
                    values[: 1 if public else 2], law, insecure_seed
                )
            people_found = len(found) if public else int(values[1]) / person
            text = {"sum": -int(values[0]) / GRID, "people": people_found}
            return json.dumps(text).encode()

        return run

    request = {
        "what": "chain score",
        "model": model_bytes(model).hex(),
        "rule": [list(states.rule.levels), states.rule.missing, states.rule.unknown],
        "steps": [steps, person],
        "noise": [law.name, law.scale],
        "adjacency": str(neighbours),
        "insecure": insecure_seed is not None,
    }
    released = json.loads(
        release(
            prepare,
            what=f"log-likelihood of a chain with {law.name} noise",
            cost=cost,
            budget=spend,
            adjacency=neighbours,
            unit=unit,
            request=request,
            ledger=ledger,
            job=job,
        )
    )
    return ReleasedScore(
        released["sum"],
        released["people"],
        float(most),
        NoiseLaw(law.name, law.scale / GRID, 1 / GRID),
        NoiseLaw(law.name, law.scale / person, 1 / person) if person else None,
        cost,
        neighbours,
        stamp_of(spend, insecure_seed),
    )


def clipped_sum(model: ChainModel, found: Sequences, steps: int) -> int:
    """Σ over people of −log p in whole grid steps, each person's held within [0, steps]."""
    losses = np.ceil(np.minimum(-GRID * model._scores(found), steps))
    return int(np.maximum(losses, 0).astype(np.int64).sum())


def _law(
    budget: Budget | NonPrivate, sensitivity: Sensitivity
) -> tuple[NoiseLaw, Budget | NonPrivate]:
    if isinstance(budget, NonPrivate):
        return NoiseLaw("none", 0.0), budget
    return choose_noise(budget, sensitivity, "laplace")


def _entries(sequences: Any) -> bool:
    """Whether every entry is a person, so that their number is public under replace-one."""
    return isinstance(sequences, list | tuple | np.ndarray)


def _check(model: object, states: StateSet) -> None:
    if not isinstance(model, ChainModel):
        raise InputError(f"model must be a ChainModel; got {type(model).__name__}.")
    if model.states != states.names:
        raise InputError("model must have the same states, in the same order.")
