"""A time-homogeneous Markov chain over a finite set of states."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.checks import LARGEST, check_rng, check_whole, finite_array
from privfield.errors import InputError
from privfield.inference.factors import Table
from privfield.models.base import check_count, set_fields
from privfield.models.card import Card
from privfield.models.mrf import MarkovRandomField
from privfield.models.saving import (
    Arrays,
    Header,
    save_model,
    stored_floats,
    stored_stamp,
    stored_texts,
)
from privfield.models.solution import Solution
from privfield.schema import Schema, level_text
from privfield.words import counted

_LONGEST = 100_000  # sequences as a model of their states
_ROUNDING = 1e-9  # how far probabilities may be from adding up to 1


@dataclass(frozen=True, eq=False, init=False, repr=False)
class ChainModel:
    """P(x₁, …, x_T) = initial[x₁] · Π transition[x_t, x_{t+1}], for any length T.

    >>> model = ChainModel(["home", "work"], [1, 0], [[0.5, 0.5], [0.25, 0.75]])
    >>> model.stationary().round(4).tolist()
    [0.3333, 0.6667]
    """

    states: tuple[str, ...]
    initial: Table
    transition: Table
    stamp: str | None

    card: Card | None = None  # as in `Model`; `privfield.models.card.attach` sets them
    measurements: Any = None
    ended = None  # has no law to search for
    solution: Solution | None = None

    def __init__(
        self, states: Sequence[object], initial: Any, transition: Any, *, stamp: str | None = None
    ) -> None:
        if isinstance(states, str) or not isinstance(states, Sequence):
            raise InputError(f"states must be a list of states; got {type(states).__name__}.")
        names = tuple(level_text(state) for state in states)
        if len(names) < 2 or len(set(names)) < len(names):
            raise InputError(f"states must be at least two different states; got {len(names)}.")
        first = _rows(initial, "initial", (len(names),))
        steps = _rows(transition, "transition", (len(names), len(names)))
        set_fields(self, states=names, initial=first, transition=steps, stamp=stamp)

    def log_likelihood(self, sequences: Any, people: Any = None) -> float:
        """The log-probability of all sequences together, given their lengths: exact, PRIVATE.

        Sequences are read as by `ChainLearner`; a gap ends a segment. To publish it, pay for it:
        `pf.release_score`.
        """
        return float(self.log_likelihoods(sequences, people).sum())

    def log_likelihoods(self, sequences: Any, people: Any = None) -> Table:
        """The log-probability of each entry of `sequences`, or of each person: exact, PRIVATE."""
        from privfield.data.sequences.read import SequenceSource, StateSet

        return self.scores(SequenceSource(StateSet.of(self.states), sequences, people).read())

    def scores(self, found: Any) -> Table:
        """The log-probability of each person of `Sequences` that were read: exact, PRIVATE."""
        from privfield.data.sequences.kernels import sum_people

        with np.errstate(divide="ignore"):
            tables = np.log(self.initial), np.log(self.transition)
        scores = np.empty(len(found))
        for first, last in found.people():
            people = (found.codes, found.offsets, found.owners, first, last)
            sum_people(*people, *tables, LARGEST, scores)
        return scores

    def sample(self, n: int, length: int, rng: np.random.Generator | None = None) -> NDArray[Any]:
        """Independent sequences of that length as codes (positions in `states`), one row each."""
        check_whole(length, "length")
        count, generator = check_count(n, int(length)), check_rng(rng)
        first, steps = _cumulative(self.initial), _cumulative(self.transition)
        out = np.empty((count, int(length)), np.uint8 if len(self.states) <= 256 else np.uint16)
        now = np.searchsorted(first, generator.random(count), side="right")
        out[:, 0] = now
        for step in range(1, int(length)):
            chance = generator.random(count)
            after = np.empty_like(now)
            for state in np.unique(now):
                there = now == state
                after[there] = np.searchsorted(steps[state], chance[there], side="right")
            out[:, step] = now = after
        return out

    def stationary(self) -> Table:
        """The long-run share of time in each state, for sequences that begin as `initial` says.

        For a chain that can get from every state to every other this is its stationary
        distribution, wherever it begins.
        """
        from scipy.sparse.csgraph import connected_components

        count, group = connected_components(self.transition > 0, connection="strong")
        found = np.zeros(len(self.states))
        ends = [
            members
            for members in (np.flatnonzero(group == number) for number in range(count))
            if not (np.delete(self.transition[members], members, axis=1) > 0).any()
        ]
        reached = self._absorbed(ends)
        for members, mass in zip(ends, reached, strict=True):
            flow = self.transition[np.ix_(members, members)].T - np.eye(len(members))
            flow[-1] = 1.0  # the equations hang together: one says that shares add up to 1
            found[members] = mass * np.linalg.solve(flow, np.eye(len(members))[-1])
        found = np.maximum(found, 0)
        return np.asarray(found / found.sum())

    def _absorbed(self, ends: list[NDArray[np.intp]]) -> list[float]:
        """With which probability the chain ends up in each set of states that it cannot leave."""
        if len(ends) == 1:
            return [1.0]
        closed = np.concatenate(ends)
        passing = np.setdiff1d(np.arange(len(self.states)), closed)
        visits = np.linalg.solve(
            np.eye(len(passing)) - self.transition[np.ix_(passing, passing)].T,
            self.initial[passing],
        )
        return [
            float(
                self.initial[members].sum()
                + (visits @ self.transition[np.ix_(passing, members)]).sum()
            )
            for members in ends
        ]

    def to_mrf(self, length: int) -> MarkovRandomField:
        """Sequences of that length as a `MarkovRandomField` over the variables t1, t2, …"""
        check_whole(length, "length", 1, _LONGEST)
        names = [f"t{step}" for step in range(1, int(length) + 1)]
        with np.errstate(divide="ignore"):
            first, step = np.log(self.initial), np.log(self.transition)
        pairs = list(pairwise(names))
        return MarkovRandomField(
            Schema(dict.fromkeys(names, self.states)),
            [(names[0],), *pairs],
            [first, *[step] * len(pairs)],
            stamp=self.stamp,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a zip of JSON and arrays; `pf.load` reads it."""
        save_model(self, path)

    def _parts(self) -> tuple[str, Header, Arrays]:
        arrays = {"initial": self.initial, "transition": self.transition}
        return "chain", {"states": list(self.states)}, arrays

    @classmethod
    def _from_parts(cls, header: Header, arrays: Arrays) -> ChainModel:
        initial, transition = (stored_floats(arrays[k]) for k in ("initial", "transition"))
        return cls(stored_texts(header, "states"), initial, transition, stamp=stored_stamp(header))

    def __repr__(self) -> str:
        stamp = f"{self.stamp}. " if self.stamp else ""
        return f"<{stamp}ChainModel: {counted(len(self.states), 'state')}>"


def _rows(values: Any, name: str, shape: tuple[int, ...]) -> Table:
    """Probabilities that add up to 1 along the last axis, or an `InputError`."""
    array = finite_array(values, name, shape)
    totals = array.sum(axis=-1, keepdims=True)
    if (array < 0).any() or (np.abs(totals - 1) > _ROUNDING).any():
        what = "must be" if len(shape) == 1 else "must have rows that are"
        raise InputError(f"{name} {what} probabilities from 0 that add up to 1.")
    array.flags.writeable = False
    return array


def _cumulative(rows: Table) -> Table:
    """Cumulative probabilities; the last that can happen is exactly 1, so that none else does."""
    sums = np.cumsum(rows, axis=-1)
    return np.asarray(sums / sums[..., -1:])
