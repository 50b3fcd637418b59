"""What Proposition 4 of Bernstein et al. (2017) says about KL, and what naive MLE has.

Proposition 4 is about the mean squared error of a cell. Summed over cells, frequent ones decide;
the mean of what it says of each counts rare ones as much, as KL does. Its covariance of all noisy
marginals, F/N + 2b²/N²·I with F the Fisher information and b = |C|/ε, gives KL: near the truth KL
is ½(μ̄ − μ)ᵀF⁺(μ̄ − μ), on average d/2N + b²·tr F⁺/N², with d free parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
from bernstein_drawing import table_row
from bernstein_setting import METHODS, Cell, Results, fit, truth
from scipy.optimize import minimize_scalar
from scipy.stats import poisson

from privfield.estimation.tables.observed import priors
from privfield.inference.engine import Engine
from privfield.planning.theorems import proposition_4

_STEP = 1e-3  # of a log-potential, for differences
_UNPROJECTED = "naive MLE, not projected"
_MOST_MEASURED = 1_000_000  # people: beyond, KL of naive MLE only
_COLUMNS = (  # over non-private maximum likelihood
    "squared errors, measured",
    "KL, measured, median",
    "KL, not projected, mean",
    "(4), all cells together",
    "(4), mean over cells",
    "its covariance in KL",
    "the same, with the ridge",
)
_BOUNDS = {
    "ridge": "best ridge",
    "ridges": "best ridge of each direction",
    "unbiased": "unbiased, law of noise known",
    "law and ridges": "law known, best ridge of each direction",
    "any": "any, on average over such potentials",
}
_COUNTS = (0.1, 1.0, 10.0, 100.0, 1_000.0)  # people in a cell


@cache
def information(graph: str, levels: int) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues of F that are not zero by definition, and the true θ along their directions.

    F is the derivative of the marginals by θ, from central differences.
    """
    model = truth(graph, levels)
    engine = Engine(model.schema, [model.schema.clique(clique) for clique in model.cliques])
    theta = engine.join(model.log_potentials)
    moves = _STEP * np.eye(theta.size)
    rows = [engine.run(theta + move)[1] - engine.run(theta - move)[1] for move in moves]
    slopes = np.array(rows) / (2 * _STEP)
    values, directions = np.linalg.eigh((slopes + slopes.T) / 2)
    variables = len(model.schema)
    free = variables * (levels - 1) + len(model.cliques) * (levels - 1) ** 2
    return values[-free:], directions[:, -free:].T @ theta


def expected_kl(cell: Cell, ridge: float, noisy: bool = True) -> float:
    """KL of maximum likelihood, linear in the noise, with a ridge in counts: spread and bias."""
    values, theta = information(cell.graph, cell.levels)
    known = cell.people * values
    noise = 2 * (len(cell.truth.cliques) / cell.epsilon) ** 2 if noisy else 0.0
    shrunk = known / (known + ridge) ** 2
    return float((shrunk * (known + noise + (ridge * theta) ** 2)).sum() / 2 / cell.people)


def least_kl(cell: Cell) -> dict[str, float]:
    """What other readings of the same tables have at least, with the truth in hand.

    "ridge": the best single one. "ridges": the best one for each direction, λ_i = c_i/(a_i·θ_i²),
    with a_i people and variance c_i = a_i + 2b². "unbiased": the bound of Cramér and Rao for those
    who know the law of the noise: Laplace's has the information 1/b², and that of a sum is at most
    1/(a_i + b²) (Stam). "law and ridges": both. "any": the inequality of van Trees for any reading,
    biased or not, on average over potentials as the study draws them: the logarithm of an
    exponential variable has the information 1.
    """
    values, theta = information(cell.graph, cell.levels)
    known = cell.people * values
    scale = len(cell.truth.cliques) / cell.epsilon
    tried = minimize_scalar(lambda log: expected_kl(cell, np.exp(log)), bounds=(-7, 9))

    def shrunk(noise: float) -> float:
        spread = known + noise
        found = known * theta**2 * spread / (known**2 * theta**2 + spread)
        return float(found.sum() / 2 / cell.people)

    return {
        "ridge": float(tried.fun),
        "ridges": shrunk(2 * scale**2),
        "unbiased": float(((known + scale**2) / known).sum() / 2 / cell.people),
        "law and ridges": shrunk(scale**2),
        "any": float((known / (known**2 / (known + scale**2) + 1)).sum() / 2 / cell.people),
    }


def cell_information(people: float, scale: float) -> float:
    """What a Poisson count of a cell with Laplace noise tells about its logarithm, over Stam's.

    The score of a count n is n − a; that of the noisy count its mean given what is seen. Stam's
    bound, a²/(a + b²), takes counts as normal.
    """
    low, high = poisson.ppf([1e-12, 1 - 1e-12], people)
    counts = np.arange(low, high + 1)
    chances = poisson.pmf(counts, people)
    tail = scale * np.linspace(0, 30, 4001)[1:]
    seen = np.concatenate([low - tail[::-1], np.arange(low, high + 0.05, 0.1), high + tail])
    density, slope = np.zeros((2, seen.size))
    for count, chance in zip(counts, chances, strict=True):
        part = chance * np.exp(-np.abs(seen - count) / scale) / (2 * scale)
        density += part
        slope += part * (count - people)
    told = np.trapezoid(slope**2 / density, seen)
    return float(told * (people + scale**2) / people**2)


def default_ridge(cell: Cell) -> float:
    """Of naive MLE, in counts: κ·b."""
    scale = len(cell.truth.cliques) / cell.epsilon
    return float(priors(cell.people, [cell.levels**2], [scale])[0] * scale)


def squared_errors(results: Results, cell: Cell, populations: int) -> float:
    """Of the edge marginals of naive MLE, over those of the true tables, one release of each."""
    model = cell.truth
    mu = np.array([model.marginal(clique) for clique in model.cliques])

    def work() -> list[float]:
        found = []
        for population in range(populations):
            own = replace(cell, population=population)
            learned = METHODS["naive MLE"](own)
            shares = np.array([learned.marginal(clique) for clique in model.cliques])
            plain = own.tables() / own.people
            found.append([float(((each - mu) ** 2).sum()) for each in (shares, plain)])
        return np.sum(found, axis=0).tolist()

    place = f"{cell.graph} {cell.people} {cell.epsilon:g} {cell.levels}"
    ours, plain = results.get(f"squared errors | {place} x{populations}", work)
    return float(ours / plain)


def printed_ratios(cell: Cell) -> tuple[float, float]:
    """Equation (4) over its first term: of all cells together, and the mean over cells."""
    model = cell.truth
    mu = np.concatenate([model.marginal(clique).ravel() for clique in model.cliques])
    cliques = len(model.cliques)
    printed = np.array([proposition_4(p, cell.people, cliques, cell.epsilon) for p in mu])
    plain = mu * (1 - mu) / cell.people
    return float(printed.sum() / plain.sum()), float((printed / plain).mean())


def ratios(results: Results, cell: Cell, populations: int, replications: int) -> list[float]:
    """Naive MLE over non-private maximum likelihood, as in `_COLUMNS`.

    KL is measured as the median, and as the mean without the projection, which the expectation is
    about; that and squared errors are left out beyond a million people. Non-private maximum
    likelihood has the ridge 1/N, of one person.
    """
    people = [replace(cell, population=k) for k in range(populations)]
    runs = [replace(c, replication=k) for c, k in product(people, range(replications))]
    few = cell.people <= _MOST_MEASURED
    methods = ["naive MLE"] + [_UNPROJECTED] * few
    kl = {method: [fit(results, method, each)[0] for each in runs] for method in methods}
    kl["non-private"] = [fit(results, "non-private", each)[0] for each in people]
    return [
        squared_errors(results, cell, populations) if few else np.nan,
        float(np.median(kl["naive MLE"]) / np.median(kl["non-private"])),
        float(np.mean(kl.get(_UNPROJECTED, np.nan)) / np.mean(kl["non-private"])),
        *printed_ratios(cell),
        expected_kl(cell, 0.0) / expected_kl(cell, 0.0, noisy=False),
        expected_kl(cell, default_ridge(cell)) / expected_kl(cell, 1.0, noisy=False),
    ]


def consistency(
    results: Results, cells: Sequence[tuple[str, int, int, int]], epsilon: float, levels: int
) -> Iterator[str]:
    """Two tables; `cells` are graphs, numbers of people, populations, and replications of each."""
    yield f"| ε = {epsilon:g} | N | trials | " + " | ".join(_COLUMNS) + " |"
    yield "|---|---:|---:|" + "---:|" * len(_COLUMNS)
    for graph, people, populations, replications in cells:
        cell = Cell(graph, people, epsilon, levels=levels)
        found = ratios(results, cell, populations, replications)
        shown = " | ".join(f"{ratio:.3g}" if np.isfinite(ratio) else "–" for ratio in found)
        yield f"| {graph} | {people:,} | {populations * replications} | {shown} |"
    yield f"\n| at least, ε = {epsilon:g} | N | " + " | ".join(_BOUNDS.values()) + " |"
    yield "|---|---:|" + "---:|" * len(_BOUNDS)
    for graph, people, *_ in cells:
        cell = Cell(graph, people, epsilon, levels=levels)
        least, plain = least_kl(cell), expected_kl(cell, 1.0, noisy=False)
        shown = " | ".join(f"{least[name] / plain:.3g}" for name in _BOUNDS)
        yield f"| {graph} | {people:,} | {shown} |"
    scale = len(truth("chain3", levels).cliques) / epsilon
    yield (
        f"\n| exact information over Stam's, b = {scale:g}; people in a cell | "
        + " | ".join(f"{people:g}" for people in _COUNTS)
        + " |"
    )
    yield "|---|" + "---:|" * len(_COUNTS)
    yield table_row("", [cell_information(people, scale) for people in _COUNTS])
