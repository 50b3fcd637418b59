"""Forecasts for private Frank–Wolfe: a proved bound, and what simulations showed.

The bound on the excess loss (docs/privacy/frank-wolfe.md) is far above what happens. The forecast
of errors is a fit to simulations, `experiments/planner_check.py`: the largest error of a coupling
was 1.6·√(√S·ln|V| / (n√ρ)) within a factor of 2, S being the regressions' worth of one record and
|V| the number of vertices. It is not a theorem. ρ is what each selection's noise amounts to, also
where a pure ε is spent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from privfield.errors import InputError
from privfield.mechanisms.forecasting.calls import learner_call
from privfield.mechanisms.forecasting.forecast import Forecast, refused
from privfield.mechanisms.forecasting.reference import STRENGTH, edges, inflation, largest_of
from privfield.mechanisms.forecasting.sizes import row_memory
from privfield.mechanisms.forecasting.study import Study
from privfield.words import duration_text

SCALE = 1.6  # fitted
_PRODUCTS = 0.7  # of that scale where features are products of variables, fitted
SPREAD = 0.7  # RMS over edges / largest error, fitted
_POWERS = 0.35, 1.4  # of couplings below and above 0.4, fitted
MOST = 1.5  # couplings that are all noise err by about so many times the true ones
_RATE = 1e11  # multiplications and additions a second, measured on one core
_TOO_LONG = 1e6  # seconds
_MOST_CELLS = 1 << 24  # of one gradient: more is refused by the learners
_GUMBEL = math.pi / math.sqrt(6)  # standard deviation of a Gumbel number of scale 1
_NAME, _STATISTIC = "frank-wolfe", "entry of a gradient"


@dataclass(frozen=True)
class Path:
    """What is public about a run.

    A record costs as much as in `shares` regressions, each of which sees a `share_of_rows`.
    `radius` is the largest margin. `noise` is the scale of a selection whose scores one row adds
    at most 1 to.
    """

    shares: int
    regressions: int
    columns: int
    log_vertices: float
    radius: float
    share_of_rows: float
    steps: int
    noise: float

    @property
    def rho(self) -> float:
        """The ρ of all selections with which one row that is replaced would meet that noise.

        The exponential mechanism has the scale r/√(8ρ), r the range of scores: 4 there.
        """
        return (4 / self.noise) ** 2 / 8 * self.shares * self.steps


def gap_bound(study: Study, path: Path) -> float:
    """E[excess loss] ≤ 2Γ/(K+2) + 2 ln2/((K+1)(K+2)) + τ ln|V| of one regression, per row."""
    steps, rows = path.steps, path.share_of_rows * study.n
    tau = path.noise * path.radius * _sigmoid(path.radius) / rows
    early = 2 * math.log(2) / ((steps + 1) * (steps + 2))
    return 2 * path.radius**2 / (steps + 2) + early + tau * path.log_vertices


def noisy_error(study: Study, path: Path, log_vertices: float, rows: float) -> float:
    """The largest error of a coupling from regressions on so many rows, fitted to simulations."""
    information = rows * math.sqrt(path.rho)
    reach: float = SCALE * (study.coupling / STRENGTH) ** _POWERS[study.coupling > STRENGTH]
    reach *= _PRODUCTS if study.model == "polynomial" and study.order > 2 else 1.0
    return reach * math.sqrt(math.sqrt(path.shares) * log_vertices / information)


def simulated_errors(study: Study, path: Path) -> tuple[float, float, float]:
    """Sampling, typical and largest error of a coupling, as fitted to simulations."""
    coupling, p, rows = study.coupling, study.variables, path.share_of_rows * study.n
    noisy = noisy_error(study, path, path.log_vertices, rows)
    pairs = max(1, math.comb(p, 2))
    sampling = math.sqrt(inflation(p, coupling)[0] / rows)
    largest = min(math.hypot(noisy, largest_of(pairs) * sampling), MOST * coupling)
    share = math.sqrt(edges(p) / pairs)
    return sampling, math.hypot(SPREAD * share * min(noisy, MOST * coupling), sampling), largest


def forecast_frank_wolfe(study: Study, call: str, make: Callable[[], Path]) -> Forecast:
    """p sparse logistic regressions (Zhang et al. 2020), as recalibrated here."""
    if study.zeros:
        return refused(_NAME, call, _STATISTIC, "knows no forbidden combinations")
    if sum(study.shape) * study.variables > _MOST_CELLS:
        note = "has too many regressions on too many columns"
        return refused(_NAME, call, _STATISTIC, note)
    try:
        path = make()
    except InputError as error:
        return refused(_NAME, call, _STATISTIC, str(error))
    sampling, typical, largest = simulated_errors(study, path)
    patterns = math.prod(float(size) for size in study.shape[:64])
    kept = path.regressions if study.is_binary else 0  # margins, in the l1 ball only
    rows = min(study.n, patterns) if patterns <= 2**16 else study.n
    seconds = 0.5 + 4 * rows * path.regressions * path.columns * path.steps / _RATE
    note = f"error fitted to simulations, not proved; {path.steps:,} steps"
    if seconds > _TOO_LONG:
        note = f"would take about {duration_text(seconds)}"
    return Forecast(
        _NAME,
        call,
        _STATISTIC,
        _GUMBEL * path.noise * _sigmoid(path.radius),
        math.sqrt(path.share_of_rows * study.n) / 2,
        typical,
        largest,
        sampling,
        typical,
        row_memory(study.n, study.variables, kept, path.steps, patterns),
        path.steps,
        seconds,
        bound=gap_bound(study, path),
        bound_of="excess loss of a regression, nats per row",
        steps=path.steps,
        available=seconds <= _TOO_LONG,
        asks="declared_rows" if study.guessed else "",
        note=note,
    )


def ising_call(study: Study) -> str:
    """The learner, to paste."""
    return learner_call(study, "IsingLearner", declares=True, width=study.width, method=_NAME)


def polynomial_call(study: Study) -> str:
    """Algorithm 4, to paste."""
    settings: dict[str, Any] = {"width": study.width, "order": study.order, "objective": "l1"}
    return learner_call(study, "PolynomialLearner", declares=True, **settings)


def _sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))
