"""Find a state that no table forbids."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privfield.errors import InputError
from privfield.inference.factors import Factors

Allowed = NDArray[np.bool_]

_MAX_STEPS = 20_000


class StartStates:
    """Draws allowed states by backtracking; every start may be another one.

    Values that no allowed row of some table supports are struck out after each choice, so that on a
    tree no choice is ever taken back. In general this is constraint satisfaction, which can take
    exponential time: after 20,000 choices it gives up and asks for a start.
    """

    def __init__(self, factors: Factors) -> None:
        self._shape = factors.shape
        self._tables: list[tuple[tuple[int, ...], Allowed]] = []
        for clique, table in zip(factors.cliques, factors.tables, strict=True):
            allowed = np.asarray(table) > -np.inf
            if not allowed.any():
                raise InputError("every state is forbidden: a table holds only −inf")
            if not allowed.all():
                self._tables.append((clique, allowed))
        self._of: dict[int, list[int]] = {}
        for number, (clique, _) in enumerate(self._tables):
            for variable in clique:
                self._of.setdefault(variable, []).append(number)
        self._domains = [np.ones(levels, dtype=np.bool_) for levels in factors.shape]
        if not self._propagate(self._domains, set(range(len(self._tables)))):
            raise InputError("every state is forbidden: the tables' −inf leave no state")

    @property
    def restricted(self) -> bool:
        """Whether any table forbids anything."""
        return bool(self._tables)

    def draw(self, rng: np.random.Generator) -> NDArray[np.int32]:
        """An allowed state, at random but not from P."""
        free = [v for v in range(len(self._shape)) if v not in self._of]
        state = np.zeros(len(self._shape), dtype=np.int32)
        state[free] = rng.integers(0, np.array([self._shape[v] for v in free], dtype=np.int64))
        steps = 0
        # each level of the search: domains before the choice, its variable, values yet to try
        domains = [domain.copy() for domain in self._domains]
        stack: list[tuple[list[Allowed], int, list[int]]] = []
        while True:
            open_ = [v for v in self._of if domains[v].sum() > 1]
            if not open_:
                for variable in self._of:
                    state[variable] = int(np.flatnonzero(domains[variable])[0])
                return state
            variable = min(open_, key=lambda v, d=domains: (int(d[v].sum()), v))  # type: ignore[misc]
            values = rng.permutation(np.flatnonzero(domains[variable])).tolist()
            stack.append((domains, variable, values))
            while True:
                if not stack:
                    raise InputError("every state is forbidden: the tables' −inf leave no state")
                before, variable, values = stack[-1]
                if not values:
                    stack.pop()
                    continue
                steps += 1
                if steps > _MAX_STEPS:
                    raise InputError(
                        f"no allowed start was found in {_MAX_STEPS:,} steps: pass start="
                    )
                domains = [domain.copy() for domain in before]
                domains[variable][:] = False
                domains[variable][values.pop()] = True
                if self._propagate(domains, set(self._of[variable])):
                    break

    def _propagate(self, domains: list[Allowed], waiting: set[int]) -> bool:
        """Strike out unsupported values until nothing changes; False when a domain is empty."""
        while waiting:
            number = waiting.pop()
            clique, allowed = self._tables[number]
            if not clique:
                continue
            possible = allowed[np.ix_(*(np.flatnonzero(domains[v]) for v in clique))]
            if not possible.any():
                return False
            for axis, variable in enumerate(clique):
                others = tuple(a for a in range(len(clique)) if a != axis)
                supported = possible.any(axis=others)
                if not supported.all():
                    live = np.flatnonzero(domains[variable])
                    domains[variable][live[~supported]] = False
                    waiting.update(self._of[variable])
        return True
