"""The contraction in log space: slower, and right for potentials of any size.

Works on the same tree as the fast path, with log-sum-exp, or with max for most likely states.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from privfield.inference.contraction_tree import Node, Scope, roles
from privfield.inference.factors import Table

_BLOCK_CELLS = 2**17  # of one intermediate sum: about the size of a processor's cache


def log_forward(
    nodes: Sequence[Node], leaves: Sequence[Table], shift: float, use_max: bool = False
) -> tuple[list[Table], float]:
    """Log-tables of all nodes, each message shifted to maximum 0, and `shift` + these shifts.

    The sum is log Z, or with `use_max` the highest log-potential of a state. It stops at the first
    message that is −inf everywhere; the list is then incomplete.
    """
    tables = list(leaves)
    total = shift
    if total == -math.inf:
        return tables, total
    for node in nodes[len(leaves) :]:
        scopes = [nodes[k].scope for k in node.operands]
        parts = [tables[k] for k in node.operands]
        if node.summed < 0:
            table = _seen(parts[0], scopes[0], node.scope)
            if len(parts) == 2:
                table = table + _seen(parts[1], scopes[1], node.scope)
        elif len(parts) == 1:
            table = _reduce(parts[0], scopes[0].index(node.summed), use_max)
        else:
            split = roles(nodes[node.operands[0]], nodes[node.operands[1]], node.summed)
            v = (node.summed,)
            x = _fold(parts[0], scopes[0], (split.batch, split.rows, v))
            y = _fold(parts[1], scopes[1], (split.batch, v, split.columns))
            levels = dict(zip(scopes[0] + scopes[1], parts[0].shape + parts[1].shape, strict=True))
            table = log_matmul(x, y, use_max).reshape([levels[u] for u in node.scope])
        if node.scaled:
            top = float(table.max())
            total += top
            if top == -math.inf:
                return tables, total
            table = table - top
        tables.append(table)
    return tables, total


def log_backward(nodes: Sequence[Node], tables: Sequence[Table], leaves: int) -> list[Table]:
    """Marginals of the leaves from the tables of `log_forward`."""
    adjoint: list[Table] = [np.zeros(())] * len(nodes)
    for i in range(len(nodes) - 1, leaves - 1, -1):
        node, here = nodes[i], adjoint[i]
        scopes = [nodes[k].scope for k in node.operands]
        if node.summed >= 0 and len(scopes) == 2:
            # Shifts drop out: adjoints are normalised by Σ table·adjoint = 1 below.
            left, right = node.operands
            split = roles(nodes[left], nodes[right], node.summed)
            v = (node.summed,)
            kept = (split.batch, split.rows, split.columns)
            x = _fold(tables[left], scopes[0], (split.batch, split.rows, v))
            y = _fold(tables[right], scopes[1], (split.batch, v, split.columns))
            c = _fold(here, node.scope, kept)
            dx = log_matmul(c, y.transpose(0, 2, 1))
            dy = log_matmul(x.transpose(0, 2, 1), c)
            found = [
                _unfold(dx, (split.batch, split.rows, v), scopes[0], tables[left].shape),
                _unfold(dy, (split.batch, v, split.columns), scopes[1], tables[right].shape),
            ]
        else:
            scope = node.scope if node.summed < 0 else scopes[0]
            levels = tables[i].shape if node.summed < 0 else tables[node.operands[0]].shape
            seen = np.broadcast_to(_seen(here, node.scope, scope), levels)
            found = []
            for k, own in zip(node.operands, scopes, strict=True):
                product = seen
                for other in node.operands:
                    if other != k:
                        product = product + _seen(tables[other], nodes[other].scope, scope)
                away = [axis for axis, u in enumerate(scope) if u not in own]
                for axis in reversed(away):
                    product = _reduce(product, axis, use_max=False)
                left_over = tuple(u for u in scope if u in own)
                found.append(_seen(product, left_over, own))
        for k, table in zip(node.operands, found, strict=True):
            adjoint[k] = table - _log_sum(tables[k] + table)
    return [np.exp(tables[k] + adjoint[k]) for k in range(leaves)]


def log_matmul(x: Table, y: Table, use_max: bool = False) -> Table:
    """log Σ_k exp(x[b,i,k] + y[b,k,j]), in blocks of rows so that no large table is made."""
    batch, rows, inner = x.shape
    out = np.empty((batch, rows, y.shape[2]))
    at_once = max(1, _BLOCK_CELLS // (inner * y.shape[2]))
    if at_once >= rows:
        step = max(1, at_once // rows)
        for b in range(0, batch, step):
            terms = x[b : b + step, :, :, None] + y[b : b + step, None, :, :]
            out[b : b + step] = _reduce(terms, 2, use_max)
        return out
    for b in range(batch):
        for i in range(0, rows, at_once):
            terms = x[b, i : i + at_once, :, None] + y[b, None, :, :]
            out[b, i : i + at_once] = _reduce(terms, 1, use_max)
    return out


def _reduce(table: Table, axis: int, use_max: bool) -> Table:
    top = table.max(axis=axis, keepdims=True)
    if use_max:
        return np.asarray(np.squeeze(top, axis))
    top[top == -np.inf] = 0.0
    with np.errstate(divide="ignore"):
        total = np.log(np.exp(table - top).sum(axis=axis))
    return np.asarray(total + np.squeeze(top, axis))


def _log_sum(table: Table) -> float:
    top = float(table.max())
    return top + math.log(float(np.exp(table - top).sum())) if top > -math.inf else 0.0


def _seen(table: Table, scope: Scope, target: Scope) -> Table:
    here = [v for v in target if v in scope]
    moved = table.transpose([scope.index(v) for v in here])
    return moved[tuple(slice(None) if v in scope else None for v in target)]


def _fold(table: Table, scope: Scope, groups: Sequence[Scope]) -> Table:
    order = [scope.index(v) for group in groups for v in group]
    sizes = [math.prod([table.shape[scope.index(v)] for v in group]) for group in groups]
    return table.transpose(order).reshape(sizes)


def _unfold(table: Table, groups: Sequence[Scope], scope: Scope, shape: tuple[int, ...]) -> Table:
    flat = [v for group in groups for v in group]
    sizes = [shape[scope.index(v)] for v in flat]
    return table.reshape(sizes).transpose([flat.index(v) for v in scope])
