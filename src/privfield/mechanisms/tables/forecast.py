"""Forecasts for models learned from noisy tables: docs/guide/planning-a-study.md.

A table is the sum of the interactions of its sub-cliques. The count of a cell of interaction s, of
L cells, has the noise variance V_s that the design leaves after all tables are put together, the
sampling variance n/L, and a true mean square of (n τ/L)², τ the size of the log-potentials. The
estimate shrinks by these; its error variance is (1/(V + n/L) + 1/(nτ/L)²)⁻¹.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

from privfield.algebra.contrasts import Scope, subsets
from privfield.errors import InputError
from privfield.mechanisms.forecasting.calls import learner_call
from privfield.mechanisms.forecasting.forecast import Answers, Forecast, refused
from privfield.mechanisms.forecasting.reference import (
    coupling_errors,
    power,
    shrunk,
    typical_size,
)
from privfield.mechanisms.forecasting.sizes import table_memory, table_seconds
from privfield.mechanisms.forecasting.study import Study
from privfield.mechanisms.tables.design import Design
from privfield.mechanisms.tables.design import interaction_noise as interaction_noise
from privfield.privacy.budgets import Budget, GaussianDP
from privfield.privacy.noise import gaussian_cost, pure_cost
from privfield.words import times_text

MAIN_EFFECT = 0.5  # RMS log-potential of a single variable
Variances = dict[Scope, float]

_USELESS = 5.0  # noise over sampling, beyond which tables say next to nothing
_STATISTIC = "cell of a table"
_MANY_STEPS = 10**9  # of noise: its rounding does not matter


def forecast_tables(study: Study, design_at: Callable[[Study], Design]) -> Forecast:
    """`pf.MarginalLearner` with given cliques or all pairs: all tables once, the best design."""
    cliques = '"all-pairs"' if study.listed is None else "cliques"
    call = learner_call(study, "MarginalLearner", cliques=cliques.strip('"'))
    memory, fits = table_memory(study)
    if not study.cliques:
        note = "there are too many pairs of variables for a table of each"
        return refused("tables", call, _STATISTIC, note, memory)
    if not fits:
        note = "exact inference does not fit in memory; fewer cliques, or edges selected privately"
        return refused("tables", call, _STATISTIC, note, memory)
    try:
        noise, cell, design = noise_at(study, design_at)
    except InputError as error:
        return refused("tables", call, _STATISTIC, str(error), memory)
    cells = [prod(study.shape[v] for v in clique) for clique in study.cliques]
    scattered = math.sqrt(study.n / max(cells) * (1 - 1 / max(cells)))
    pair = next((scope for scope in noise if len(scope) == 2), None)
    if study.model in ("ising", "structure") and pair is not None:
        errors = coupling_errors(study.variables, study.n, study.coupling, 4 * noise[pair])
        sampling, plain, expected = errors.sampling, errors.plain, errors.expected
        found: float | None = power(study.variables, (study.coupling / plain) ** 2)
        most = errors.largest
    else:
        sampling, plain, expected = cell_errors(study, study.cliques, noise)
        most, found = expected, _found(study, noise)
    law = design.parts[0].law.name.removeprefix("discrete-").capitalize()
    ratio = cell / max(scattered, 1e-300)
    many = len(study.cliques)
    note = f"design {design.name!r}, {law} noise, {many:,} tables, {sum(cells):,} cells"
    if ratio > _USELESS:
        note = (
            f"{many:,} tables share the budget, so each cell has noise of "
            f"±{cell:,.0f}, {times_text(ratio)} its sampling error: next to nothing is left"
        )
    return Forecast(
        "tables",
        call,
        _STATISTIC,
        cell,
        scattered,
        expected,
        most,
        sampling,
        plain,
        memory,
        1,
        table_seconds(study),
        found=found,
        note=note,
        answers=Answers.EVERYTHING,
    )


def noise_at(study: Study, design_at: Callable[[Study], Design]) -> tuple[Variances, float, Design]:
    """V_s in rows, the noise of a cell, and the design; budgets near the one asked about keep its
    design, with other scales."""
    near = type(study.budget) is type(study.first_budget)
    design = design_at(replace(study, budget=study.first_budget) if near else study)
    factor = scale_factor(design, study.first_budget, study.budget) if near else 1.0
    variances = interaction_noise(design.parts, study.shape)
    noise = {scope: v * factor / study.grid**2 for scope, v in variances.items()}
    return noise, _cell_noise(study, design, noise, factor), design


def scale_factor(design: Design, base: Budget, budget: Budget) -> float:
    """How the noise variances of a design change with the budget."""
    if base == budget:
        return 1.0
    if design.parts[0].law.name == "discrete-laplace":
        return (pure_cost(base).epsilon / pure_cost(budget).epsilon) ** 2
    if isinstance(design.cost, GaussianDP):
        return gaussian_cost(base, _MANY_STEPS).rho / gaussian_cost(budget, _MANY_STEPS).rho
    return base.rho / budget.rho


def cell_errors(
    study: Study, cliques: Sequence[Scope], noise: Variances
) -> tuple[float, float, float]:
    """Mean over cliques of the total-variation error: sampling only, with noise, and shrunk."""
    pair = study.coupling
    if study.listed is None:
        pair = typical_size(study.variables, pair)
    size = {1: MAIN_EFFECT, 2: pair}
    totals = [0.0, 0.0, 0.0]
    for clique in cliques:
        cells = prod(study.shape[v] for v in clique)
        sums = [0.0, 0.0, 0.0]
        for scope in subsets(sorted(clique)):
            inside = prod(study.shape[v] - 1 for v in scope)
            own = prod(study.shape[v] for v in scope)
            if not scope or not inside:
                continue
            share = inside / (cells / own)
            sampling = study.n / own
            plain = sampling + noise.get(scope, math.inf)
            wide = study.n / own * size.get(len(scope), size[2] / 2)
            for place, variance in enumerate(
                (sampling, plain, shrunk(math.sqrt(plain), wide) ** 2)
            ):
                sums[place] += share * variance
        for place, total in enumerate(sums):
            totals[place] += variation(math.sqrt(total / cells) / study.n, cells)
    mean = [total / len(cliques) for total in totals]
    return mean[0], mean[1], mean[2]


def variation(error: float, cells: int) -> float:
    """The expected total variation of a table whose probabilities err by that much each."""
    return min(1.0, cells * error / 2 * math.sqrt(2 / math.pi))


def _found(study: Study, noise: Variances) -> float | None:
    """The share of edges that would be called clear; None where there can be none."""
    scopes = [tuple(sorted(clique)) for clique in study.cliques if len(clique) == 2]
    chances = []
    for scope in scopes:
        inside = prod(study.shape[v] - 1 for v in scope)
        mean = study.n / prod(study.shape[v] for v in scope)
        if inside:
            variance = mean + noise.get(scope, math.inf)
            signal = inside * (mean * study.coupling) ** 2 / variance
            chances.append(power(study.variables, signal, inside))
    return sum(chances) / len(chances) if chances else None


def _cell_noise(study: Study, design: Design, noise: Variances, factor: float) -> float:
    """RMS noise of a cell, in rows: of the tables as measured, or, where interactions are
    measured instead, of the tables that they add up to."""
    if not any(part.centred for part in design.parts):
        variances = {law: law.deviation**2 for law in {part.law for part in design.parts}}
        sizes = [prod(study.shape[v] for v in part.scope) for part in design.parts]
        squares = sum(
            size * variances[part.law] for size, part in zip(sizes, design.parts, strict=True)
        )
        return math.sqrt(squares * factor / sum(sizes)) / study.grid
    total, cells = 0.0, 0
    for clique in study.cliques:
        size = prod(study.shape[v] for v in clique)
        cells += size
        for scope in subsets(sorted(clique)):
            if not scope and study.rows_are_public:
                continue
            own = prod(study.shape[v] for v in scope)
            inside = prod(study.shape[v] - 1 for v in scope)
            total += inside * noise.get(scope, 0.0) * own / size
    return math.sqrt(total / cells)
