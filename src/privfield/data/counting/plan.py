"""Planning a count: which joint tables to fill so that every requested clique is in one of them.

Filling a table costs one step per row whatever the number of its columns, so few large tables are
cheaper than many small ones, as long as each stays in cache.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from privfield.errors import InputError

Clique = tuple[int, ...]

JOINT_CELLS = 1 << 14  # larger joint tables leave the cache, smaller ones cover fewer cliques
MAX_CELLS = 1 << 27

_COVER_TRIES = 4
_MOST_GREEDY = 8192  # cliques; the greedy cover takes seconds for more, and hours for many more


@dataclass(frozen=True)
class CountPlan:
    """How a set of cliques will be counted, and how much memory that takes.

    `tables` are the joint tables as tuples of columns, `and_pairs` the pairs of binary columns
    counted by population count (a column with itself counts its ones), and `homes[n]` is the joint
    table that holds clique n, or None where the pairs do.
    """

    shape: tuple[int, ...]
    cliques: tuple[Clique, ...]
    tables: tuple[Clique, ...]
    and_pairs: tuple[Clique, ...]
    homes: tuple[int | None, ...]

    @property
    def cells(self) -> int:
        """Cells held while counting."""
        return sum(cells_of(self.shape, table) for table in self.tables) + len(self.and_pairs)

    @property
    def bytes(self) -> int:
        """Bytes of the counters and of the tables returned; batches come on top."""
        return 8 * (self.cells + sum(cells_of(self.shape, clique) for clique in self.cliques))


def plan_counts(
    shape: Sequence[int],
    cliques: Sequence[Sequence[int]],
    *,
    weighted: bool = False,
    max_cells: int = MAX_CELLS,
) -> CountPlan:
    """Plan the tables of `cliques` (tuples of columns) over columns with `shape` levels.

    The plan depends on nothing else, so it reveals nothing about the rows. Cliques of at most two
    binary columns go to population counts when they span too many columns for one joint table;
    weighted rows cannot be counted that way.

    >>> plan = plan_counts((2, 3, 5), [(0, 1), (2, 1), ()])
    >>> len(plan.tables), plan.cells
    (1, 30)
    """
    shape = tuple(int(levels) for levels in shape)
    asked = tuple(_as_clique(clique) for clique in cliques)
    _check_request(shape, asked, max_cells)
    # An ordered set: a plan must not change from one process to the next.
    wanted = list(dict.fromkeys(map(_in_order, asked)))
    bits = [q for q in wanted if len(q) <= 2 and all(shape[column] == 2 for column in q)]
    bit_columns = sorted(set(chain.from_iterable(bits)))
    if weighted or 1 << len(bit_columns) <= JOINT_CELLS:
        bits, bit_columns = [], []
    in_bits = set(bits)
    rest = [clique for clique in wanted if clique not in in_bits]

    limit = JOINT_CELLS
    covers = _best_cover(shape, rest, limit)
    while limit > 1 and sum(cells_of(shape, table) for table, _ in covers) > max_cells:
        limit //= 4  # merging spends cells to save time; thousands of tables must spend fewer
        covers = _best_cover(shape, rest, limit)
    home_of = {rest[n]: t for t, (_, held) in enumerate(covers) for n in held}
    singles = [(column, column) for column in bit_columns]
    pairs = [clique for clique in bits if len(clique) == 2]
    return CountPlan(
        shape=shape,
        cliques=asked,
        tables=tuple(table for table, _ in covers),
        and_pairs=(*singles, *pairs),
        homes=tuple(home_of.get(_in_order(clique)) for clique in asked),
    )


def _as_clique(clique: Sequence[int]) -> Clique:
    """Tuples stay the objects they are: there may be half a million of them."""
    return clique if isinstance(clique, tuple) else tuple(int(column) for column in clique)


def _in_order(clique: Clique) -> Clique:
    if len(clique) < 2 or (len(clique) == 2 and clique[0] < clique[1]):
        return clique
    return tuple(sorted(clique))


def cells_of(shape: Sequence[int], clique: Clique) -> int:
    """Cells of the table over these columns."""
    return math.prod(shape[column] for column in clique)


def _check_request(shape: tuple[int, ...], cliques: tuple[Clique, ...], max_cells: int) -> None:
    for column, levels in enumerate(shape):
        if not 1 <= levels <= 1 << 16:
            raise InputError(f"shape: column {column} must have 1 to 65536 levels. Got {levels}.")
    for clique in cliques:
        if not all(0 <= column < len(shape) for column in clique):
            raise InputError(f"clique {clique}: columns must be 0 to {len(shape) - 1}.")
        if len(set(clique)) != len(clique):
            raise InputError(f"clique {clique}: a column may come only once.")
        if cells_of(shape, clique) > max_cells:
            fits = sorted(clique, key=lambda column: shape[column])
            while cells_of(shape, tuple(fits)) > max_cells:
                fits.pop()
            product = " × ".join(str(shape[column]) for column in clique)
            raise InputError(
                f"clique {clique}: {product} levels make {cells_of(shape, clique):,} cells, but "
                f"max_cells is {max_cells:,}. Its columns {tuple(sorted(fits))} would fit."
            )
    total = sum(cells_of(shape, clique) for clique in cliques)
    if total > max_cells:
        largest = max(cliques, key=lambda clique: cells_of(shape, clique))
        cells = cells_of(shape, largest)
        raise InputError(
            f"cliques: {len(cliques):,} tables have {total:,} cells together, but max_cells is "
            f"{max_cells:,}. The largest is clique {largest} with {cells:,} cells."
        )


Cover = list[tuple[Clique, list[int]]]


def _best_cover(shape: tuple[int, ...], cliques: list[Clique], limit: int) -> Cover:
    """The cover with the fewest tables of a few tries."""
    if not any(cliques):
        return [((), [n]) for n in range(len(cliques))]
    if len(cliques) > _MOST_GREEDY:
        return _grid_cover(shape, cliques, limit)
    # Greedy choices are full of ties. Jitter breaks them differently in each try; the fixed seed
    # is no privacy noise, it only makes the plan the same in every process.
    rng = np.random.default_rng(0)
    tries = (
        _cover(shape, cliques, limit, np.exp(0.1 * rng.standard_normal(len(cliques))))
        for _ in range(_COVER_TRIES)
    )
    return min(tries, key=len)


def _grid_cover(shape: tuple[int, ...], cliques: list[Clique], limit: int) -> Cover:
    """A cover in time linear in the cliques, with about half as many tables again.

    Columns are put into groups, of which any two make a joint table that fits; a clique within two
    groups is counted there, any other one alone.
    """
    group: dict[int, int] = {}
    number, filled = 0, 1
    for column in sorted(range(len(shape)), key=lambda column: shape[column]):
        if filled * shape[column] > math.isqrt(limit):
            number, filled = number + 1, 1
        group[column] = number
        filled *= shape[column]
    homes: dict[tuple[object, ...], tuple[set[int], list[int]]] = {}
    for place, clique in enumerate(cliques):
        place_of: tuple[object, ...] = tuple(sorted({group[column] for column in clique}))
        if len(place_of) > 2 or cells_of(shape, clique) > limit:
            place_of = ("alone", place)
        columns, held = homes.setdefault(place_of, (set(), []))
        columns.update(clique)
        held.append(place)
    cover: Cover = []
    for columns, held in homes.values():
        if cells_of(shape, tuple(columns)) <= limit or len(held) == 1:
            cover.append((_ordered(shape, columns), held))
        else:  # one of the groups is a single wide column
            cover += [(_ordered(shape, cliques[place]), [place]) for place in held]
    return cover


def _ordered(shape: tuple[int, ...], columns: Iterable[int]) -> Clique:
    """Kernels take a column of 16-bit codes only in front, and more than one never fits."""
    return tuple(sorted(columns, key=lambda column: (shape[column] <= 256, column)))


def _cover(
    shape: tuple[int, ...], cliques: list[Clique], limit: int, jitter: NDArray[np.float64]
) -> Cover:
    """Joint tables of at most `limit` cells and, for each, the positions of the cliques it holds.

    A clique with more cells gets a table of its own. Greedy: start from the largest open clique,
    then add the column that closes most cliques for the room it takes.
    """
    levels = np.array(shape, np.int64)
    room = np.log(np.maximum(levels, 1.1))
    size = np.array([len(clique) for clique in cliques])
    flat = np.fromiter(chain.from_iterable(cliques), np.intp, size.sum())
    owner = np.repeat(np.arange(len(cliques)), size)
    by_column = np.argsort(flat, kind="stable")
    members = np.split(owner[by_column], np.searchsorted(flat[by_column], range(1, len(shape))))
    name_sum = np.bincount(owner, flat, len(cliques)).astype(np.intp)
    cells = np.array([cells_of(shape, clique) for clique in cliques], np.float64)
    # Cliques of wide columns are hard to place; without the weight they would be left to the end.
    weight = np.exp(1.5 * np.bincount(owner, np.log(room[flat]), len(cliques))) * jitter
    is_open = size > 0
    cover: Cover = []
    for seed in np.argsort(-cells, kind="stable"):
        if not is_open[seed]:
            continue
        # Of each clique: how many columns the table lacks, the sum of their numbers (their name
        # once one is left), and their cells.
        lack, name, lack_cells = size.copy(), name_sum.copy(), cells.copy()
        alone = size == 1
        gain = np.bincount(name[alone], weight[alone], len(shape)).astype(np.float64)
        table: list[int] = []
        table_cells = 1
        add = list(cliques[seed])
        while add:
            for column in add:
                held = members[column]
                lack[held] -= 1
                name[held] -= column
                lack_cells[held] /= shape[column]
                last = held[lack[held] == 1]
                np.add.at(gain, name[last], weight[last])
                table_cells *= shape[column]
            table += add
            gain[table] = 0.0
            score = np.where(levels <= limit // table_cells, gain / room, 0.0)
            if score.max() > 0:
                add = [int(score.argmax())]
                continue
            # No single column closes a clique: take the largest clique that still fits whole.
            fits = np.flatnonzero(is_open & (lack > 0) & (lack_cells <= limit // table_cells))
            best = cliques[fits[lack_cells[fits].argmax()]] if fits.size else ()
            add = [column for column in best if column not in table]
        closed = np.flatnonzero(is_open & (lack == 0))
        is_open[closed] = False
        weight[closed] = 0.0
        cover.append((_ordered(shape, table), closed.tolist()))
    cover[0][1].extend(np.flatnonzero(size == 0).tolist())  # any table holds the grand total
    return cover
