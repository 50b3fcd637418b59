"""The contraction in log space: slower, and right for potentials of any size.

Works on the same tree as the fast path, with log-sum-exp, or with max for most likely states.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from privfield.inference.contraction.tree import Node, Scope, roles
from privfield.inference.factors import Table, aligned, fold

_NOTHING = np.zeros(())
_BLOCK_CELLS = 2**17  # of one intermediate sum: about the size of a processor's cache
_LOST = 1e-250  # a sum below, of terms up to 1, may have lost digits to underflow


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
            table = aligned(parts[0], scopes[0], node.scope)
            other = aligned(parts[1], scopes[1], node.scope) if len(parts) == 2 else 0.0
            table = np.add(table, other, order="C")
        elif len(parts) == 1:
            table = _reduce(parts[0], scopes[0].index(node.summed), use_max)
        else:
            split = roles(nodes[node.operands[0]], nodes[node.operands[1]], node.summed)
            v = (node.summed,)
            x = fold(parts[0], scopes[0], (split.batch, split.rows, v))
            y = fold(parts[1], scopes[1], (split.batch, v, split.columns))
            levels = dict(zip(scopes[0] + scopes[1], parts[0].shape + parts[1].shape, strict=True))
            table = log_matmul(x, y, use_max).reshape([levels[u] for u in node.scope])
        if node.scaled:
            top = float(table.max())
            total += top
            if top == -math.inf:
                return tables, total
            table -= top
        tables.append(table)
    return tables, total


def log_backward(nodes: Sequence[Node], tables: list[Table], leaves: int) -> list[Table]:
    """Marginals of the leaves from the tables of `log_forward`, which are given up on the way."""
    adjoint: list[Table] = [_NOTHING] * len(nodes)
    for i in range(len(nodes) - 1, leaves - 1, -1):
        node, here = nodes[i], adjoint[i]
        adjoint[i] = _NOTHING
        if not node.scope and here is _NOTHING:
            here = np.zeros(())  # log Z depends on the last messages as it is
        levels = tables[i].shape
        tables[i] = _NOTHING  # all that it went into came before
        for k in node.operands:
            # Shifts drop out: adjoints are normalised by Σ table·adjoint = 1.
            table = _operand_adjoint(nodes, tables, node, here, levels, k)
            total = np.add(tables[k], table, order="C")
            log_sum = _log_sum(total)  # and `total` is in proportion to the marginal
            if k < leaves:
                adjoint[k] = np.divide(total, total.sum(), out=total)
            else:
                adjoint[k] = np.subtract(table, log_sum, out=total)
            del table, total
    return adjoint[:leaves]


def _operand_adjoint(
    nodes: Sequence[Node],
    tables: Sequence[Table],
    node: Node,
    here: Table,
    levels: tuple[int, ...],
    k: int,
) -> Table:
    """What operand k of a node with the adjoint `here` gets from it."""
    own = nodes[k].scope
    if node.summed >= 0 and len(node.operands) == 2:
        left, right = node.operands
        split = roles(nodes[left], nodes[right], node.summed)
        v = (node.summed,)
        c = fold(here, node.scope, (split.batch, split.rows, split.columns))
        if k == left:
            y = fold(tables[right], nodes[right].scope, (split.batch, v, split.columns))
            table = log_matmul(c, y.transpose(0, 2, 1))
            return _unfold(table, (split.batch, split.rows, v), own, tables[k].shape)
        x = fold(tables[left], nodes[left].scope, (split.batch, split.rows, v))
        table = log_matmul(x.transpose(0, 2, 1), c)
        return _unfold(table, (split.batch, v, split.columns), own, tables[k].shape)
    if node.summed >= 0:
        return np.broadcast_to(aligned(here, node.scope, own), tables[k].shape)
    product = np.broadcast_to(here, levels)
    for other in node.operands:
        if other != k:
            product = product + aligned(tables[other], nodes[other].scope, node.scope)
    for axis in reversed([axis for axis, u in enumerate(node.scope) if u not in own]):
        product = _reduce(product, axis, use_max=False)
    return aligned(product, tuple(u for u in node.scope if u in own), own)


def log_cells_in_memory(
    nodes: Sequence[Node], leaves: int, cells: Callable[[Collection[int]], int]
) -> int:
    """Doubles that `log_forward` and then `log_backward` hold at most, at once."""
    sizes = [cells(node.scope) for node in nodes]
    live = most = sum(sizes[:leaves])
    blocks = [0] * len(nodes)
    for i in range(leaves, len(nodes)):
        node = nodes[i]
        work = 0
        if node.summed >= 0 and len(node.operands) == 2:
            left, right = node.operands
            terms = cells({*nodes[left].scope, *nodes[right].scope})
            work = sizes[left] + sizes[right] + 2 * sizes[i] + 3 * min(terms, _BLOCK_CELLS)
            blocks[i] = work + sizes[i]
        elif node.summed >= 0:
            work = sizes[node.operands[0]]
        live += sizes[i]
        most = max(most, live + work)
    for i in range(len(nodes) - 1, leaves - 1, -1):
        for k in nodes[i].operands:
            work = sizes[k] + blocks[i] if nodes[i].summed >= 0 else 2 * sizes[i]
            live += sizes[k]
            most = max(most, live + work)
        live -= 2 * sizes[i] if nodes[i].scope else sizes[i]
    return most


def log_matmul(x: Table, y: Table, use_max: bool = False) -> Table:
    """log Σ_k exp(x[b,i,k] + y[b,k,j]), without a table of all terms.

    Sums are a product of matrices, whose rows and columns are scaled to maximum 1. Where the
    largest terms of a row and a column do not meet, so little may be left that digits are lost:
    those sums are made again, term by term.
    """
    if use_max:
        return _largest_terms(x, y)
    tops = x.max(axis=2, keepdims=True), y.max(axis=1, keepdims=True)
    for top in tops:
        top[top == -np.inf] = 0.0
    left, right = x - tops[0], y - tops[1]
    sums = np.exp(left, out=left) @ np.exp(right, out=right)
    lost = sums < _LOST
    if lost.any():
        # a sum that has no term at all is a true zero
        np.greater(x, -np.inf, out=left)
        np.greater(y, -np.inf, out=right)
        lost &= left @ right > 0
    with np.errstate(divide="ignore"):
        out = np.log(sums, out=sums)
    out += tops[0]
    out += tops[1]
    for some in _blocks(np.argwhere(lost), x.shape[2]):
        batch, row, column = some.T
        out[batch, row, column] = _reduce(x[batch, row, :] + y[batch, :, column], 1, False)
    return np.asarray(out)


def _blocks(places: NDArray[np.intp], each: int) -> Iterator[NDArray[np.intp]]:
    at_once = max(1, _BLOCK_CELLS // each)
    return (places[start : start + at_once] for start in range(0, len(places), at_once))


def _largest_terms(x: Table, y: Table) -> Table:
    """max_k x[b,i,k] + y[b,k,j], in blocks of rows so that no large table is made."""
    batch, rows, inner = x.shape
    out = np.empty((batch, rows, y.shape[2]))
    at_once = max(1, _BLOCK_CELLS // (inner * y.shape[2]))
    for b in range(batch):
        for i in range(0, rows, at_once):
            terms = x[b, i : i + at_once, :, None] + y[b, None, :, :]
            out[b, i : i + at_once] = terms.max(axis=1)
    return out


def _reduce(table: Table, axis: int, use_max: bool) -> Table:
    top = table.max(axis=axis, keepdims=True)
    if use_max:
        return np.asarray(np.squeeze(top, axis))
    top[top == -np.inf] = 0.0
    terms = table - top
    with np.errstate(divide="ignore"):
        total = np.log(np.exp(terms, out=terms).sum(axis=axis))
    return np.asarray(total + np.squeeze(top, axis))


def _log_sum(table: Table) -> float:
    """log Σ exp; the table becomes exp(table − max)."""
    top = float(table.max())
    if top == -math.inf:
        return 0.0
    np.exp(np.subtract(table, top, out=table), out=table)
    return top + math.log(float(table.sum()))


def _unfold(table: Table, groups: Sequence[Scope], scope: Scope, shape: tuple[int, ...]) -> Table:
    flat = [v for group in groups for v in group]
    sizes = [shape[scope.index(v)] for v in flat]
    return table.reshape(sizes).transpose([flat.index(v) for v in scope])
