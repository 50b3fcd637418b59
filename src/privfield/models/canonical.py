"""The same distribution with small log-potentials: what differences cancel is taken out first."""

from __future__ import annotations

import numpy as np

from privfield.inference.factors import Factors, Table


def canonical(factors: Factors) -> tuple[Factors, float]:
    """Equivalent factors and the constant that was taken out of them.

    Potentials may hold large parts that cancel between cliques or only shift log Z; entropies and
    divergences would lose their digits to them. Here each clique occurs once, what a table says
    about one variable alone stands in that variable's own table, every table has maximum 0, and
    constants are apart.
    """
    constant = 0.0
    single: dict[int, Table] = {}
    joint: dict[tuple[int, ...], Table] = {}
    for clique, table in zip(factors.cliques, factors.tables, strict=True):
        if not clique:
            constant += float(table)
            continue
        order = sorted(range(len(clique)), key=clique.__getitem__)
        key = tuple(clique[axis] for axis in order)
        turned = np.transpose(table, order)
        if len(key) == 1:
            single[key[0]] = single.get(key[0], 0.0) + turned
        else:
            joint[key] = joint[key] + turned if key in joint else turned
    for key, table in joint.items():
        rest = table
        for axis, variable in enumerate(key):
            part = _about_one(rest, axis)
            shape = [-1 if other == axis else 1 for other in range(rest.ndim)]
            rest = rest - part.reshape(shape)
            single[variable] = single.get(variable, 0.0) + part
        joint[key] = rest
    cliques: list[tuple[int, ...]] = []
    tables: list[Table] = []
    for scope, table in [*(((v,), t) for v, t in sorted(single.items())), *joint.items()]:
        top = float(table.max())
        shift = top if np.isfinite(top) else 0.0
        constant += shift
        cliques.append(scope)
        tables.append(table - shift)
    return Factors(factors.shape, tuple(cliques), tuple(tables)), constant


def _about_one(table: Table, axis: int) -> Table:
    """The mean of the allowed entries for each level of one variable; 0 where there are none."""
    others = tuple(a for a in range(table.ndim) if a != axis)
    allowed = np.isfinite(table)
    total = np.where(allowed, table, 0.0).sum(axis=others)
    return np.asarray(total / np.maximum(allowed.sum(axis=others), 1))
