"""Noisy contingency tables: every data set of two rows, every neighbour, every design."""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.audit.finding import (
    Finding,
    bounded,
    drawn,
    log_likelihood,
    remove_one,
    replace_one,
    worst,
)
from privfield.data.batch import CodedBatch
from privfield.data.counting.count import count_tables
from privfield.mechanisms.tables.design import Design, Task, choose_design
from privfield.mechanisms.tables.mechanism import _tables, measure
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import NON_PRIVATE, ZCDP, Budget, PureDP
from privfield.schema import Schema

_PAGE = "marginals.md"
_SHAPE = (2, 3, 2)
_CLIQUES = tuple(combinations(range(3), 2))
_LEVELS = 4000  # of the one variable whose noise is looked at


def audit_marginals() -> list[Finding]:
    """All pairs of three variables: Laplace tables, Gaussian tables, Gaussian interactions."""
    found = []
    for adjacency in (Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE):
        cases: list[tuple[str, Budget, float, str]] = [
            ("uniform", PureDP(1), 1.0, "ε"),
            ("cells", ZCDP(0.5), 0.5, "ρ"),
            ("residual", ZCDP(0.5), 0.5, "ρ"),
        ]
        for name, budget, limit, symbol in cases:
            found.append(
                bounded(
                    f"noisy tables, {name} design ({adjacency})",
                    symbol,
                    limit,
                    _worst(name, budget, adjacency),
                    "every table of two rows over 2×3×2 levels, every neighbour",
                    _PAGE,
                )
            )
    found.append(_draws())
    return found


def _worst(name: str, budget: Budget, adjacency: Adjacency) -> float:
    public = adjacency is Adjacency.REPLACE_ONE
    task = Task(_SHAPE, _CLIQUES, (1.0,) * len(_CLIQUES), adjacency, 1, public)
    design = choose_design(task, budget, name, "auto")
    cells = [
        int(np.prod([_SHAPE[v] for v in part.scope])) if part.scope else 1 for part in design.parts
    ]
    scales = np.repeat([part.law.scale for part in design.parts], cells)
    rows = list(product(*map(range, _SHAPE)))
    data_sets = list(combinations_with_replacement(rows, 2))

    def neighbours(data: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        return replace_one(data, rows) if public else remove_one(data)

    law = design.parts[0].law.name
    return worst(data_sets, neighbours, lambda data: _numbers(design, data), scales, law)


def _numbers(design: Design, rows: tuple[tuple[int, ...], ...]) -> NDArray[Any]:
    """What `measure` adds noise to."""
    columns = np.array(rows, np.uint8).reshape(-1, len(_SHAPE)).T
    batch = CodedBatch(tuple(np.ascontiguousarray(c) for c in columns), rows=len(rows))
    counts = count_tables([batch], _SHAPE, _CLIQUES, threads=1)
    tables = _tables(design, list(_CLIQUES), counts)
    return np.concatenate([np.asarray(table).ravel() for _, table in tables])


def _draws() -> Finding:
    """A real release of one table, against the exact one."""
    schema, rows = Schema({"x": _LEVELS}), np.zeros((10, 1), np.int64)
    exact = measure(rows, schema, [("x",)], NON_PRIVATE)
    noisy = measure(rows, schema, [("x",)], PureDP(1))
    noise, law = noisy.tables[0] - exact.tables[0], noisy.laws[0]
    return drawn(
        "noisy tables", log_likelihood(noise, law), log_likelihood(noise, law, 0.5), _LEVELS, _PAGE
    )
