"""From the path of private Frank–Wolfe to a model: no data, no further cost."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.errors import InputError
from privfield.mechanisms.frank_wolfe.pairwise import PRINTED, level_pairs
from privfield.mechanisms.frank_wolfe.polynomial import parities
from privfield.mechanisms.frank_wolfe.trajectory import Trajectory
from privfield.mechanisms.gradients.sgd import SGDTrajectory
from privfield.models.ising import IsingModel
from privfield.models.mrf import MarkovRandomField
from privfield.models.polynomial import PolynomialMRF
from privfield.schema import Schema
from privfield.solvers.projections import project_l1

Matrix = NDArray[np.float64]

_SWEEPS = 200
_CLOSE = 1e-9


def ising_from_trajectory(trajectory: Trajectory, steps: int | None = None) -> IsingModel:
    """The model whose conditionals the regressions describe, nearest to all of them.

    P(x_i = 1 | others) = σ(2 Σ_j A_ij x_j + 2 f_i), so node i's weights are 2 (A_i, f_i). A_ij was
    estimated twice: the average is taken, and the whole is projected on the width that was
    declared. `steps` takes an earlier iterate.
    """
    (names,) = check_trajectory(trajectory, "Ising", "names")
    _check_size(trajectory, len(names), len(names) + 1)
    weights = trajectory.weights(steps) / 2
    p = len(weights)
    joint = weights[:, :p].copy()
    np.fill_diagonal(joint, weights[:, p])  # the field takes the place of the missing A_ii
    joint = project_on_width(joint, trajectory.radius / 2)
    field = joint.diagonal().copy()
    np.fill_diagonal(joint, 0.0)
    return IsingModel(joint, field, names, stamp=trajectory.stamp)


def pairwise_from_trajectory(trajectory: Trajectory, steps: int | None = None) -> MarkovRandomField:
    """The centred pairwise model: each table is the average of its two ends' estimates.

    The regression of level u against v at node i estimates W_ij(u, ·) − W_ij(v, ·). Centred over
    the other variable's levels and averaged over v, that is W_ij(u, ·) (Zhang et al. 2020).
    """
    text, geometry = check_trajectory(trajectory, "pairwise", "schema", "geometry")
    schema = Schema.from_toml(text)
    pairs = level_pairs(schema.shape, both=geometry == PRINTED)
    _check_size(trajectory, len(pairs), sum(schema.shape) + 1)
    couplings, fields = _node_estimates(trajectory.weights(steps), schema.shape, geometry)
    names = schema.names
    edges = list(combinations(range(len(names)), 2))
    tables = [(couplings[i, j] + couplings[j, i].T) / 2 for i, j in edges]
    return MarkovRandomField(
        schema,
        [*((name,) for name in names), *((names[i], names[j]) for i, j in edges)],
        [*fields, *tables],
        stamp=trajectory.stamp,
    )


def _node_estimates(
    weights: Matrix, shape: tuple[int, ...], geometry: str
) -> tuple[dict[tuple[int, int], Matrix], list[Matrix]]:
    """W_ij as node i sees it, for all i and j, and θ_i."""
    starts = [0, *np.cumsum(shape).tolist()]
    couplings = {
        (i, j): np.zeros((shape[i], shape[j]))
        for i in range(len(shape))
        for j in range(len(shape))
        if i != j
    }
    fields = [np.zeros(size) for size in shape]
    both = geometry == PRINTED  # then (v, u) has a regression of its own
    for (i, u, v), line in zip(level_pairs(shape, both), weights, strict=True):
        ends = [(u, 1)] if both else [(u, 1), (v, -1)]
        bias = line[-1]
        if geometry == "l1":  # features ∓1/2 instead of 0 and 1, and a constant 1/2
            bias = (line[-1] - line[:-1].sum()) / 2
        for j in range(len(shape)):
            part = line[starts[j] : starts[j + 1]]
            if j != i:
                bias += part.mean()
                for level, sign in ends:
                    couplings[i, j][level] += sign * (part - part.mean()) / shape[i]
        for level, sign in ends:
            fields[i][level] += sign * bias / shape[i]
    return couplings, fields


def polynomial_from_trajectory(trajectory: Trajectory, steps: int | None = None) -> PolynomialMRF:
    """The polynomial h with P(x_i = 1 | others) = σ(2 ∂_i h): node i's weights are 2 ∂_i h.

    A monomial of a variables was estimated by each of them: the average is taken. Monomials that
    were never chosen are left out.
    """
    names, order = check_trajectory(trajectory, "polynomial", "names", "order")
    _check_size(trajectory, len(names), len(parities(len(names), order)))
    weights = trajectory.weights(steps) / 2
    total: dict[tuple[int, ...], float] = {}
    for column, others in enumerate(parities(len(names), order)):
        for i in range(len(names)):
            value = float(weights[i, column])
            if value and i not in others:
                monomial = tuple(sorted((*others, i)))
                total[monomial] = total.get(monomial, 0.0) + value / len(monomial)
    return PolynomialMRF(total, size=len(names), names=names, stamp=trajectory.stamp)


def mrf_from_sgd(trajectory: SGDTrajectory, average: float = 0.5) -> MarkovRandomField:
    """The model at the mean of the last share `average` of the iterates; 0: at the final one."""
    potentials = trajectory.log_potentials(average)
    return MarkovRandomField(
        trajectory.schema, trajectory.cliques, potentials, stamp=trajectory.stamp
    )


def project_on_width(matrix: Matrix, width: float) -> Matrix:
    """The nearest symmetric matrix whose rows have l1 norm up to `width` (Dykstra 1983)."""
    point = (matrix + matrix.T) / 2
    correction = np.zeros_like(point)
    for _ in range(_SWEEPS):
        if np.abs(point).sum(axis=1).max() <= width * (1 + _CLOSE):
            break
        inside = project_l1(point + correction, width)
        correction += point - inside
        point = (inside + inside.T) / 2
    # what is left over is shrunk away, so that the bound holds as stated
    shrink = np.minimum(1.0, width / np.maximum(np.abs(point).sum(axis=1), 1e-300))
    return np.asarray(point * np.minimum(shrink, shrink[:, np.newaxis]))


def check_trajectory(trajectory: object, kind: str, *facts: str) -> list[Any]:
    """What a trajectory of that kind says about these; anything else is an `InputError`."""
    if not isinstance(trajectory, Trajectory) or trajectory.kind != kind:
        found = trajectory.kind if isinstance(trajectory, Trajectory) else type(trajectory).__name__
        raise InputError(f"trajectory must be one of {kind} regressions; got {found}.")
    missing = [fact for fact in facts if fact not in trajectory.about]
    if missing:
        raise InputError(f"trajectory is damaged: it does not say its {' and '.join(missing)}.")
    return [trajectory.about[fact] for fact in facts]


def _check_size(trajectory: Trajectory, regressions: int, columns: int) -> None:
    if (trajectory.chosen.shape[1], trajectory.columns) != (regressions, columns):
        raise InputError("trajectory is damaged: its size does not go with its variables.")
