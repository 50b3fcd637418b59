"""Reference models for studies: a model from a gradient trajectory, and the random estimator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from privfield.checks import check_rng
from privfield.errors import InputError
from privfield.models.mrf import MarkovRandomField
from privfield.schema import Schema

if TYPE_CHECKING:
    from privfield.mechanisms.gradients.sgd import SGDTrajectory

Fitted = TypeVar("Fitted")
Tables = list[NDArray[np.float64]]


def model_from_sgd(trajectory: SGDTrajectory, average: float = 0.5) -> MarkovRandomField:
    """The model at the mean of the last share `average` of the iterates; 0: at the final one."""
    return MarkovRandomField(
        trajectory.schema,
        trajectory.cliques,
        trajectory.log_potentials(average),
        stamp=trajectory.stamp,
    )


def random_marginals(
    schema: Schema, cliques: Sequence[Sequence[str]], rng: np.random.Generator | None = None
) -> Tables:
    """One table per clique, each uniform on its simplex (Dirichlet with all parameters one).

    Tables that share variables do not agree on them: they are pseudo-marginals, as noisy tables
    are. Cells that the schema forbids within a clique are 0.
    """
    generator = check_rng(rng)
    if not isinstance(schema, Schema):
        raise InputError(f"schema must be a pf.Schema; got {type(schema).__name__}.")
    if isinstance(cliques, str) or not isinstance(cliques, Sequence):
        raise InputError("cliques must be a list of tuples of variable names.")
    tables = []
    for clique in cliques:
        shape = [schema.shape[position] for position in schema.clique(clique)]
        weights = generator.exponential(size=shape) * _allowed(schema, tuple(clique))
        tables.append(weights / weights.sum())
    return tables


def random_estimator(
    schema: Schema,
    cliques: Sequence[Sequence[str]],
    fit: Callable[[Tables], Fitted],
    rng: np.random.Generator | None = None,
) -> Fitted:
    """What `fit` learns from `random_marginals`: how bad a model is that saw no data.

    Bernstein et al. (2017, section 4.1): random marginals, then potentials by maximum likelihood.
    Marginals that do not agree have no maximum-likelihood potentials without a penalty, so `fit`
    must be the penalised fit that noisy tables get.
    """
    return fit(random_marginals(schema, cliques, rng))


def _allowed(schema: Schema, clique: tuple[str, ...]) -> NDArray[np.bool_]:
    shape = [schema.shape[position] for position in schema.clique(clique)]
    allowed = np.ones(shape, np.bool_)
    for rule in schema.forbidden:
        levels = dict(rule)
        if set(levels) <= set(clique):
            codes = [
                [schema[name].code(level) for level in levels.get(name, schema[name].levels)]
                for name in clique
            ]
            allowed[np.ix_(*codes)] = False
    if not allowed.any():
        raise InputError(f"cliques: the schema forbids every combination of {clique!r}.")
    return allowed
