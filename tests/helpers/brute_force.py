"""Answers by listing every state: slow, obviously right, the oracle of every other engine."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from privfield.errors import InputError
from privfield.inference.factors import Factors, Table

MAX_STATES = 2**20


def joint_log_potential(factors: Factors) -> Table:
    """Σ of all log-potentials for every state: an array with one axis per variable."""
    states = math.prod(factors.shape)
    if states > MAX_STATES:
        raise InputError(
            f"Brute force lists every state: at most {MAX_STATES:,} are allowed; "
            f"these variables have {states:,}. Use exact contraction or belief propagation."
        )
    total = np.zeros(factors.shape)
    for clique, table in zip(factors.cliques, factors.tables, strict=True):
        order = sorted(range(len(clique)), key=lambda axis: clique[axis])
        here = [
            levels if variable in clique else 1 for variable, levels in enumerate(factors.shape)
        ]
        total = total + np.asarray(table, dtype=np.float64).transpose(order).reshape(here)
    return total


def log_partition(factors: Factors) -> float:
    """log Z; −inf when every state is forbidden."""
    joint = joint_log_potential(factors)
    top = joint.max()
    if top == -np.inf:
        return -math.inf
    return float(top + np.log(np.exp(joint - top).sum()))


def joint_log_probability(factors: Factors) -> Table:
    """Normalised log-probability of every state: one axis per variable."""
    log_z = log_partition(factors)
    if log_z == -math.inf:
        raise InputError("Every state is forbidden (Z = 0): there is no distribution.")
    return joint_log_potential(factors) - log_z


def marginal(factors: Factors, clique: Sequence[int]) -> Table:
    """Probabilities of the variables in `clique`, with axes in its order."""
    joint = np.exp(joint_log_probability(factors))
    away = tuple(v for v in range(len(factors.shape)) if v not in clique)
    table: Table = np.asarray(joint.sum(axis=away))
    return table.transpose(np.argsort(np.argsort(clique)) if len(clique) else ())


def most_likely_state(factors: Factors) -> tuple[int, ...]:
    """The first, in lexicographic order, of the states with the highest probability."""
    joint = joint_log_probability(factors)
    return tuple(int(level) for level in np.unravel_index(int(joint.argmax()), joint.shape))
