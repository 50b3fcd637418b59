"""Maximum likelihood with the noisy tables taken as they are (Bernstein et al. 2017, §3.1)."""

from __future__ import annotations

import numpy as np

from privfield.errors import InputError
from privfield.estimation.tables.observed import noisy_tables
from privfield.inference.contraction.plan import DEFAULT_MAX_BYTES
from privfield.inference.engine import Engine
from privfield.inference.factors import Table
from privfield.mechanisms.tables.measurements import Measurements
from privfield.models.mrf import MarkovRandomField
from privfield.solvers.projections import onto_simplex

DEFAULT_RIDGE = 1e-3


def naive_mle(
    measurements: Measurements,
    *,
    ridge: float = DEFAULT_RIDGE,
    project: bool = True,
    inference: str = "exact",
    max_bytes: float = DEFAULT_MAX_BYTES,
) -> MarkovRandomField:
    """Maximise θ·y/N - A(θ) - ridge/2·|θ|², with each table projected onto the simplex or not.

    Privacy noise is treated as if it were data: the answer depends on `ridge`, which has to be
    tuned "just right" (the paper's Figure 1c). For study; `pf.estimate` has a better default.
    """
    check_naive(ridge, project)
    cliques, tables, total = noisy_tables(measurements)
    shares = [table / total for table in tables]
    if project:
        shares = [onto_simplex(table) for table in shares]
    engine = Engine(measurements.schema, cliques, inference, max_bytes)
    theta = maximum_likelihood(engine, engine.join(shares), ridge)
    engine.tell_if_unfinished()
    names = measurements.schema.names
    return MarkovRandomField(
        measurements.schema,
        [tuple(names[v] for v in clique) for clique in cliques],
        engine.split(theta),
        stamp=measurements.stamp,
    )


def check_naive(ridge: object = DEFAULT_RIDGE, project: object = True) -> None:
    """Refuse options that are out of range."""
    if isinstance(ridge, bool) or not isinstance(ridge, int | float) or not 0 < ridge < np.inf:
        raise InputError(f"ridge must be a number above 0; got {ridge!r}.")
    if not isinstance(project, bool):
        raise InputError(f"project must be True or False; got {project!r}.")


def maximum_likelihood(
    engine: Engine,
    shares: Table,
    ridge: float,
    start: Table | None = None,
    steps: int = 2000,
    tolerance: float = 1e-7,
) -> Table:
    """The θ that maximises θ·shares - A(θ) - ridge/2·|θ|², by L-BFGS."""
    from scipy.optimize import minimize

    def objective(theta: Table) -> tuple[float, Table]:
        log_z, mu = engine.run(theta)
        value = log_z - theta @ shares + ridge / 2 * (theta @ theta)
        return float(value), mu - shares + ridge * theta

    found = minimize(
        objective,
        np.zeros(engine.parameters) if start is None else start,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": steps, "maxcor": 20, "gtol": tolerance, "ftol": 0.0},
    )
    return np.asarray(found.x)
