"""Sparse regressions of every variable on features of all others, at once and without shrinkage."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_CHUNK_CELLS = 1 << 19  # rows × (features or outputs) at a time: stays in the cache
_HELD_BYTES = 1 << 26  # of features that are kept between passes
_PENALTY = 0.4  # times the noise of a block's gradient and √log(groups): the best of 0.2…2 tried
_ROUNDS, _INNER, _DIRECT = 15, 60, 80  # most passes with a model, its steps, passes without one
_ACCURACY, _FINEST = 0.2, 1e-3  # of the weights: times 1/√rows, but never finer
_CHECK = 5  # inner steps between looks


@dataclass(frozen=True, eq=False)
class Nodes:
    """Which outputs (one or more per node) are regressed on which groups of features.

    `features` and `targets` turn raw rows into float32 columns; targets are 0 or 1, and with
    `softmax` the outputs of a node are its levels, otherwise each output is a logistic regression.
    `outputs` and `groups` are the first columns of each node and group; group 0 is a constant, not
    penalised. `allowed` is (nodes, groups).
    """

    features: Callable[[Array], Array]
    targets: Callable[[Array], Array]
    outputs: NDArray[np.intp]
    groups: NDArray[np.intp]
    output_count: int
    feature_count: int
    allowed: NDArray[np.bool_]
    softmax: bool

    @property
    def most_curvature(self) -> float:
        """The second derivative of the loss is never above it."""
        return 0.5 if self.softmax else 0.25

    def norms(self, weights: Array) -> Array:
        """Frobenius norms (nodes, groups) of the blocks of (outputs, features)."""
        if not self.softmax:
            return np.abs(weights)
        squares = np.add.reduceat(weights * weights, self.groups, axis=1)
        return np.asarray(np.sqrt(np.add.reduceat(squares, self.outputs, axis=0)))

    def spread(self, blocks: Array) -> Array:
        """One number of each block, at all of its entries."""
        if not self.softmax:
            return blocks
        wide = np.repeat(blocks, np.diff([*self.groups, self.feature_count]), axis=1)
        return np.repeat(wide, np.diff([*self.outputs, self.output_count]), axis=0)

    def per_node(self, numbers: Array) -> Array:
        """Sums over the outputs of each node."""
        return np.add.reduceat(numbers, self.outputs) if self.softmax else numbers

    def per_output(self, numbers: Array) -> Array:
        """A number of each node, at each of its outputs, as a column."""
        if not self.softmax:
            return numbers[:, None]
        return np.repeat(numbers, np.diff([*self.outputs, self.output_count]))[:, None]


@dataclass(frozen=True, eq=False)
class NodeFit:
    """Weights (outputs, features) after the step that undoes shrinkage, and their noise.

    `noise` (nodes, groups) is the expected squared Frobenius norm of a block of pure noise, and
    `rank` its dimension; 0 where a column does not vary, so that nothing can be said.
    """

    weights: NDArray[np.float64]
    noise: NDArray[np.float64]
    rank: NDArray[np.int64]


def regress_nodes(rows: Array, nodes: Nodes) -> NodeFit:
    """Group-lasso regressions of all nodes on one set of rows, then one step without penalty.

    The penalty, about one standard deviation of the gradient's noise, makes the regressions
    possible with fewer rows than features, and vanishes as rows grow. The last step moves every
    block to where its own gradient would vanish: the estimate of a missing edge scatters around
    0 and that of an edge around its weight (the idea of Zhang & Zhang 2014, with one block's own
    curvature). Iterations are bounded by fixed numbers.
    """
    passes = _Passes(rows, nodes)
    mean, covariance = passes.moments()
    share = passes.shares()
    count = len(rows)
    within = _blocks_of(covariance, nodes.groups, nodes.feature_count)
    null = _null_curvature(share, nodes)
    spreads = np.array([np.trace(block) for block in within])
    bends = np.array([np.trace(block) for block in null])
    open_ = nodes.allowed & np.outer(bends > 0.5 / count, spreads > 0.5 / count)
    open_[:, 0] = bends > 0.5 / count
    size = np.sqrt(np.maximum(np.outer(bends, spreads), 0) * math.log(len(nodes.groups) + 1))
    penalty = _PENALTY / math.sqrt(count) * size
    penalty[:, 0] = 0
    if count >= nodes.feature_count:
        gram = covariance + np.outer(mean, mean)
        weights = _with_model(passes, nodes, gram, open_, penalty)
    else:
        weights = _directly(passes, nodes, open_, penalty)
    gradient, curvature = passes.evaluate(weights, full=True)
    gradient *= nodes.spread(open_)
    return _unshrink(weights, gradient, curvature, within, open_, nodes, count)


class _Passes:
    """Looks at all rows, chunk by chunk; features are kept between looks where they fit."""

    def __init__(self, rows: Array, nodes: Nodes) -> None:
        self.rows, self.nodes = rows, nodes
        columns = nodes.feature_count + nodes.output_count
        self.step = max(256, _CHUNK_CELLS // max(nodes.feature_count, nodes.output_count))
        held = len(rows) * columns * 4 <= _HELD_BYTES
        self._held = list(self._made()) if held else None

    def _made(self) -> Iterator[tuple[Array, Array]]:
        for start in range(0, len(self.rows), self.step):
            part = self.rows[start : start + self.step]
            yield self.nodes.features(part), self.nodes.targets(part)

    def chunks(self) -> Iterator[tuple[Array, Array]]:
        """Features and targets."""
        return iter(self._held) if self._held is not None else self._made()

    def moments(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Means and covariances of the features (only within groups if there are many)."""
        size = self.nodes.feature_count
        total = np.zeros(size)
        if len(self.rows) < size and not self.nodes.softmax:
            squares = np.zeros(size)
            for x, _ in self.chunks():
                total += x.sum(axis=0, dtype=np.float64)
                squares += (x * x).sum(axis=0, dtype=np.float64)
            mean = total / len(self.rows)
            return mean, np.asarray(squares / len(self.rows) - mean**2)
        products = np.zeros((size, size))
        for x, _ in self.chunks():
            total += x.sum(axis=0, dtype=np.float64)
            products += x.T @ x
        mean = total / len(self.rows)
        return mean, products / len(self.rows) - np.outer(mean, mean)

    def shares(self) -> NDArray[np.float64]:
        """The mean of each target."""
        total = np.zeros(self.nodes.output_count)
        for _, t in self.chunks():
            total += t.sum(axis=0, dtype=np.float64)
        return np.asarray(total / len(self.rows))

    def evaluate(self, weights: Array, full: bool = False) -> tuple[Array, Array]:
        """The gradient of the mean loss, and its curvature: per node, or `full` (outputs²)."""
        nodes = self.nodes
        turned = np.ascontiguousarray(weights.T, np.float32)
        gradient = np.zeros((nodes.output_count, nodes.feature_count))
        bend = np.zeros(nodes.output_count)
        products = np.zeros((nodes.output_count,) * 2) if full and nodes.softmax else None
        for x, t in self.chunks():
            guess = _probabilities(x @ turned, nodes)
            bend += np.einsum("ro,ro->o", guess, 1 - guess)
            if products is not None:
                products += guess.T @ guess
            guess -= t
            gradient += guess.T @ x
        scale = 1 / len(self.rows)
        gradient *= scale
        bend *= scale
        if products is not None:
            total = bend + np.diagonal(products) * scale  # mean of π
            return gradient, np.diag(total) - products * scale
        if full:
            return gradient, bend
        levels = np.diff([*nodes.outputs, nodes.output_count]) - 1
        return gradient, nodes.per_node(bend) / np.maximum(levels, 1)

    def steepest(self) -> float:
        """The largest eigenvalue of the features' second moments, by their rows' products."""
        x = np.concatenate([x for x, _ in self.chunks()])
        small = x @ x.T if len(x) < x.shape[1] else x.T @ x
        return float(np.linalg.eigvalsh(small)[-1]) / len(x)


def _probabilities(logits: Array, nodes: Nodes) -> Array:
    """In place: σ(logit), or the softmax within each node."""
    if not nodes.softmax:
        logits *= np.float32(0.5)
        np.tanh(logits, out=logits)
        logits += np.float32(1)
        logits *= np.float32(0.5)
        return logits
    sizes = np.diff([*nodes.outputs, nodes.output_count])
    logits -= np.repeat(np.maximum.reduceat(logits, nodes.outputs, axis=1), sizes, axis=1)
    np.exp(logits, out=logits)
    logits /= np.repeat(np.add.reduceat(logits, nodes.outputs, axis=1), sizes, axis=1)
    return logits


def _shrink(weights: Array, amount: Array, nodes: Nodes) -> Array:
    """The proximal step of the penalty: blocks become shorter by `amount`, down to nothing."""
    if not nodes.softmax:
        return np.asarray(np.sign(weights) * np.maximum(np.abs(weights) - amount, 0))
    size = nodes.norms(weights)
    kept = np.maximum(1 - amount / np.maximum(size, 1e-30), 0)
    return np.asarray(weights * nodes.spread(kept))


def _with_model(
    passes: _Passes,
    nodes: Nodes,
    gram: NDArray[np.float64],
    open_: NDArray[np.bool_],
    penalty: Array,
) -> Array:
    """Each pass over the rows minimises a quadratic model with the features' Gram matrix.

    A node's curvature is that of the last step, or the mean one where it is larger; a step that
    met twice the curvature it was made for is taken back.
    """
    accuracy = max(_ACCURACY / math.sqrt(len(passes.rows)), _FINEST)
    metric = gram.astype(np.float32)
    steepest = max(float(np.linalg.eigvalsh(gram)[-1]), 1e-12)
    mask = nodes.spread(open_)
    weights = np.zeros((nodes.output_count, nodes.feature_count))
    gradient, bend = passes.evaluate(weights)
    gradient *= mask
    bend = np.clip(bend, 1e-3, nodes.most_curvature)
    for _ in range(_ROUNDS):
        new = _minimise_model(
            weights, gradient, bend, metric, steepest, mask, penalty, nodes, accuracy
        )
        new_gradient, new_bend = passes.evaluate(new)
        new_gradient *= mask
        change = new - weights
        length = nodes.per_node(((change @ gram) * change).sum(axis=1))
        rise = nodes.per_node(((new_gradient - gradient) * change).sum(axis=1))
        met = rise / np.maximum(length, 1e-30)
        back = (met > 2 * bend) & (bend < nodes.most_curvature)
        moved = np.where(nodes.per_output(back), np.inf, np.abs(change)).max(initial=0.0)
        bend = np.where(back, met, np.maximum(new_bend, met))
        bend = np.clip(bend, 1e-3, nodes.most_curvature)
        keep = nodes.per_output(back)
        weights = np.where(keep, weights, new)
        gradient = np.where(keep, gradient, new_gradient)
        if moved <= accuracy:
            break
    return weights


def _minimise_model(
    weights: Array,
    gradient: Array,
    bend: Array,
    metric: Array,
    steepest: float,
    mask: Array,
    penalty: Array,
    nodes: Nodes,
    accuracy: float,
) -> Array:
    """min ⟨g, v − w⟩ + ½ bend (v − w)ᵀ G (v − w) + penalty, all nodes at once, by FISTA."""
    step = (1 / (bend * steepest)).astype(np.float32)
    slow = nodes.per_output(step)
    amount = (penalty * step[:, None]).astype(np.float32)
    here, slope = weights.astype(np.float32), gradient.astype(np.float32)
    curve = nodes.per_output(bend.astype(np.float32))
    x = y = here
    t = 1.0
    for count in range(_INNER):
        downhill = slope + curve * ((y - here) @ metric)
        new = _shrink((y - slow * downhill) * mask, amount, nodes)
        change = new - x
        y, t = _onward(new, change, y, t)
        x = new
        if count % _CHECK == _CHECK - 1 and float(np.abs(change).max(initial=0)) < accuracy / 10:
            break
    return x.astype(np.float64)


def _directly(
    passes: _Passes, nodes: Nodes, open_: NDArray[np.bool_], penalty: Array
) -> NDArray[np.float64]:
    """FISTA on the rows themselves: for more features than rows."""
    accuracy = max(_ACCURACY / math.sqrt(len(passes.rows)), _FINEST)
    step = 1 / (nodes.most_curvature * max(passes.steepest(), 1e-12))
    mask = nodes.spread(open_)
    x = y = np.zeros((nodes.output_count, nodes.feature_count))
    t = 1.0
    for count in range(_DIRECT):
        gradient, _ = passes.evaluate(y)
        new = _shrink((y - step * gradient) * mask, step * penalty, nodes)
        change = new - x
        y, t = _onward(new, change, y, t)
        x = new
        if count % _CHECK == _CHECK - 1 and float(np.abs(change).max(initial=0)) < accuracy / 10:
            break
    return x


def _onward(new: Array, change: Array, y: Array, t: float) -> tuple[Array, float]:
    """Where FISTA looks next, beyond the point that it reached; uphill, momentum starts anew."""
    if float(((y - new) * change).sum()) > 0:
        t = 1.0
    t_new = (1 + math.sqrt(1 + 4 * t * t)) / 2
    return new + (t - 1) / t_new * change, t_new


def _blocks_of(covariance: Array, starts: NDArray[np.intp], size: int) -> list[Array]:
    """The diagonal blocks of a matrix; of a vector, blocks of size 1."""
    if covariance.ndim == 1:
        return [np.array([[value]]) for value in covariance]
    ends = [*starts[1:], size]
    return [covariance[a:b, a:b] for a, b in zip(starts, ends, strict=True)]


def _null_curvature(share: NDArray[np.float64], nodes: Nodes) -> list[Array]:
    """Of each node's loss without any features."""
    if not nodes.softmax:
        return [np.array([[value]]) for value in share * (1 - share)]
    whole = np.diag(share) - np.outer(share, share)
    return _blocks_of(whole, nodes.outputs, nodes.output_count)


def _unshrink(
    weights: Array,
    gradient: Array,
    curvature: Array,
    within: list[Array],
    open_: NDArray[np.bool_],
    nodes: Nodes,
    count: int,
) -> NodeFit:
    """weights − (curvature of the outputs)⁻¹ · gradient · (covariance of the features)⁻¹."""
    if not nodes.softmax:
        spread = np.array([block[0, 0] for block in within])
        bends = np.outer(curvature, spread)
        usable = open_ & (bends > 0.25 / count)
        inverse = np.where(usable, 1 / np.maximum(bends, 1e-30), 0.0)
        return NodeFit(weights - gradient * inverse, inverse / count, usable.astype(np.int64))
    outer = [
        _inverse(block, count) for block in _blocks_of(curvature, nodes.outputs, nodes.output_count)
    ]
    inner = [_inverse(block, count) for block in within]
    left, right = _joined(outer, nodes.output_count), _joined(inner, nodes.feature_count)
    moved = weights - left @ gradient @ right
    size = np.outer([np.trace(b) for b, _ in outer], [np.trace(b) for b, _ in inner])
    rank = np.outer([r for _, r in outer], [r for _, r in inner])
    return NodeFit(
        moved * nodes.spread(open_),
        np.where(open_, size / count, 0.0),
        np.where(open_, rank, 0).astype(np.int64),
    )


def _inverse(block: Array, count: int) -> tuple[Array, int]:
    """The inverse on the directions in which a column varies, and how many they are."""
    values, vectors = np.linalg.eigh(block)
    kept = values > 0.5 / count
    scaled = vectors * np.where(kept, 1 / np.maximum(values + 1 / count, 1e-30), 0.0)
    return scaled @ vectors.T, int(kept.sum())


def _joined(blocks: list[tuple[Array, int]], size: int) -> Array:
    found = np.zeros((size, size))
    start = 0
    for block, _ in blocks:
        end = start + len(block)
        found[start:end, start:end] = block
        start = end
    return found
