"""Mean and covariance of a model's statistics: over all states, or from simulated people."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.estimation.uncertainty.coordinates import (
    MOST_SPINS,
    Numbers,
    Scope,
    contrast,
    contrasts,
    places,
)
from privfield.inference.factors import Table
from privfield.models.base import Model

_MOST_LISTED = 2**22  # numbers in the list of all states
_EXACT_BYTES = 2**27
_LEAST_SAMPLES = 12_000
_PER_PARAMETER = 12  # samples: the covariance of statistics is then known to a few percent
_BLOCK = 4096
_PER_PERSON = 5  # samples of long chains
_LEAST_CHAIN, _CHAIN_WORK = 100_000, 1e9  # samples, and multiplications that they may take
_MOST_GIBBS = 2_000_000  # samples × tables: some seconds


@dataclass(frozen=True, eq=False)
class Statistics:
    """Mean and covariance of a model's statistics.

    `samples` is the number of simulated people that they come from, None where they are exact.
    `agreed` is False where Markov chains did not.
    """

    mean: Table
    covariance: Table
    samples: int | None = None
    agreed: bool = True

    @property
    def correction(self) -> float:
        """Makes the inverse of a simulated covariance unbiased, as that of a Wishart matrix."""
        return 1.0 if self.samples is None else 1 - (len(self.mean) + 1) / self.samples


def statistics_of(model: Model, numbers: Numbers, rng: np.random.Generator) -> Statistics | None:
    """Exact where all states can be listed, otherwise the covariance is that of simulated people.

    They can for up to 20 binary variables, and for a few thousand states of others.
    """
    if _are_few_signs(numbers):
        return _of_signs(_sign_logs(model, len(numbers.shape)), numbers)
    if math.prod(numbers.shape) * numbers.size <= _MOST_LISTED:
        return _of_states(model, numbers)
    return _simulated(model, numbers, rng)


def statistics_at(
    point: Table, like: Model, numbers: Numbers, rng: np.random.Generator
) -> Statistics | None:
    """Of the model with these coordinates and the variables of `like`."""
    if not _are_few_signs(numbers) or like.schema.forbidden:
        return statistics_of(numbers.model(point, like), numbers, rng)
    p = len(numbers.shape)
    masks, scale = _parities(numbers)
    values = np.zeros(1 << p)
    np.add.at(values, masks, scale * point * np.array([(-1) ** len(s) for s in numbers.scopes]))
    return _of_signs(_hadamard(values).reshape((2,) * p), numbers)


# -- over all states -------------------------------------------------------------------------------


def _are_few_signs(numbers: Numbers) -> bool:
    return set(numbers.shape) <= {2} and len(numbers.shape) <= MOST_SPINS


def _parities(numbers: Numbers) -> tuple[NDArray[np.intp], Table]:
    """The bits of each scope, and the size of its statistic: products of ±1/√2."""
    masks = np.array([_mask(scope, len(numbers.shape)) for scope in numbers.scopes], np.intp)
    return masks, np.array([2.0 ** (-len(scope) / 2) for scope in numbers.scopes])


def _of_signs(logs: Table, numbers: Numbers) -> Statistics:
    """All moments of ±1 variables at once, by a Walsh–Hadamard transform of the probabilities."""
    moments = parity_moments(_probabilities(logs))
    masks, scale = _parities(numbers)
    mean = scale * moments[masks]
    joint = np.outer(scale, scale) * moments[masks[:, None] ^ masks]
    return Statistics(mean, joint - np.outer(mean, mean))


def _of_states(model: Model, numbers: Numbers) -> Statistics:
    """From the list of all states and their probabilities.

    The contrasts of the longest variable are a factor of all statistics that it is part of. What
    they multiply is summed level by level, and is as short for a thousand levels as for three.
    """
    shape, size = numbers.shape, numbers.size
    logs = np.zeros(shape)
    for clique, table in zip(model.factors.cliques, model.factors.tables, strict=True):
        logs += _spread(clique, table, shape)
    longest = int(np.argmax(shape))
    own = contrasts(shape[longest])
    weights = np.moveaxis(_probabilities(logs), longest, 0).reshape(len(own), -1)
    inside, outside, factors = _without(longest, numbers)
    others = [1 if v == longest else levels for v, levels in enumerate(shape)]
    states = np.indices(others).reshape(len(others), -1).T
    features = _features(states, shape, factors, np.float64)

    count = len(inside)
    means = weights @ features
    joint = np.matmul(features.T * weights[:, None, :], features)
    mean, second = np.zeros(size), np.zeros((size, size))
    mean[inside], mean[outside] = means[:, :count].T @ own, means[:, count:].sum(axis=0)
    both = joint[:, :count, :count].transpose(1, 2, 0)[..., None] * own
    second[inside[:, None, :, None], inside[:, None, :]] = own.T @ both
    across = np.tensordot(joint[:, :count, count:], own, (0, 0)).transpose(0, 2, 1)
    second[inside[:, :, None], outside] = across
    second[outside[:, None, None], inside] = across.transpose(2, 0, 1)
    second[outside[:, None], outside] = joint[:, count:, count:].sum(axis=0)
    return Statistics(mean, second - np.outer(mean, mean))


def _without(
    longest: int, numbers: Numbers
) -> tuple[NDArray[np.intp], NDArray[np.intp], list[Scope]]:
    """Statistics with one variable's contrasts taken away.

    Where those with it are, a row for each product of the others; where those without it are; and
    the scopes of what is left, in that order.
    """
    steps = [levels - 1 for levels in numbers.shape]
    inside, outside = [np.zeros((0, steps[longest]), np.intp)], [np.zeros(0, np.intp)]
    shorter: list[Scope] = []
    others: list[Scope] = []
    for scope, place in numbers.places():
        where = np.arange(place.start, place.stop)
        if longest in scope:
            table = where.reshape([steps[v] for v in scope])
            rows = len(where) // max(steps[longest], 1)
            turned = np.moveaxis(table, scope.index(longest), -1)
            inside.append(turned.reshape(rows, steps[longest]))
            shorter.append(tuple(v for v in scope if v != longest))
        else:
            outside.append(where)
            others.append(scope)
    return np.concatenate(inside), np.concatenate(outside), [*shorter, *others]


def _spread(clique: Scope, table: Table, shape: Sequence[int]) -> Table:
    """A clique's table with an axis for each variable, of length one for those not in it."""
    sizes = [levels if v in clique else 1 for v, levels in enumerate(shape)]
    return np.transpose(table, np.argsort(clique)).reshape(sizes)


def _sign_logs(model: Model, p: int) -> Table:
    """log-potentials of all states of p signs: a transform of the sum of those of the cliques."""
    parities, impossible = np.zeros(1 << p), []
    for clique, table in zip(model.factors.cliques, model.factors.tables, strict=True):
        if not np.isfinite(table).all():
            impossible.append(_spread(clique, table, (2,) * p))
            continue
        own = parity_moments(np.transpose(table, np.argsort(clique))) / table.size
        for bits, value in zip(product((0, 1), repeat=len(clique)), own, strict=True):
            inside = [v for v, bit in zip(sorted(clique), bits, strict=True) if bit]
            parities[_mask(inside, p)] += value * (-1) ** len(inside)
    logs = _hadamard(parities).reshape((2,) * p)
    for table in impossible:
        logs = logs + table
    return logs


def _mask(scope: Sequence[int], p: int) -> int:
    return sum(1 << (p - 1 - v) for v in scope)


def _probabilities(logs: Table) -> Table:
    found = np.exp(logs - logs.max())
    return np.asarray(found / found.sum())


def parity_moments(values: Table) -> Table:
    """Σ_x f(x)·Π_{i in S} x_i, x = ±1, for every set S of variables; bit p−1−i of S is variable i.

    f is an array with an axis of two levels for each variable, of which the second is +1.
    """
    return _hadamard(values.ravel()[::-1])


def _hadamard(found: Table) -> Table:
    """Σ_s f(s)·(−1)^(bits that s and S share), for every S."""
    for bit in range(found.size.bit_length() - 1):
        low, high = found.reshape(-1, 2, 1 << bit).swapaxes(0, 1)
        found = np.stack([low + high, low - high], axis=1).ravel()
    return found


# -- by simulation ---------------------------------------------------------------------------------


def _simulated(model: Model, numbers: Numbers, rng: np.random.Generator) -> Statistics | None:
    count = max(_LEAST_SAMPLES, _PER_PARAMETER * numbers.size)
    exact = model.inference_size().bytes <= _EXACT_BYTES
    states, agreed = _states(model, numbers, count, rng, exact)
    if states is None:
        return None
    total, squares = np.zeros(numbers.size), np.zeros((numbers.size, numbers.size))
    for start in range(0, len(states), _BLOCK):
        features = _features(states[start : start + _BLOCK], numbers.shape, numbers.scopes)
        total += features.sum(axis=0, dtype=np.float64)
        squares += features.T @ features
    mean = total / len(states)
    covariance = squares / len(states) - np.outer(mean, mean)
    if exact:
        tables = model._exact.marginals(numbers.scopes)
        parts = [contrast(t, numbers.shape, s) for s, t in zip(numbers.scopes, tables, strict=True)]
        mean = np.concatenate(parts)
    elif _is_pairwise(model, numbers):
        mean = _chain_mean(model, numbers)
    return Statistics(mean, covariance, len(states), agreed)


def _states(
    model: Model, numbers: Numbers, count: int, rng: np.random.Generator, exact: bool
) -> tuple[NDArray[Any] | None, bool]:
    """Simulated people as codes, and whether Markov chains agreed; None where it would be slow."""
    if exact:
        drawn = model.sample(count, rng, "independent")
        return ((drawn > 0).astype(np.uint8) if drawn.dtype == np.int8 else drawn), True
    if _is_pairwise(model, numbers):
        from privfield.inference.sampling.dense import ising_states

        ising = model.to_ising()
        return ising_states(ising.weights, ising.field, count, rng)
    if count * len(model.factors.cliques) > _MOST_GIBBS:
        return None, False
    from privfield.inference.sampling import sample_gibbs

    result = sample_gibbs(model.factors, count, rng)
    return result.states, result.converged


def _is_pairwise(model: Model, numbers: Numbers) -> bool:
    return set(numbers.shape) <= {2} and max(map(len, model._structure()[1])) <= 2


def _chain_mean(model: Model, numbers: Numbers) -> Table:
    """By long chains: the mean is needed more exactly than the covariance.

    They take the same random numbers at every point, so that a search for the point that explains
    the sums comes to rest.
    """
    from privfield.inference.sampling.dense import chain_moments

    ising = model.to_ising()
    wanted = min(_PER_PERSON * numbers.total, _CHAIN_WORK / len(ising.field) ** 2)
    samples = int(max(_LEAST_CHAIN, wanted))
    rng = np.random.default_rng(0)
    joint = chain_moments(ising.weights, ising.field, rng, samples=samples)
    found = []
    for scope in numbers.scopes:
        row, column = (0, *(v + 1 for v in scope))[-2:]
        found.append(joint[row, column] * 2.0 ** (-len(scope) / 2))
    return np.array(found)


def _features(
    states: NDArray[Any],
    shape: Sequence[int],
    scopes: Sequence[Scope],
    kind: type[np.floating[Any]] = np.float32,
) -> NDArray[Any]:
    """t(x) of each row of codes."""
    rows = [contrasts(levels).astype(kind)[states[:, v]] for v, levels in enumerate(shape)]
    spots = list(places(shape, scopes))
    out = np.ones((len(states), spots[-1][1].stop if spots else 0), kind)
    for scope, place in spots:
        if scope:  # else the product of none
            out[:, place] = reduce(
                lambda a, b: (a[:, :, None] * b[:, None, :]).reshape(len(a), -1),
                (rows[v] for v in scope),
            )
    return out
