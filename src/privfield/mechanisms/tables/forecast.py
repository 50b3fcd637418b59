"""Forecasts for models learned from noisy tables: docs/guide/planning-a-study.md.

A table is the sum of the interactions of its sub-cliques. The count of a cell of interaction s, of
L cells, has the noise variance V_s that the design leaves after all tables are put together, the
sampling variance n/L, and a true mean square of (n τ/L)², τ the size of the log-potentials. The
estimate shrinks by these; its error variance is (1/(V + n/L) + 1/(nτ/L)²)⁻¹.
"""

from __future__ import annotations

import math
from functools import lru_cache
from math import prod

from privfield.algebra.contrasts import Scope, subsets
from privfield.mechanisms.tables.design import Design, Task, choose_design
from privfield.planning.forecast import MethodForecast
from privfield.planning.reference import inflation, largest_of, shrunk, typical_size
from privfield.planning.request import Request
from privfield.planning.sizes import table_memory, table_seconds
from privfield.planning.words import learner_text, times_text
from privfield.privacy.adjacency import Sensitivity
from privfield.privacy.budgets import Budget, PureDP
from privfield.privacy.noise import choose_noise

MAIN_EFFECT = 0.5  # RMS log-potential of a single variable
_LEAST_VARIANCE = 1e-100
_USELESS = 5.0  # noise over sampling, beyond which tables say next to nothing


def task_of(request: Request) -> Task:
    """What `pf.measure` would be asked."""
    return Task(
        request.shape,
        request.cliques,
        (1.0,) * len(request.cliques),
        request.adjacency,
        request.unit_weight,
        request.rows_are_public,
    )


@lru_cache(maxsize=32)
def design_of(task: Task, budget: Budget) -> Design:
    """What `pf.MarginalLearner` would measure."""
    return choose_design(task, budget, "auto", "auto")


@lru_cache(maxsize=32)
def noise_of(task: Task, budget: Budget) -> dict[Scope, float]:
    """V_s: the noise variance of a cell of each interaction, all tables put together."""
    design = design_of(task, budget)
    variances = {law: law.deviation**2 for law in {part.law for part in design.parts}}
    precision: dict[Scope, float] = {}
    for part in design.parts:
        variance = max(variances[part.law], _LEAST_VARIANCE)
        scope = tuple(sorted(part.scope))
        if part.centred:
            precision[scope] = precision.get(scope, 0.0) + task.cells(scope) ** 2 / variance
            continue
        for inner in subsets(scope):
            outside = task.cells(scope) / task.cells(inner)
            precision[inner] = precision.get(inner, 0.0) + 1 / (variance * outside)
    return {scope: 1 / much for scope, much in precision.items()}


def noise_at(request: Request) -> dict[Scope, float]:
    """V_s in rows; budgets near the one asked about keep its design, with other scales."""
    task = task_of(request)
    if type(request.budget) is not type(request.base):
        found, factor = noise_of(task, request.budget), 1.0
    else:
        found = noise_of(task, request.base)
        factor = scale_factor(design_of(task, request.base), request.base, request.budget)
    return {scope: v * factor / request.grid**2 for scope, v in found.items()}


def scale_factor(design: Design, base: Budget, budget: Budget) -> float:
    """How the noise variances of a design change with the budget."""
    if base == budget:
        return 1.0
    if design.parts[0].law.name == "discrete-laplace":
        one = Sensitivity(1, 1)
        old, new = (choose_noise(each, one, "laplace")[1] for each in (base, budget))
        assert isinstance(old, PureDP)
        assert isinstance(new, PureDP)
        return (old.epsilon / new.epsilon) ** 2
    return base.rho / budget.rho


def sizes(request: Request) -> dict[int, float]:
    """τ by order: main effects, and interactions of the reference network."""
    coupling = request.coupling
    pair = coupling if request.listed else typical_size(request.variables, coupling)
    return {1: MAIN_EFFECT, 2: pair}


def cell_errors(request: Request, noise: dict[Scope, float]) -> tuple[float, float, float]:
    """Mean over cliques of the total-variation error: sampling only, with noise, and shrunk."""
    size = sizes(request)
    totals = [0.0, 0.0, 0.0]
    for clique in request.cliques:
        cells = prod(request.shape[v] for v in clique)
        sums = [0.0, 0.0, 0.0]
        for scope in subsets(sorted(clique)):
            inside = prod(request.shape[v] - 1 for v in scope)
            own = prod(request.shape[v] for v in scope)
            if not scope or not inside:
                continue
            share = inside / (cells / own)
            sampling = request.n / own
            plain = sampling + noise.get(scope, math.inf)
            wide = request.n / own * size.get(len(scope), size[2] / 2)
            for place, variance in enumerate(
                (sampling, plain, shrunk(math.sqrt(plain), wide) ** 2)
            ):
                sums[place] += share * variance
        for place, total in enumerate(sums):
            rms = math.sqrt(total / cells) / request.n
            totals[place] += min(1.0, cells * rms / 2 * math.sqrt(2 / math.pi))
    mean = [total / len(request.cliques) for total in totals]
    return mean[0], mean[1], mean[2]


def coupling_errors(request: Request, noise: float) -> tuple[float, float, float, float]:
    """Of ±1 variables, from noise of that variance on each Σ x_i x_j: sampling, plain, shrunk,
    and the largest of all couplings."""
    p, coupling = request.variables, request.coupling
    by_sampling, by_noise = inflation(p, coupling)
    sampling = math.sqrt(by_sampling / request.n)
    plain = math.hypot(sampling, math.sqrt(by_noise * noise) / request.n)
    expected = shrunk(plain, typical_size(p, coupling))
    largest = min(largest_of(math.comb(p, 2)) * plain, max(coupling, expected))
    return sampling, plain, expected, largest


def tables(request: Request) -> MethodForecast:
    """`pf.MarginalLearner`: all tables once, the design that leaves the least noise."""
    cliques = "cliques" if request.listed else '"all-pairs"'
    call = learner_text("MarginalLearner", request.budget, f"{cliques}, schema", request.adjacency)
    if not request.cliques:
        memory, _ = table_memory(request)
        return _refused(call, memory, "there are too many pairs of variables for a table of each")
    task = task_of(request)
    memory, fits = table_memory(request)
    noise = noise_at(request)
    cells = sum(task.cells(clique) for clique in request.cliques)
    largest = max(map(task.cells, request.cliques))
    scattered = math.sqrt(request.n / largest * (1 - 1 / largest))
    cell = cell_noise(request, noise)
    design = design_of(task, request.base)
    if request.model in ("ising", "structure"):
        pair = next(scope for scope in noise if len(scope) == 2)
        sampling, plain, expected, most = coupling_errors(request, 4 * noise[pair])
    else:
        sampling, plain, expected = cell_errors(request, noise)
        most = expected
    law = design.parts[0].law.name.removeprefix("discrete-").capitalize()
    ratio = cell / max(scattered, 1e-300)
    note = f"design {design.name!r}, {law} noise, {len(request.cliques):,} tables, {cells:,} cells"
    if ratio > _USELESS:
        note = (
            f"{len(request.cliques):,} tables share the budget, so each cell has noise of "
            f"±{cell:,.0f}, {times_text(ratio)} its sampling error: next to nothing is left"
        )
    if not fits:
        note = "exact inference does not fit in memory; fewer cliques, or edges selected privately"
    return MethodForecast(
        "tables",
        call,
        "cell of a table",
        cell,
        scattered,
        expected,
        most,
        sampling,
        plain,
        memory,
        1,
        table_seconds(request),
        available=fits,
        note=note,
    )


def cell_noise(request: Request, noise: dict[Scope, float]) -> float:
    """RMS noise of a cell, in rows: of the tables as measured, or, where interactions are
    measured instead, of the tables that they add up to."""
    task = task_of(request)
    exact = type(request.budget) is not type(request.base)
    design = design_of(task, request.budget if exact else request.base)
    if not any(part.centred for part in design.parts):
        variances = {law: law.deviation**2 for law in {part.law for part in design.parts}}
        sizes = [task.cells(part.scope) for part in design.parts]
        squares = sum(
            size * variances[part.law] for size, part in zip(sizes, design.parts, strict=True)
        )
        factor = 1.0 if exact else scale_factor(design, request.base, request.budget)
        return math.sqrt(squares * factor / sum(sizes)) / request.grid
    total, cells = 0.0, 0
    for clique in request.cliques:
        size = prod(request.shape[v] for v in clique)
        cells += size
        for scope in subsets(sorted(clique)):
            if not scope and request.rows_are_public:
                continue
            own = prod(request.shape[v] for v in scope)
            inside = prod(request.shape[v] - 1 for v in scope)
            total += inside * noise.get(scope, 0.0) * own / size
    return math.sqrt(total / cells)


def _refused(call: str, memory: float, note: str) -> MethodForecast:
    return MethodForecast(
        *("tables", call, "cell of a table", None, None, None, None, None, None, memory, 1, 0.0),
        available=False,
        note=note,
    )
