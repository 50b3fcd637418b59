"""Forecasts for private Frank–Wolfe: a proved bound, and what simulations showed.

The bound on the excess loss (docs/privacy/frank-wolfe.md) is far above what happens. The forecast
of errors is a fit to simulations, `experiments/planner_check.py`: the largest error of a coupling
was 1.6·√(√S·ln|V| / (n√ρ)) within a factor of 2, S being the regressions' worth of one record and
|V| the number of vertices. It is not a theorem.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from privfield.mechanisms.frank_wolfe.steps import default_steps
from privfield.planning.forecast import MethodForecast
from privfield.planning.reference import STRENGTH, edges, inflation, largest_of
from privfield.planning.request import Request
from privfield.planning.sizes import row_memory
from privfield.planning.words import duration_text, learner_text
from privfield.privacy.adjacency import Adjacency

SCALE = 1.6  # fitted
_PRODUCTS = 0.7  # of that scale where features are products of variables, fitted
_SPREAD = 0.7  # RMS over edges / largest error, fitted
_POWERS = 0.35, 1.4  # of couplings below and above 0.4, fitted
_MOST = 1.5  # couplings that are all noise err by about so many times the true ones
_RATE = 1e11  # multiplications and additions a second, measured on one core
_TOO_LONG = 1e6  # seconds
_MOST_CELLS = 1 << 24  # of one gradient: more is refused by the learners
_GUMBEL = math.pi / math.sqrt(6)  # standard deviation of a Gumbel number of scale 1


@dataclass(frozen=True)
class Regressions:
    """What is public about a use of Frank–Wolfe."""

    shares: int  # S: a record costs as much as in so many regressions
    regressions: int
    columns: int
    log_vertices: float
    radius: float  # R·B, the largest margin
    share_of_rows: float = 1.0


def ising_regressions(request: Request) -> Regressions:
    """One for each variable, on all others and a constant."""
    p = request.variables
    return Regressions(p, p, p + 1, math.log(2 * p), 2 * request.width)


def pairwise_regressions(request: Request) -> Regressions:
    """One for each two levels of each variable, in the group ball."""
    most = max(request.shape)
    count = sum(math.comb(size, 2) for size in request.shape)
    vertices = math.log(request.variables) + most * math.log(2)
    shares = sum(size - 1 for size in request.shape)
    return Regressions(shares, count, sum(request.shape) + 1, vertices, 2 * request.width, 2 / most)


def polynomial_regressions(request: Request) -> Regressions:
    """One for each variable, on all products of up to order − 1 others."""
    p = request.variables
    products = sum(math.comb(p - 1, size) for size in range(request.order))
    columns = sum(math.comb(p, size) for size in range(request.order))
    return Regressions(p, p, columns, math.log(2 * products), 2 * request.width)


def rho_of(request: Request) -> float:
    """ρ for one row: people of r rows move everything r times as far."""
    return request.budget.rho / (request.unit_weight / request.grid) ** 2


def steps_of(request: Request, task: Regressions) -> int:
    """The default number of steps, as the learner computes it."""
    rho = request.budget.exact_rho / task.shares
    rows = task.share_of_rows * request.n
    return default_steps(rows, rho, task.radius, task.log_vertices, request.adjacency)


def gap_bound(request: Request, task: Regressions, steps: int) -> float:
    """E[excess loss] ≤ 2Γ/(K+2) + 2 ln2/((K+1)(K+2)) + τ ln|V| of one regression, per row."""
    moves = 2 if request.adjacency is Adjacency.ADD_REMOVE else 4
    sigmoid = 1 / (1 + math.exp(-task.radius))
    rho = rho_of(request) / (task.shares * steps)
    rows = task.share_of_rows * request.n
    tau = moves * task.radius * sigmoid / math.sqrt(8 * rho) / rows
    curvature = task.radius**2
    early = 2 * math.log(2) / ((steps + 1) * (steps + 2))
    return 2 * curvature / (steps + 2) + early + tau * task.log_vertices


def simulated_errors(request: Request, task: Regressions) -> tuple[float, float, float]:
    """Sampling, typical and largest error of a coupling, as fitted to simulations."""
    coupling, p = request.coupling, request.variables
    add_remove = request.adjacency is Adjacency.ADD_REMOVE
    information = task.share_of_rows * request.n * math.sqrt(rho_of(request))
    information *= 2 if add_remove else 1  # half the noise
    reach = SCALE * (coupling / STRENGTH) ** _POWERS[coupling > STRENGTH]
    reach *= _PRODUCTS if request.model == "polynomial" and request.order > 2 else 1.0
    noisy = reach * math.sqrt(math.sqrt(task.shares) * task.log_vertices / information)
    pairs = max(1, math.comb(p, 2))
    sampling = math.sqrt(inflation(p, coupling)[0] / (task.share_of_rows * request.n))
    largest = math.hypot(noisy, largest_of(pairs) * sampling)
    largest = min(largest, _MOST * coupling)
    share = math.sqrt(edges(p) / pairs)
    return sampling, math.hypot(_SPREAD * share * min(noisy, _MOST * coupling), sampling), largest


def frank_wolfe(request: Request, task: Regressions, call: str) -> MethodForecast:
    """p sparse logistic regressions (Zhang et al. 2020), as recalibrated here."""
    statistic = "entry of a gradient"
    large = task.regressions * task.columns > _MOST_CELLS
    if request.pure or large:
        why = "needs a budget with δ or ρ: its selections promise no pure ε"
        return MethodForecast(
            *("frank-wolfe", call, statistic, None, None, None, None, None, None, 0.0, 0, 0.0),
            available=False,
            note="has too many regressions on too many columns" if large else why,
        )
    steps = steps_of(request, task)
    sampling, typical, largest = simulated_errors(request, task)
    rho = rho_of(request) / (task.shares * steps)
    moves = 2 if request.adjacency is Adjacency.ADD_REMOVE else 4
    sigmoid = 1 / (1 + math.exp(-task.radius))
    patterns = math.prod(float(size) for size in request.shape[:64])
    kept = 0 if max(request.shape) > 2 else task.regressions  # margins, in the l1 ball only
    rows = min(request.n, patterns) if patterns <= 2**16 else request.n
    seconds = 0.5 + 4 * rows * task.regressions * task.columns * steps / _RATE
    note = f"error fitted to simulations, not proved; {steps:,} steps"
    if seconds > _TOO_LONG:
        note = f"would take about {duration_text(seconds)}"
    return MethodForecast(
        "frank-wolfe",
        call,
        statistic,
        _GUMBEL * moves * sigmoid / math.sqrt(8 * rho),
        math.sqrt(task.share_of_rows * request.n) / 2,
        typical,
        largest,
        sampling,
        typical,
        row_memory(request.n, request.variables, kept, steps, patterns),
        steps,
        seconds,
        bound=gap_bound(request, task, steps),
        bound_of="excess loss of a regression, nats per row",
        steps=steps,
        available=seconds <= _TOO_LONG,
        note=note,
    )


def ising_frank_wolfe(request: Request) -> MethodForecast:
    """For Ising models."""
    call = _learner(request, "IsingLearner", 'method="frank-wolfe"')
    return frank_wolfe(request, ising_regressions(request), call)


def polynomial_frank_wolfe(request: Request) -> MethodForecast:
    """For t-wise models, Algorithm 4."""
    extra = f'order={request.order}, objective="l1"'
    call = _learner(request, "PolynomialLearner", extra)
    return frank_wolfe(request, polynomial_regressions(request), call)


def _learner(request: Request, name: str, extra: str) -> str:
    declared = "" if request.rows_are_public else f", declared_rows={request.n}"
    return learner_call(request, name, f"width={request.width:g}, {extra}{declared}")


def learner_call(request: Request, name: str, extra: str) -> str:
    """Code that makes the learner, to paste."""
    schema = ", schema=schema" if request.named else ""
    return learner_text(name, request.budget, extra + schema, request.adjacency)
