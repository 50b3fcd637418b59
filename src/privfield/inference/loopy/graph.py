"""The factor graph of some cliques, as the index arrays that belief propagation runs on.

Variables with one level are left out of cliques, and a clique inside another is added to it: both
would be loops that the model does not have. Cliques of one variable become its local table, empty
ones a constant. What remains are the factors; a slot is one axis of one factor.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Indices: TypeAlias = NDArray[np.intp]


@dataclass(frozen=True)
class _Cliques:
    """Cliques with equally many real axes: numbers, sorted variables, and strides of these."""

    numbers: Indices
    variables: Indices
    strides: Indices


@dataclass(frozen=True, eq=False)
class FactorGraph:
    """Variables are numbered breadth first: neighbours lie close, and two sweeps settle a tree.

    A model's cells are packed as those of its variables, then its factors, then the constant.
    Offsets have one entry more than there are things: thing n lies at `[n] : [n + 1]`.
    """

    offsets: Indices  # of variables in packed cells
    starts: Indices  # of variables in `slots`
    slots: Indices  # variable by variable
    axes: Indices  # of factors in slots
    owners: Indices  # factor of each slot
    cells: Indices  # of factors in factor cells
    places: Indices  # of slots in messages
    strides: Indices  # of each slot's axis in its factor
    receivers: Indices  # variable of each slot
    packed_size: int
    variable_cells: Indices  # packed cell of each cell of each variable, as the user numbers them
    outer: Indices  # cells of cliques, end to end, rising, and the packed cells that they are
    inner: Indices  # part of; a clique inside another has each of its cells several times

    @property
    def local_size(self) -> int:
        """Number of cells of all variables."""
        return int(self.offsets[-1])


def build_factor_graph(shape: Sequence[int], cliques: Sequence[Sequence[int]]) -> FactorGraph:
    """Linear in cells, and array by array: no loop over cliques while all have one width."""
    n, given = len(shape), np.array(shape, np.intp)
    sizes = np.fromiter(map(len, cliques), np.intp, len(cliques))
    flat = np.fromiter(chain.from_iterable(cliques), np.intp, int(sizes.sum()))
    order = _breadth_first(given, sizes, flat)
    rank = np.empty(n, np.intp)
    rank[order] = np.arange(n)
    levels = given[order]
    offsets = offsets_of(levels)
    shift = offsets[:-1][rank] - offsets_of(given)[:-1]

    groups, clique_cells = _by_width(levels, sizes, rank[flat])
    scopes, homes = _choose_factors(levels, groups)
    none = np.empty(0, np.intp)
    widths = np.concatenate([none, *[np.full(*scope.shape) for scope in scopes]])
    receivers = np.concatenate([none, *[scope.ravel() for scope in scopes]])
    # cells of the axes from each one to the last
    spans = [np.cumprod(levels[scope][:, ::-1], axis=1)[:, ::-1] for scope in scopes]
    cells = offsets_of(np.concatenate([none, *[span[:, 0] for span in spans]]))
    strides = np.concatenate([none, *[span.ravel() for span in spans]]) // levels[receivers]
    packed_size = int(offsets[-1] + cells[-1]) + 1

    begins = offsets_of(clique_cells)
    inner, outer = [none], [none]
    for width, group in groups.items():
        if width == 0:
            inner.append(np.full(group.numbers.size, packed_size - 1))
            outer.append(begins[group.numbers])
        elif width == 1:
            first = offsets[group.variables[:, 0]]
            _link(levels, group, group.variables, first, begins, inner, outer)
        else:
            _link_factors(
                levels, group, homes[width], scopes, offsets[-1] + cells, begins, inner, outer
            )
    joined = np.concatenate(outer)
    rising = np.argsort(joined, kind="stable")
    return FactorGraph(
        offsets=offsets,
        starts=offsets_of(np.bincount(receivers, minlength=n)),
        slots=np.argsort(receivers, kind="stable"),
        axes=offsets_of(widths),
        owners=np.repeat(np.arange(widths.size), widths),
        cells=cells,
        places=offsets_of(levels[receivers]),
        strides=strides,
        receivers=receivers,
        packed_size=packed_size,
        variable_cells=np.arange(offsets[-1]) + np.repeat(shift, given),
        outer=joined[rising],
        inner=np.concatenate(inner)[rising],
    )


def offsets_of(sizes: Sequence[int] | Indices) -> Indices:
    """Where each of some things of these sizes begins, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.intp)], dtype=np.intp)


def _breadth_first(levels: Indices, sizes: Indices, flat: Indices) -> Indices:
    """Variables by their distance from one root per component."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import breadth_first_order, connected_components

    n, last = levels.size, levels.size + sizes.size
    real = levels[flat] > 1
    variables, cliques = flat[real], n + np.repeat(np.arange(sizes.size), sizes)[real]

    def graph(rows: Indices, columns: Indices) -> object:
        return coo_array((np.ones(rows.size), (rows, columns)), (last + 1, last + 1))

    # A last node joins one variable of each component, so that one search visits all.
    labels = connected_components(graph(variables, cliques), directed=False)[1]
    roots = np.unique(labels[:n], return_index=True)[1]
    rows = np.concatenate([variables, np.full(roots.size, last)])
    joined = graph(rows, np.concatenate([cliques, roots]))
    order = breadth_first_order(joined, last, directed=False, return_predecessors=False)
    return np.asarray(order[order < n], np.intp)


def _by_width(
    levels: Indices, sizes: Indices, flat: Indices
) -> tuple[dict[int, _Cliques], Indices]:
    """Cliques by their number of real axes, most first, and the cells of each clique."""
    begin = np.cumsum(sizes) - sizes
    cells = np.ones(sizes.size, np.intp)
    parts: dict[int, list[_Cliques]] = defaultdict(list)
    for size in np.unique(sizes):
        numbers = np.flatnonzero(sizes == size)
        variables = flat[begin[numbers][:, None] + np.arange(size)]
        shapes = levels[variables]
        cells[numbers] = shapes.prod(axis=1)
        strides = np.cumprod(shapes[:, ::-1], axis=1)[:, ::-1] // shapes
        # Axes of one level sort behind all variables and are cut off.
        keys = np.where(shapes > 1, variables, levels.size)
        rising = np.argsort(keys, axis=1)
        keys = np.take_along_axis(keys, rising, axis=1)
        strides = np.take_along_axis(strides, rising, axis=1)
        widths = (shapes > 1).sum(axis=1)
        for width in np.unique(widths).tolist():
            rows = widths == width
            part = _Cliques(numbers[rows], keys[rows, :width], strides[rows, :width])
            parts[width].append(part)
    return {
        width: _Cliques(
            np.concatenate([part.numbers for part in parts[width]]),
            np.concatenate([part.variables for part in parts[width]]),
            np.concatenate([part.strides for part in parts[width]]),
        )
        for width in sorted(parts, reverse=True)
    }, cells


def _choose_factors(
    levels: Indices, groups: dict[int, _Cliques]
) -> tuple[list[Indices], dict[int, Indices]]:
    """Scopes of the factors, widest first, and the factor that each wide clique is part of."""
    wide = [width for width in groups if width > 1]
    scopes: list[Indices] = []
    homes: dict[int, Indices] = {}
    around: dict[int, list[int]] = defaultdict(list)
    members: list[set[int]] = []
    count = 0
    for width in wide:
        distinct, which = _unique_rows(groups[width].variables)
        home = np.full(len(distinct), -1)
        if members:
            for n, row in enumerate(distinct.tolist()):
                near = min((around[i] for i in row), key=len)
                over = [f for f in near if members[f].issuperset(row)]
                if over:
                    home[n] = min(over, key=lambda f: int(levels[list(members[f])].prod()))
        new = home < 0
        home[new] = count + np.arange(int(new.sum()))
        count += int(new.sum())
        scopes.append(distinct[new])
        homes[width] = home[which]
        if width != wide[-1]:
            for row in distinct[new].tolist():
                for i in row:
                    around[i].append(len(members))
                members.append(set(row))
    return scopes, homes


def _link_factors(
    levels: Indices,
    group: _Cliques,
    homes: Indices,
    scopes: list[Indices],
    packed: Indices,
    begins: Indices,
    inner: list[Indices],
    outer: list[Indices],
) -> None:
    first = 0
    for scope in scopes:
        chosen = np.flatnonzero((homes >= first) & (homes < first + len(scope)))
        if chosen.size:
            part = _Cliques(group.numbers[chosen], group.variables[chosen], group.strides[chosen])
            mine = homes[chosen]
            _link(levels, part, scope[mine - first], packed[mine], begins, inner, outer)
        first += len(scope)


def _link(
    levels: Indices,
    group: _Cliques,
    scopes: Indices,
    packed: Indices,
    begins: Indices,
    inner: list[Indices],
    outer: list[Indices],
) -> None:
    """Add which packed cells the cells of cliques are part of: those of `scopes` around them."""
    steps = np.zeros_like(scopes)
    for axis in range(group.variables.shape[1]):
        same = scopes == group.variables[:, axis, None]
        steps += np.where(same, group.strides[:, axis, None], 0)
    shapes, which = _unique_rows(levels[scopes])
    by_shape = np.split(np.argsort(which, kind="stable"), np.cumsum(np.bincount(which))[:-1])
    for shape, rows in zip(shapes, by_shape, strict=True):
        digits = np.indices(shape).reshape(len(shape), -1)
        outer.append((begins[group.numbers[rows], None] + steps[rows] @ digits).ravel())
        inner.append((packed[rows, None] + np.arange(digits.shape[1])).ravel())


def _unique_rows(rows: Indices) -> tuple[Indices, Indices]:
    """Sorted distinct rows, and which of them each row is."""
    rising = np.lexsort(rows.T[::-1])
    ordered = rows[rising]
    new = np.ones(len(rows), bool)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    which = np.empty(len(rows), np.intp)
    which[rising] = np.cumsum(new) - 1
    return ordered[new], which
