"""Find a state that no table forbids."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import NDArray

from privfield.errors import InputError
from privfield.inference.factors import Factors

Allowed = NDArray[np.bool_]
State = NDArray[np.int32]

# A cell this far below its table's largest is one that no chain is likely to cross (2e-9).
_NEARLY_FORBIDDEN = 20.0
_MAX_BACKTRACKS = 20_000
_MAX_BACKTRACKS_NEARLY = 1_000

_NONE = "every state is forbidden: the tables' −inf leave no state"


class StartStates:
    """Draws allowed states by backtracking; every start may be another one.

    Values that no allowed row of some table supports are struck out after each choice, so that on a
    tree no choice is ever taken back. In general this is constraint satisfaction, which can take
    exponential time: after 20,000 choices taken back it gives up and asks for a start.

    Cells that are nearly forbidden are avoided too while states without any are found easily: near
    −inf as at −inf, a chain stays where it starts, and the starts must show that there are others.
    """

    def __init__(self, factors: Factors) -> None:
        hard, soft = [], []
        for clique, table in zip(factors.cliques, factors.tables, strict=True):
            cells = np.asarray(table)
            top = cells.max(initial=-np.inf)
            if top == -np.inf:
                raise InputError("every state is forbidden: a table holds only −inf")
            hard.append((clique, cells > -np.inf))
            soft.append((clique, cells >= top - _NEARLY_FORBIDDEN))
        self._hard = _Search(factors.shape, hard)
        if not self._hard.possible:
            raise InputError(_NONE)
        self._soft: _Search | None = None
        self.restricted = any(not allowed.all() for _, allowed in soft)
        """Whether any table forbids anything, or nearly."""
        if any((a != b).any() for (_, a), (_, b) in zip(hard, soft, strict=True)):
            self._soft = _Search(factors.shape, soft)

    def draw(self, rng: np.random.Generator) -> State:
        """An allowed state, at random but not from P."""
        if self._soft is not None:
            state = self._soft.draw(rng, _MAX_BACKTRACKS_NEARLY)
            if state is not None:
                return state
            self._soft = None
        state = self._hard.draw(rng, _MAX_BACKTRACKS)
        if state is None:
            if not self._hard.possible:
                raise InputError(_NONE)
            raise InputError(
                f"no allowed start was found in {_MAX_BACKTRACKS:,} backtracks: pass start="
            )
        return state


class _Search:
    """Backtracking over the variables in some tables of allowed cells; others are free.

    Domains are never changed, only replaced: the trail keeps those before, to be put back.
    """

    def __init__(
        self, shape: tuple[int, ...], tables: Sequence[tuple[tuple[int, ...], Allowed]]
    ) -> None:
        self._tables = [
            (clique, allowed) for clique, allowed in tables if clique and not allowed.all()
        ]
        self._of: dict[int, list[int]] = {}
        for number, (clique, _) in enumerate(self._tables):
            for variable in clique:
                self._of.setdefault(variable, []).append(number)
        self._free = np.array([v for v in range(len(shape)) if v not in self._of], dtype=np.intp)
        self._levels = np.array([shape[v] for v in self._free], dtype=np.int64)
        self._domains = [np.arange(levels) for levels in shape]  # the levels left
        self.possible = self._propagate(self._domains, set(range(len(self._tables))), [])

    def draw(self, rng: np.random.Generator, most: int) -> State | None:
        """A state; None after `most` backtracks, or when there is none (then not `possible`)."""
        if not self.possible:
            return None
        state = np.zeros(len(self._domains), dtype=np.int32)
        state[self._free] = rng.integers(0, self._levels)
        domains = list(self._domains)
        # fewest levels first; entries that the search has overtaken are skipped
        queue = [(domains[v].size, v) for v in self._of if domains[v].size > 1]
        heapify(queue)
        trail: list[tuple[int, NDArray[np.intp]]] = []
        stack: list[tuple[int, int, list[int]]] = []  # trail before, variable, levels yet to try
        backtracks = 0
        while True:
            while queue and domains[queue[0][1]].size != queue[0][0]:
                heappop(queue)
            if not queue:
                for variable in self._of:
                    state[variable] = domains[variable][0]
                return state
            variable = queue[0][1]
            stack.append((len(trail), variable, rng.permutation(domains[variable]).tolist()))
            while True:
                if not stack:
                    self.possible = False
                    return None
                mark, variable, levels = stack[-1]
                if not levels:
                    stack.pop()
                    if stack:
                        self._undo(domains, trail, stack[-1][0], queue)
                    continue
                trail.append((variable, domains[variable]))
                domains[variable] = np.array([levels.pop()])
                if self._propagate(domains, set(self._of[variable]), trail):
                    for changed, _ in trail[mark:]:
                        if domains[changed].size > 1:
                            heappush(queue, (domains[changed].size, changed))
                    break
                backtracks += 1
                if backtracks > most:
                    return None
                self._undo(domains, trail, mark, queue)

    def _undo(
        self,
        domains: list[NDArray[np.intp]],
        trail: list[tuple[int, NDArray[np.intp]]],
        mark: int,
        queue: list[tuple[int, int]],
    ) -> None:
        while len(trail) > mark:
            variable, before = trail.pop()
            domains[variable] = before
            heappush(queue, (before.size, variable))

    def _propagate(
        self,
        domains: list[NDArray[np.intp]],
        waiting: set[int],
        trail: list[tuple[int, NDArray[np.intp]]],
    ) -> bool:
        """Strike out unsupported levels until nothing changes; False when a domain is empty."""
        while waiting:
            number = waiting.pop()
            clique, allowed = self._tables[number]
            possible = allowed[np.ix_(*[domains[v] for v in clique])]
            if possible.all():
                continue
            if not possible.any():
                return False
            for axis, variable in enumerate(clique):
                if domains[variable].size == 1:
                    continue
                supported = possible.any(axis=tuple(a for a in range(len(clique)) if a != axis))
                if not supported.all():
                    trail.append((variable, domains[variable]))
                    domains[variable] = domains[variable][supported]
                    waiting.update(self._of[variable])
        return True
