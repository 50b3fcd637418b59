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
from dataclasses import dataclass, replace
from itertools import combinations

from privfield.errors import InputError
from privfield.mechanisms.forecasting.calls import learner_call
from privfield.mechanisms.forecasting.forecast import Forecast, refused
from privfield.mechanisms.forecasting.reference import STRENGTH, edges, inflation, largest_of
from privfield.mechanisms.forecasting.sizes import row_memory
from privfield.mechanisms.forecasting.study import Study
from privfield.mechanisms.frank_wolfe.gradients import Regressions
from privfield.words import duration_text

_SCALE = 1.6  # fitted
_PRODUCTS = 0.7  # of that scale where features are products of variables, fitted
_SPREAD = 0.7  # RMS over edges / largest error, fitted
_POWERS = 0.35, 1.4  # of couplings below and above 0.4, fitted
_MOST = 1.5  # couplings that are all noise err by about so many times the true ones
_RATE = 1e11  # multiplications and additions a second, measured on one core
_TOO_LONG = 1e6  # seconds
MOST_CELLS = 1 << 24  # of one gradient: more is refused by the learners
_MAIN = 1.0  # log-potentials of single variables, which the regressions have to find as well
_VARIATION = math.sqrt(2 / math.pi) / 2  # of a table, for log-potentials that err by 1
_GUMBEL = math.pi / math.sqrt(6)  # standard deviation of a Gumbel number of scale 1
_NAME, _STATISTIC = "frank-wolfe", "entry of a gradient"


@dataclass(frozen=True)
class Path:
    """What is public about a run: `noise` is the scale of a selection whose scores one row adds at
    most 1 to."""

    regressions: Regressions
    steps: int
    noise: float

    @property
    def rho(self) -> float:
        """The ρ of all selections with which one row that is replaced would meet that noise.

        The exponential mechanism has the scale r/√(8ρ), r the range of scores: 4 there.
        """
        return (4 / self.noise) ** 2 / 8 * self.regressions.shares * self.steps


def gap_bound(study: Study, path: Path) -> float:
    """E[excess loss] ≤ 2Γ/(K+2) + 2 ln2/((K+1)(K+2)) + τ ln|V| of one regression, per row."""
    steps, rows = path.steps, path.regressions.share_of_rows * study.n
    tau = path.noise * path.regressions.reach * _sigmoid(path.regressions.reach) / rows
    early = 2 * math.log(2) / ((steps + 1) * (steps + 2))
    return 2 * path.regressions.reach**2 / (steps + 2) + early + tau * path.regressions.log_vertices


def noisy_error(study: Study, path: Path, log_vertices: float, rows: float) -> float:
    """The largest error of a coupling from regressions on so many rows, fitted to simulations."""
    information = rows * math.sqrt(path.rho)
    reach: float = _SCALE * (study.coupling / STRENGTH) ** _POWERS[study.coupling > STRENGTH]
    reach *= _PRODUCTS if study.model == "polynomial" and study.order > 2 else 1.0
    return reach * math.sqrt(math.sqrt(path.regressions.shares) * log_vertices / information)


def simulated_errors(study: Study, path: Path) -> tuple[float, float, float]:
    """Sampling, typical and largest error of a coupling, as fitted to simulations."""
    coupling, p, rows = study.coupling, study.variables, path.regressions.share_of_rows * study.n
    noisy = noisy_error(study, path, path.regressions.log_vertices, rows)
    pairs = max(1, math.comb(p, 2))
    sampling = math.sqrt(inflation(p, coupling)[0] / rows)
    largest = min(math.hypot(noisy, largest_of(pairs) * sampling), _MOST * coupling)
    share = math.sqrt(edges(p) / pairs)
    return sampling, math.hypot(_SPREAD * share * min(noisy, _MOST * coupling), sampling), largest


def forecast_frank_wolfe(study: Study, call: str, make: Callable[[], Path]) -> Forecast:
    """p sparse logistic regressions (Zhang et al. 2020), as recalibrated here."""
    if study.zeros:
        return refused(_NAME, call, _STATISTIC, "knows no forbidden combinations")
    if sum(study.shape) * study.variables > MOST_CELLS:
        note = "has too many regressions on too many columns"
        return refused(_NAME, call, _STATISTIC, note)
    try:
        path = make()
    except InputError as error:
        return refused(_NAME, call, _STATISTIC, str(error))
    sampling, typical, largest = simulated_errors(study, path)
    patterns = math.prod(float(size) for size in study.shape[:64])
    regressions = path.regressions
    kept = regressions.count if study.is_binary else 0  # margins, in the l1 ball only
    rows = min(study.n, patterns) if patterns <= 2**16 else study.n
    seconds = (
        0.5 + 4 * rows * path.regressions.count * path.regressions.columns * path.steps / _RATE
    )
    note = f"error fitted to simulations, not proved; {path.steps:,} steps"
    if seconds > _TOO_LONG:
        note = f"would take about {duration_text(seconds)}"
    return Forecast(
        _NAME,
        call,
        _STATISTIC,
        _GUMBEL * path.noise * _sigmoid(path.regressions.reach),
        math.sqrt(path.regressions.share_of_rows * study.n) / 2,
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


def forecast_pairwise(study: Study, make: Callable[[], Path]) -> Forecast:
    """`pf.PairwiseLearner(method="frank-wolfe")`."""
    call = learner_call(study, "PairwiseLearner", declares=True, width=study.width, method=_NAME)
    found = forecast_frank_wolfe(study, call, make)
    if study.listed is not None:
        why = "learns all pairs; for these cliques use tables"
        return replace(found, available=False, note=why)
    if found.sampling_error is None:
        return found
    sampling = min(1.0, math.sqrt(3) * found.sampling_error * _VARIATION)
    error = max(table_error(study, make()), sampling)
    return replace(
        found,
        expected_error=error,
        largest_error=error,
        plain_error=error,
        sampling_error=sampling,
    )


def table_error(study: Study, path: Path) -> float:
    """Mean total variation of pair tables, as fitted to simulations: within a factor of 2.

    A log-potential that errs by e moves a cell's probability μ by about μe. The main effects of
    both variables err in every table, their interaction where there is an edge; a variable of k
    levels is regressed on 2n/k rows for each two of them.
    """
    shape, p = study.shape, study.variables
    vertices = math.log(p) + sum(shape) / p * math.log(2)
    size = {}
    for k in set(shape):
        noisy = noisy_error(study, path, vertices, 2 / k * study.n)
        size[k] = _SPREAD * min(noisy, _MOST * _MAIN)
    share = edges(p) / max(1, math.comb(p, 2))
    total = 0.0
    for one, two in combinations(shape, 2):
        main = size[one] ** 2 + size[two] ** 2
        pair = min(main / 2, (_SPREAD * _MOST * study.coupling) ** 2)
        total += min(1.0, _VARIATION * math.sqrt(main + share * pair))
    return total / max(1, math.comb(p, 2))


def _sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))
