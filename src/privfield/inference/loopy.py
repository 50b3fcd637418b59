"""Loopy belief propagation: approximate marginals and log Z where exact contraction is too big.

Exact on trees. Elsewhere a fixed point, if one is reached, approximates; `converged` says whether
it was, and nothing says how close it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from math import prod
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from privfield.errors import InputError
from privfield.inference.factors import Factors, Table

Indices: TypeAlias = NDArray[np.intp]
Schedule: TypeAlias = Literal["asynchronous", "synchronous"]
Messages: TypeAlias = Literal["auto", "log"]

# While no log-potential is further than this from its table's first (ratio messages) or twice that
# from the largest (log messages), its weight is used as a plain double.
_PLAIN_LIMIT = 100.0
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
    factors: Factors,
    *,
    damping: float = 0.0,
    schedule: Schedule = "asynchronous",
    max_iterations: int = 1000,
    tolerance: float = 1e-9,
    start: LoopyResult | None = None,
    messages: Messages = "auto",
) -> LoopyResult:
    """Beliefs of all variables and cliques, and the Bethe log Z; see `LoopyPlan.run`.

    >>> pair = Factors((2, 2), ((0, 1),), (np.log([[3.0, 1.0], [1.0, 3.0]]),))
    >>> result = loopy_belief_propagation(pair)
    >>> result.converged, round(result.log_partition, 6)
    (True, 2.079442)
    """
    if start is not None and start.plan.fits(factors.shape, factors.cliques):
        plan = start.plan
    else:
        plan = LoopyPlan(factors.shape, factors.cliques)
    return plan.run(
        factors.tables,
        damping=damping,
        schedule=schedule,
        max_iterations=max_iterations,
        tolerance=tolerance,
        start=start,
        messages=messages,
    )


class LoopyPlan:
    """The factor graph of some cliques, prepared once and run with many tables.

    Variables with one level are left out of cliques, and a clique inside another is added to it:
    both would be loops that the model does not have. Cost is linear in cells.
    """

    def __init__(self, shape: Sequence[int], cliques: Sequence[Sequence[int]]) -> None:
        self.shape = tuple(shape)
        self.cliques = tuple(tuple(clique) for clique in cliques)
        self.clique_shapes = [tuple(self.shape[i] for i in clique) for clique in self.cliques]
        sizes = [prod(each) for each in self.clique_shapes]
        self.variable_offsets = _offsets(self.shape)
        self.clique_offsets = _offsets(sizes)
        self._number_variables()
        groups = self._axes_by_width()
        homes = self._place_factors(groups)
        self._link_slots()
        self._link_cells(groups, homes)

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
        packed = self._pack(tables)
        local, inner = packed[: self._local_size], packed[self._local_size : -1]
        ruled_out = np.isneginf(packed)
        forbidden = ruled_out if ruled_out.any() else None
        into = self._first_messages(start, forbidden)
        beliefs = np.ones(packed.size)
        options = (float(damping), float(tolerance), int(max_iterations))
        ratios = messages == "auto" and self._ratios_hold(local, inner)
        work = self._run_ratios if ratios else self._run_logs
        log_z, iterations, residual = work(
            schedule == "synchronous", local, inner, into, options, beliefs
        )
        log_z += packed[-1]
        if log_z == -np.inf or residual < 0:
            raise InputError("The model's tables must allow some state. Every state is forbidden.")
        if self._one_to_one:
            clique_cells = beliefs[self._inner]
        else:
            clique_cells = np.bincount(self._outer, beliefs[self._inner], self.clique_offsets[-1])
        return LoopyResult(
            log_partition=float(log_z),
            converged=bool(residual <= tolerance),
            iterations=int(iterations),
            residual=float(residual),
            variable_cells=beliefs[self._variable_cells],
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
        return np.bincount(self._inner, flat[self._outer], self._packed_size)

    def _first_messages(
        self, start: LoopyResult | None, forbidden: NDArray[np.bool_] | None
    ) -> Table:
        if start is None:
            return np.zeros(self._places[-1])
        if start.plan is not self and not self.fits(start.plan.shape, start.plan.cliques):
            raise InputError("The 'start' must be a result of the same variables and cliques.")
        into = start.messages.copy()
        # A level that only the earlier tables ruled out would otherwise stay ruled out in a loop.
        if start.forbidden is not None and (
            forbidden is None or (start.forbidden & ~forbidden).any()
        ):
            np.maximum(into, _UNLIKELY, out=into)
        return into

    def _ratios_hold(self, local: Table, inner: Table) -> bool:
        """Binary and pairwise, nothing forbidden, nothing that leaves the range of a double."""
        if not self._binary:
            return False
        with np.errstate(invalid="ignore"):  # −inf − −inf is NaN, which compares false
            tables = np.abs(inner.reshape(-1, 4)[:, 1:] - inner[::4, None])
            fields = np.abs(local[self._upper] - local[self._upper - 1])
        return bool((tables <= _PLAIN_LIMIT).all() and (fields <= _PLAIN_LIMIT).all())

    def _run_ratios(
        self,
        at_once: bool,
        local: Table,
        inner: Table,
        into: Table,
        options: tuple[float, float, int],
        beliefs: Table,
    ) -> tuple[float, int, float]:
        from privfield.inference import loopy_kernels as kernels

        weights = np.exp(inner.reshape(-1, 4)[:, 1:] - inner[::4, None])
        odds = np.ones(len(self.shape))
        odds[np.diff(self._starts) > 0] = np.exp(local[self._upper] - local[self._upper - 1])
        ratios = np.exp(np.clip(into[1::2] - into[::2], -_PLAIN_LIMIT, _PLAIN_LIMIT))
        graph = (self._ends, weights, odds, self._starts, self._slots, ratios)
        sweep = kernels.ratio_synchronous if at_once else kernels.ratio_asynchronous
        iterations, residual = sweep(*graph, *options)
        log_ratios = np.log(ratios)
        log_z = kernels.ratio_beliefs(*graph, log_ratios, local, inner, self._offsets, beliefs)
        into[::2] = 0.0
        into[1::2] = log_ratios
        return log_z, iterations, residual

    def _run_logs(
        self,
        at_once: bool,
        local: Table,
        inner: Table,
        into: Table,
        options: tuple[float, float, int],
        beliefs: Table,
    ) -> tuple[float, int, float]:
        from privfield.inference import loopy_kernels as kernels

        graph = (
            self._offsets, self._starts, self._slots, self._axes, self._owners, self._cells,
            self._places, self._strides,
        )  # fmt: skip
        begins = self._cells[:-1]
        top = np.maximum.reduceat(inner, begins) if begins.size else np.empty(0)
        low = np.minimum.reduceat(inner, begins) if begins.size else np.empty(0)
        tame = low >= top - 2 * _PLAIN_LIMIT
        tame[np.isneginf(top)] = False
        plain = np.exp(inner - np.repeat(np.where(tame, top, np.inf), np.diff(self._cells)))
        out = np.empty(into.size)
        iterations, residual = kernels.log_messages(
            at_once, local, inner, plain, tame, graph, into, out, *options
        )
        if residual < 0:
            return -np.inf, iterations, residual
        log_z = kernels.log_beliefs(local, inner, graph, into, out, beliefs)
        return log_z, iterations, residual

    # Making the plan. All of it works on arrays of cliques of one width: a grid of 10⁵ edges takes
    # a fraction of a second.

    def _number_variables(self) -> None:
        """Number variables breadth first: neighbours lie close, and two sweeps settle a tree."""
        n, levels = len(self.shape), np.array(self.shape, np.intp)
        self._sizes = np.fromiter(map(len, self.cliques), np.intp, len(self.cliques))
        flat = np.fromiter(chain.from_iterable(self.cliques), np.intp, int(self._sizes.sum()))
        owners = np.repeat(np.arange(self._sizes.size), self._sizes)
        real = levels[flat] > 1
        order = _breadth_first(n, flat[real], owners[real], self._sizes.size)
        rank = np.empty(n, np.intp)
        rank[order] = np.arange(n)
        self._levels = levels[order]
        self._flat = rank[flat]
        self._offsets = _offsets(self._levels)
        shift = self._offsets[:-1][rank] - self.variable_offsets[:-1]
        self._variable_cells = np.arange(self.variable_offsets[-1]) + np.repeat(shift, levels)

    def _axes_by_width(self) -> dict[int, tuple[Indices, Indices, Indices]]:
        """Per number of real axes: cliques, their sorted variables, and the strides of these."""
        sizes, flat = self._sizes, self._flat
        begin = np.cumsum(sizes) - sizes
        parts = defaultdict(list)
        for size in np.unique(sizes):
            numbers = np.flatnonzero(sizes == size)
            variables = flat[begin[numbers][:, None] + np.arange(size)]
            levels = self._levels[variables]
            strides = np.ones_like(variables)
            for axis in range(size - 2, -1, -1):
                strides[:, axis] = strides[:, axis + 1] * levels[:, axis + 1]
            # Axes of one level sort behind all variables and are cut off.
            keys = np.where(levels > 1, variables, len(self.shape))
            by_key = np.argsort(keys, axis=1)
            keys = np.take_along_axis(keys, by_key, axis=1)
            strides = np.take_along_axis(strides, by_key, axis=1)
            widths = (levels > 1).sum(axis=1)
            for width in np.unique(widths):
                rows = widths == width
                parts[int(width)].append((numbers[rows], keys[rows, :width], strides[rows, :width]))
        return {
            width: tuple(np.concatenate(each) for each in zip(*parts[width], strict=True))  # type: ignore[misc]
            for width in sorted(parts, reverse=True)
        }

    def _place_factors(
        self, groups: dict[int, tuple[Indices, Indices, Indices]]
    ) -> dict[int, Indices]:
        """Choose the factors, widest first; return the factor that each wide clique is part of."""
        wide = [width for width in groups if width > 1]
        homes: dict[int, Indices] = {}
        kept: list[Indices] = []
        around: dict[int, list[int]] = defaultdict(list)
        scopes: list[set[int]] = []
        count = 0
        for width in wide:
            distinct, inverse = _unique_rows(groups[width][1])
            home = np.full(len(distinct), -1)
            if scopes:
                for n, row in enumerate(distinct.tolist()):
                    near = min((around[i] for i in row), key=len)
                    over = [f for f in near if scopes[f].issuperset(row)]
                    if over:
                        home[n] = min(over, key=lambda f: self._levels[list(scopes[f])].prod())
            new = home < 0
            home[new] = count + np.arange(new.sum())
            count += int(new.sum())
            kept.append(distinct[new])
            if width != wide[-1]:
                for row in distinct[new].tolist():
                    for i in row:
                        around[i].append(len(scopes))
                    scopes.append(set(row))
            homes[width] = home[inverse]
        self._scopes = kept
        return homes

    def _link_slots(self) -> None:
        """Index arrays of the factor graph, as the kernels read them."""
        n, scopes = len(self.shape), self._scopes
        widths = np.concatenate([np.empty(0, np.intp), *[np.full(*s.shape) for s in scopes]])
        owners_of = np.concatenate([np.empty(0, np.intp), *[s.ravel() for s in scopes]])
        strides, cells = [np.empty(0, np.intp)], [np.empty(0, np.intp)]
        for scope in scopes:
            levels = self._levels[scope]
            reverse = np.cumprod(levels[:, ::-1], axis=1)[:, ::-1]
            cells.append(reverse[:, 0])
            strides.append((reverse // levels).ravel())
        self._axes = _offsets(widths)
        self._owners = np.repeat(np.arange(widths.size), widths)
        self._cells = _offsets(np.concatenate(cells))
        self._strides = np.concatenate(strides)
        self._places = _offsets(self._levels[owners_of])
        self._starts = _offsets(np.bincount(owners_of, minlength=n))
        self._slots = np.argsort(owners_of, kind="stable")
        self._binary = bool((widths == 2).all() and (self._levels[owners_of] == 2).all())
        self._ends = owners_of.reshape(-1, 2) if self._binary else np.empty((0, 2), np.intp)
        self._upper = self._offsets[:-1][np.diff(self._starts) > 0] + 1
        self._local_size = int(self.variable_offsets[-1])
        self._packed_size = self._local_size + int(self._cells[-1]) + 1

    def _link_cells(
        self, groups: dict[int, tuple[Indices, Indices, Indices]], homes: dict[int, Indices]
    ) -> None:
        """Which packed cell each cell of each clique belongs to; an absorbed one, to several."""
        inner, outer = [np.empty(0, np.intp)], [np.empty(0, np.intp)]
        for width, (numbers, variables, strides) in groups.items():
            if width == 0:
                inner.append(np.full(numbers.size, self._packed_size - 1))
                outer.append(self.clique_offsets[numbers])
                continue
            first = 0
            hosts = homes.get(width)
            for scope in [variables] if hosts is None else self._scopes:
                if hosts is None:
                    chosen, rows = np.arange(len(numbers)), scope
                    begins = self._offsets[variables[:, 0]]
                else:
                    chosen = np.flatnonzero((hosts >= first) & (hosts < first + len(scope)))
                    rows = scope[hosts[chosen] - first]
                    begins = self._local_size + self._cells[hosts[chosen]]
                    first += len(scope)
                steps = np.zeros_like(rows)
                for axis in range(width):
                    same = rows == variables[chosen, axis, None]
                    steps += np.where(same, strides[chosen, axis, None], 0)
                patterns, which = _unique_rows(self._levels[rows])
                for n, pattern in enumerate(patterns):
                    mine = np.flatnonzero(which == n) if len(patterns) > 1 else slice(None)
                    digits = np.indices(pattern).reshape(len(pattern), -1)
                    at = self.clique_offsets[numbers[chosen[mine]], None]
                    outer.append((at + steps[mine] @ digits).ravel())
                    inner.append((begins[mine, None] + np.arange(digits.shape[1])).ravel())
        into, out = np.concatenate(inner), np.concatenate(outer)
        by_cell = np.argsort(out, kind="stable")
        self._inner, self._outer = into[by_cell], out[by_cell]
        self._one_to_one = self._outer.size == self.clique_offsets[-1]


def _check_options(
    damping: float, schedule: str, max_iterations: int, tolerance: float, messages: str
) -> None:
    where = "parameter of loopy belief propagation must be"
    if not 0 <= damping < 1:
        raise InputError(f"The 'damping' {where} in the range [0, 1). Got {damping!r} instead.")
    if schedule not in get_args(Schedule):
        raise InputError(
            f"The 'schedule' {where} one of {get_args(Schedule)}. Got {schedule!r} instead."
        )
    if messages not in get_args(Messages):
        raise InputError(
            f"The 'messages' {where} one of {get_args(Messages)}. Got {messages!r} instead."
        )
    if not max_iterations >= 1:
        raise InputError(
            f"The 'max_iterations' {where} at least 1. Got {max_iterations!r} instead."
        )
    if not tolerance >= 0:
        raise InputError(f"The 'tolerance' {where} at least 0. Got {tolerance!r} instead.")


def _offsets(sizes: Sequence[int] | Indices) -> Indices:
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.intp)], dtype=np.intp)


def _unique_rows(rows: Indices) -> tuple[Indices, Indices]:
    """Sorted distinct rows, and which of them each row is."""
    by_row = np.lexsort(rows.T[::-1])
    ordered = rows[by_row]
    new = np.ones(len(rows), bool)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    inverse = np.empty(len(rows), np.intp)
    inverse[by_row] = np.cumsum(new) - 1
    return ordered[new], inverse


def _breadth_first(n: int, variables: Indices, cliques: Indices, count: int) -> Indices:
    """Variables by distance from one root per component."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import breadth_first_order, connected_components

    def link(rows: Indices, columns: Indices) -> coo_array:
        return coo_array((np.ones(rows.size), (rows, columns)), (n + count + 1, n + count + 1))

    # A last node joins one variable of each component: one search then visits all.
    labels = connected_components(link(variables, n + cliques), directed=False)[1]
    roots = np.unique(labels[:n], return_index=True)[1]
    hub = np.full(roots.size, n + count)
    graph = link(np.concatenate([variables, hub]), np.concatenate([n + cliques, roots]))
    order = breadth_first_order(graph, n + count, directed=False, return_predecessors=False)
    return np.asarray(order[order < n], np.intp)
