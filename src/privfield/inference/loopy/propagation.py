"""Loopy belief propagation: approximate marginals and log Z where exact contraction is too big.

Exact on trees. Elsewhere a fixed point, if one is reached, approximates; `converged` says whether
it was, and nothing says how close it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from privfield.errors import InputError
from privfield.inference.factors import Factors, Table
from privfield.inference.loopy.graph import build_factor_graph, offsets_of
from privfield.kernels.pace import Pace

Schedule: TypeAlias = Literal["asynchronous", "synchronous"]
Messages: TypeAlias = Literal["auto", "log"]

# While no log-potential is further than this from its table's first (ratio messages) or twice that
# from the largest (log messages), its weight is used as a plain double.
_PLAIN_LIMIT = 100.0
_REAL = (int, float, np.integer, np.floating)
# What a ruled-out level of a warm start becomes when the new tables may allow it.
_UNLIKELY = -30.0


@dataclass(frozen=True, eq=False)
class LoopyResult:
    """Beliefs and the Bethe log Z, with how far the messages were from a fixed point.

    `residual` is the largest change of a log-ratio of any message in the last iteration, before
    damping. `variable_cells` and `clique_cells` hold all beliefs end to end; `clique_cells` is the
    gradient of `log_partition` by the tables, at a fixed point.
    """

    log_partition: float
    converged: bool
    iterations: int
    residual: float
    variable_cells: Table
    clique_cells: Table
    plan: LoopyPlan = field(repr=False)
    messages: Table = field(repr=False)
    forbidden: NDArray[np.bool_] | None = field(repr=False)

    def variable(self, position: int) -> Table:
        """Belief of one variable."""
        begin, end = self.plan.variable_offsets[position : position + 2]
        return self.variable_cells[begin:end]

    def clique(self, number: int) -> Table:
        """Belief of one clique, axes in the clique's order."""
        begin, end = self.plan.clique_offsets[number : number + 2]
        return self.clique_cells[begin:end].reshape(self.plan.clique_shapes[number])

    @cached_property
    def variables(self) -> tuple[Table, ...]:
        """Beliefs of all variables."""
        return tuple(self.variable(i) for i in range(len(self.plan.shape)))

    @cached_property
    def cliques(self) -> tuple[Table, ...]:
        """Beliefs of all cliques, in the order and with the axes they came in."""
        return tuple(self.clique(c) for c in range(len(self.plan.cliques)))


def loopy_belief_propagation(
    factors: Factors, *, start: LoopyResult | None = None, **options: Any
) -> LoopyResult:
    """Beliefs of all variables and cliques, and the Bethe log Z; options as in `LoopyPlan.run`.

    >>> pair = Factors((2, 2), ((0, 1),), (np.log([[3.0, 1.0], [1.0, 3.0]]),))
    >>> result = loopy_belief_propagation(pair)
    >>> result.converged, round(result.log_partition, 6)
    (True, 2.079442)
    """
    if isinstance(start, LoopyResult) and start.plan.fits(factors.shape, factors.cliques):
        plan = start.plan
    else:
        plan = LoopyPlan(factors.shape, factors.cliques)
    return plan.run(factors.tables, start=start, **options)


class LoopyPlan:
    """The factor graph of some cliques, prepared once and run with many tables."""

    def __init__(self, shape: Sequence[int], cliques: Sequence[Sequence[int]]) -> None:
        self.shape = tuple(shape)
        self.cliques = tuple(tuple(clique) for clique in cliques)
        self.clique_shapes = [tuple([self.shape[i] for i in each]) for each in self.cliques]
        self.variable_offsets = offsets_of(self.shape)
        self.clique_offsets = offsets_of([prod(each) for each in self.clique_shapes])
        self._graph = graph = build_factor_graph(self.shape, self.cliques)
        connected = np.diff(graph.starts) > 0
        self._binary = bool(
            (np.diff(graph.axes) == 2).all() and (np.diff(graph.offsets)[connected] == 2).all()
        )
        self._connected = np.flatnonzero(connected)
        if self._binary:
            # Ratio messages into all first variables come before those into the second.
            ends = graph.receivers.reshape(-1, 2)
            self._pairs = (
                ends.T.ravel(), graph.starts, graph.slots // 2 + graph.slots % 2 * len(ends)
            )  # fmt: skip
        self._most_slots = int(np.diff(graph.starts).max(initial=0))

    def fits(self, shape: Sequence[int], cliques: Sequence[Sequence[int]]) -> bool:
        """Whether this plan was made for these variables and cliques."""
        return self.shape == tuple(shape) and self.cliques == tuple(map(tuple, cliques))

    def run(
        self,
        tables: Sequence[Table] | Table,
        *,
        damping: float = 0.0,
        schedule: Schedule = "asynchronous",
        max_iterations: int = 1000,
        tolerance: float = 1e-9,
        start: LoopyResult | None = None,
        messages: Messages = "auto",
    ) -> LoopyResult:
        """Pass messages until none of their log-ratios changes by more than `tolerance`.

        `tables` are log-potentials, one per clique, or all their cells in one vector. An iteration
        renews every message once: "synchronous" from the iteration before, "asynchronous" variable
        by variable, back and forth, which settles a tree in two iterations. `damping` is the share
        of the old log message that is kept. `start` is an earlier result of the same cliques, to
        go on from. Binary pairwise models use ratio messages unless `messages` is "log".

        Raises `InputError` when messages show that every state is forbidden (on a tree: always).
        """
        _check_options(damping, schedule, max_iterations, tolerance, messages)
        graph, packed = self._graph, self._pack(tables)
        ruled_out = np.isneginf(packed)
        forbidden = ruled_out if ruled_out.any() else None
        into = self._first_messages(start, forbidden)
        work = self._run_logs
        if self._binary and messages == "auto" and forbidden is None and self._is_tame(packed):
            work = self._run_ratios
        options = (float(damping), float(tolerance), int(max_iterations))
        beliefs = np.ones(packed.size)
        log_z, iterations, residual = work(
            schedule == "synchronous", packed, into, options, beliefs
        )
        log_z += packed[-1]
        if log_z == -np.inf:
            raise InputError("The model's tables must allow some state. Every state is forbidden.")
        clique_cells = beliefs[graph.inner]
        if graph.outer.size > self.clique_offsets[-1]:  # sum cliques out of those around them
            clique_cells = _sums(graph.outer, clique_cells, self.clique_offsets[-1])
        return LoopyResult(
            log_partition=float(log_z),
            converged=bool(residual <= tolerance),
            iterations=int(iterations),
            residual=float(residual),
            variable_cells=beliefs[graph.variable_cells],
            clique_cells=clique_cells,
            plan=self,
            messages=into,
            forbidden=forbidden,
        )

    def _pack(self, tables: Sequence[Table] | Table) -> Table:
        """Cells of variables, then factors, then the constant."""
        if isinstance(tables, np.ndarray) and tables.dtype != object:
            flat = np.asarray(tables, np.float64)
            if flat.shape != (self.clique_offsets[-1],):
                raise InputError(
                    f"A vector of tables must have {self.clique_offsets[-1]} cells, "
                    f"those of all cliques. Got shape {flat.shape} instead."
                )
        else:
            arrays = [np.asarray(table, np.float64) for table in tables]
            if [a.shape for a in arrays] != self.clique_shapes:
                raise InputError(
                    "Tables must be one per clique, with one axis per variable. Got other shapes."
                )
            flat = np.concatenate([np.empty(0), *[a.ravel() for a in arrays]])
        if np.isnan(flat).any() or np.isposinf(flat).any():
            raise InputError("Log-potentials must be finite or −inf. Got NaN or +inf instead.")
        graph = self._graph
        return _sums(graph.inner, flat[graph.outer], graph.packed_size)

    def _first_messages(
        self, start: LoopyResult | None, forbidden: NDArray[np.bool_] | None
    ) -> Table:
        if start is None:
            return np.zeros(self._graph.places[-1])
        if not isinstance(start, LoopyResult):
            raise InputError(
                "The 'start' parameter of loopy belief propagation must be an earlier result or "
                f"None. Got {start!r} instead."
            )
        if start.plan is not self and not self.fits(start.plan.shape, start.plan.cliques):
            raise InputError("The 'start' must be a result of the same variables and cliques.")
        into = start.messages.copy()
        # A level that only the earlier tables ruled out would otherwise stay ruled out in a loop.
        if start.forbidden is not None and (
            forbidden is None or (start.forbidden & ~forbidden).any()
        ):
            np.maximum(into, _UNLIKELY, out=into)
        return into

    def _parts(self, packed: Table) -> tuple[Table, Table]:
        size = self._graph.local_size
        return packed[:size], packed[size:-1]

    def _log_odds(self, packed: Table) -> tuple[Table, Table]:
        """Of a binary pairwise model: tables against their first cell, and connected variables."""
        local, inner = self._parts(packed)
        cells, at = inner.reshape(-1, 4), self._graph.offsets[self._connected]
        return np.stack([cells[:, k] - cells[:, 0] for k in (1, 2, 3)]), local[at + 1] - local[at]

    def _is_tame(self, packed: Table) -> bool:
        return all((np.abs(part) <= _PLAIN_LIMIT).all() for part in self._log_odds(packed))

    def _run_ratios(
        self,
        at_once: bool,
        packed: Table,
        into: Table,
        options: tuple[float, float, int],
        beliefs: Table,
    ) -> tuple[float, int, float]:
        from privfield.inference.loopy import ratio_kernels as kernels

        local, inner = self._parts(packed)
        tables, fields = self._log_odds(packed)
        odds = np.ones(len(self.shape))
        odds[self._connected] = np.exp(fields)
        # No log-odds message is beyond this, so neither may those of other tables be.
        bound = 2 * np.abs(tables).max(initial=0)
        logs = np.clip(into[1::2] - into[::2], -bound, bound)
        ratios = np.exp(logs.reshape(-1, 2).T.ravel())
        most = np.abs(fields).max(initial=0) + self._most_slots * bound
        model = (self._pairs, np.exp(tables), odds, bool(most < 4 * _PLAIN_LIMIT), ratios)
        sweep = kernels.ratio_synchronous if at_once else kernels.ratio_asynchronous
        iterations, residual = _repeat(sweep, (*model, np.empty(odds.size)), options)
        logs = np.log(ratios)
        log_z = kernels.ratio_beliefs(*model, logs, local, inner, self._graph.offsets, beliefs)
        into[::2] = 0.0
        into[1::2] = logs.reshape(2, -1).T.ravel()
        return log_z, iterations, residual

    def _run_logs(
        self,
        at_once: bool,
        packed: Table,
        into: Table,
        options: tuple[float, float, int],
        beliefs: Table,
    ) -> tuple[float, int, float]:
        from privfield.inference.loopy import kernels

        (local, inner), g = self._parts(packed), self._graph
        graph = (g.offsets, g.starts, g.slots, g.axes, g.owners, g.cells, g.places, g.strides)
        top, low = np.empty(0), np.empty(0)
        if inner.size:
            top = np.maximum.reduceat(inner, g.cells[:-1])
            low = np.minimum.reduceat(inner, g.cells[:-1])
        tame = (low >= top - 2 * _PLAIN_LIMIT) & (low > -np.inf)
        plain = np.exp(inner - np.repeat(np.where(tame, top, np.inf), np.diff(g.cells)))
        out, likely = np.empty(into.size), np.empty(into.size)
        model = (at_once, local, inner, plain, tame, graph, into, out, likely)
        iterations, residual = _repeat(kernels.log_messages, model, options)
        if residual < 0:
            return -np.inf, iterations, residual
        log_z = kernels.log_beliefs(local, inner, graph, into, out, beliefs)
        return log_z, iterations, residual


def _repeat(
    sweep: Callable[..., tuple[int, float]],
    model: tuple[Any, ...],
    options: tuple[float, float, int],
) -> tuple[int, float]:
    """Sweep until messages stay, or show that Z is 0 (a negative residual); Ctrl-C is heard."""
    damping, tolerance, limit = options
    iterations, residual = 0, np.inf
    for _, part in Pace().parts(limit):
        iterations, residual = sweep(*model, damping, tolerance, iterations, part)
        if residual <= tolerance:
            break
    return iterations, residual


def _check_options(
    damping: object, schedule: object, max_iterations: object, tolerance: object, messages: object
) -> None:
    where = "parameter of loopy belief propagation must be"
    if not (isinstance(damping, _REAL) and 0 <= damping < 1):
        raise InputError(
            f"The 'damping' {where} a number in the range [0, 1). Got {damping!r} instead."
        )
    if not (isinstance(schedule, str) and schedule in get_args(Schedule)):
        raise InputError(
            f"The 'schedule' {where} one of {get_args(Schedule)}. Got {schedule!r} instead."
        )
    if not (isinstance(messages, str) and messages in get_args(Messages)):
        raise InputError(
            f"The 'messages' {where} one of {get_args(Messages)}. Got {messages!r} instead."
        )
    # inf % 1 is NaN
    if not (isinstance(max_iterations, _REAL) and max_iterations % 1 == 0 and max_iterations >= 1):
        raise InputError(
            f"The 'max_iterations' {where} a whole number, at least 1. "
            f"Got {max_iterations!r} instead."
        )
    if not (isinstance(tolerance, _REAL) and tolerance >= 0):
        raise InputError(
            f"The 'tolerance' {where} a number, at least 0. Got {tolerance!r} instead."
        )


def _sums(places: NDArray[np.intp], values: Table, size: int) -> Table:
    """Sums of the values that share a place."""
    return np.bincount(places, values, size).astype(np.float64, copy=False)
