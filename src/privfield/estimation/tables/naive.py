"""Maximum likelihood with the noisy tables taken as they are (Bernstein et al. 2017, §3.1)."""

from __future__ import annotations

import numpy as np

from privfield.errors import InputError
from privfield.estimation.tables.observed import noisy_tables, priors
from privfield.inference.contraction.plan import DEFAULT_MAX_BYTES
from privfield.inference.engine import Engine
from privfield.inference.factors import Table
from privfield.mechanisms.tables.measurements import Measurements
from privfield.models.mrf import MarkovRandomField
from privfield.solvers.projections import onto_simplex

# where noise is small tables contradict each other by more than the ridge: θ has a long way to go
_STEPS = 20_000


def naive_mle(
    measurements: Measurements,
    *,
    ridge: float | None = None,
    project: bool = True,
    inference: str = "exact",
    max_bytes: float = DEFAULT_MAX_BYTES,
) -> MarkovRandomField:
    """Maximise θ·y/N - A(θ) - ridge/2·|θ|², with each table projected onto the simplex or not.

    Privacy noise is treated as if it were data: the answer depends on `ridge`, which has to be
    tuned "just right" (the paper's Figure 1c). By default it is κ·b/N for a table with noise of
    scale b (one person where there is none), with the κ of `priors`: it vanishes with N, so that
    the estimate is consistent (Proposition 4), and leaves about b to a cell that noise emptied.
    For study; `pf.estimate` has a better default.
    """
    check_naive(ridge, project)
    cliques, tables, scales, total = noisy_tables(measurements)
    shares = [table / total for table in tables]
    if project:
        shares = [onto_simplex(table) for table in shares]
    engine = Engine(measurements.schema, cliques, inference, max_bytes)
    if ridge is None:
        sizes = [table.size for table in tables]
        gentle = priors(total, sizes, scales) * np.maximum(scales, 1.0) / total
        theta = maximum_likelihood(engine, engine.join(shares), np.repeat(gentle, sizes))
    else:
        theta = maximum_likelihood(engine, engine.join(shares), ridge)
    engine.tell_if_unfinished()
    names = measurements.schema.names
    return MarkovRandomField(
        measurements.schema,
        [tuple(names[v] for v in clique) for clique in cliques],
        engine.split(theta),
        stamp=measurements.stamp,
    )


def check_naive(ridge: object = None, project: object = True) -> None:
    """Refuse options that are out of range."""
    known = isinstance(ridge, int | float) and not isinstance(ridge, bool) and 0 < ridge < np.inf
    if ridge is not None and not known:
        raise InputError(f"ridge must be a number above 0; got {ridge!r}.")
    if not isinstance(project, bool):
        raise InputError(f"project must be True or False; got {project!r}.")


def maximum_likelihood(
    engine: Engine,
    shares: Table,
    ridge: float | Table,
    start: Table | None = None,
    steps: int = _STEPS,
    tolerance: float = 1e-7,
    unit: float | Table = 1.0,
) -> Table:
    """The θ that maximises θ·shares - A(θ) - ridge/2·|θ|², by L-BFGS on θ in these units."""
    from scipy.optimize import minimize

    def objective(u: Table) -> tuple[float, Table]:
        theta = unit * u
        log_z, mu = engine.run(theta)
        value = log_z - theta @ shares + (ridge * theta) @ theta / 2
        return float(value), unit * (mu - shares + ridge * theta)

    found = minimize(
        objective,
        np.zeros(engine.parameters) if start is None else start / unit,
        jac=True,
        method="L-BFGS-B",
        options={
            "maxiter": steps,
            "maxfun": 2 * steps,
            "maxcor": 20,
            "gtol": tolerance,
            "ftol": 0.0,
        },
    )
    return np.asarray(unit * found.x)
