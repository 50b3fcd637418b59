"""The best that private SGD can do in the synthetic study: a search that knows the truth.

The search is NOT PRIVATE: it reads the truth and runs the mechanism many times on the same data,
and only one run is paid for. It shows private SGD at its best (Bernstein et al. 2017, section 4).

    PYTHONPATH=src python experiments/private_sgd_grid.py --graph chain3 --rows 10000 --epsilon 1
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import privfield as pf
from privfield.estimation.trajectories import mrf_from_sgd
from privfield.mechanisms.gradients.sgd import SGDTrajectory, StochasticGradients

STAMP = "NOT PRIVATE: settings chosen by a search that knows the truth; only one run is paid for"
CASES = Path(__file__).resolve().parents[2] / "shared" / "cases" / "marginals"

MAX_DRAWS = 6e7  # rows read in one run, on average: bounds its time
AXES: dict[str, tuple[float, ...]] = {
    "steps": (10, 30, 100, 300, 1000, 3000),
    "rate": (0.03, 0.06, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0),
    "clip": (0.25, 0.5, 1.0, 1.42),
    "sampling": (0.01, 0.03, 0.1, 0.3, 1.0),
}
AVERAGES = (0.0, 0.25, 0.5, 1.0)


@dataclass(frozen=True)
class Settings:
    """Of one run: `rate` is per mean gradient, `clip` in units of √(number of cliques)."""

    steps: float
    rate: float
    clip: float
    sampling: float


@dataclass(frozen=True)
class Tuned:
    """The least KL(truth ‖ learned) of the search, how it was got, and all that was tried.

    `fresh_kl` is one more run of the chosen settings with other noise: free of the luck of the
    search.
    """

    kl: float
    fresh_kl: float
    settings: Settings
    average: float
    budget: pf.ApproxDP
    noise_multiplier: float
    tried: dict[Settings, float]
    stamp: str = STAMP


def run_psgd(
    data: Any,
    schema: pf.Schema,
    cliques: Sequence[Sequence[str]],
    budget: pf.ApproxDP,
    settings: Settings,
    seed: int,
) -> SGDTrajectory:
    """One run with repeatable noise."""
    return StochasticGradients.measure(
        data,
        budget,
        schema=schema,
        cliques=tuple(map(tuple, cliques)),
        steps=int(settings.steps),
        sampling_rate=settings.sampling,
        clip=settings.clip * math.sqrt(len(cliques)),
        learning_rate=settings.rate / (settings.sampling * len(data)),
        insecure_seed=seed,
    )


def best_average(truth: pf.MarkovRandomField, run: SGDTrajectory) -> tuple[float, float]:
    """The least KL over how many of the last iterates are averaged, and that share."""
    return min((truth.kl_divergence(mrf_from_sgd(run, share)), share) for share in AVERAGES)


def tuned_psgd(
    truth_model: pf.MarkovRandomField,
    data: Any,
    cliques: Sequence[Sequence[str]],
    epsilon: float,
    delta: float,
    seed: int = 0,
    max_draws: float = MAX_DRAWS,
) -> Tuned:
    """Climb the grid `AXES` one axis at a time until no neighbour has a lower KL.

    A run reads at most `max_draws` rows on average. For repeated trials, tune once and give
    `Tuned.settings` to `run_psgd`.
    """
    budget, schema = pf.ApproxDP(epsilon, delta), truth_model.schema
    tried: dict[Settings, float] = {}
    averages: dict[Settings, float] = {}

    def kl(settings: Settings) -> float:
        if settings not in tried:
            draws = settings.sampling * len(data)
            if draws < 20 or draws * settings.steps > max_draws:
                tried[settings] = math.inf
            else:
                run = run_psgd(data, schema, cliques, budget, settings, seed)
                tried[settings], averages[settings] = best_average(truth_model, run)
        return tried[settings]

    best = Settings(300, 1.0, 1.0, _first_sampling(len(data), max_draws / 300))
    while True:
        before = best
        for axis, values in AXES.items():
            best = _climb(best, axis, values, kl)
        if best == before:
            break
    again = run_psgd(data, schema, cliques, budget, best, seed + 1)
    fresh = truth_model.kl_divergence(mrf_from_sgd(again, averages[best]))
    found = {key: value for key, value in tried.items() if value < math.inf}
    multiplier = again.scale / again.clip
    return Tuned(kl(best), fresh, best, averages[best], budget, multiplier, found)


def _first_sampling(rows: int, max_rows: float) -> float:
    """The middle of the sampling rates that the search allows."""
    legal = [q for q in AXES["sampling"] if 20 <= q * rows <= max_rows]
    if not legal:
        raise ValueError(f"no sampling rate draws between 20 and {max_rows:g} of {rows} rows")
    return legal[len(legal) // 2]


def _climb(best: Settings, axis: str, values: tuple[float, ...], kl: Any) -> Settings:
    for direction in (1, -1):
        while True:
            position = values.index(getattr(best, axis)) + direction
            if not 0 <= position < len(values):
                break
            other = replace(best, **{axis: values[position]})
            if kl(other) >= kl(best):
                break
            best = other
    return best


def load_truth(graph: str) -> pf.MarkovRandomField:
    """A model of the shared cases."""
    case = np.load(CASES / f"{graph}_truth.npz")
    names = [f"x{i}" for i in range(int(case["T"]))]
    schema = pf.Schema(dict.fromkeys(names, int(case["K"])))
    cliques = [(names[a], names[b]) for a, b in case["edges"]]
    return pf.MarkovRandomField(schema, cliques, list(case["theta"]))


def second_opinion(tuned: Tuned) -> float | None:
    """ε of the same run by dp-accounting (continuous Gaussian, all orders), if installed."""
    try:
        import dp_accounting as dp
        from dp_accounting import rdp
    except ImportError:
        return None
    accountant = rdp.RdpAccountant()
    event = dp.GaussianDpEvent(tuned.noise_multiplier)
    event = dp.PoissonSampledDpEvent(tuned.settings.sampling, event)
    accountant.compose(event, int(tuned.settings.steps))
    return float(accountant.get_epsilon(tuned.budget.delta))


def main() -> None:
    """Tune for each size and ε, with δ = 1/N as in the paper."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--graph", choices=["chain3", "er"], default="chain3")
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    truth = load_truth(options.graph)
    print(STAMP)
    for rows in options.rows:
        data = truth.sample(rows, np.random.default_rng([options.seed, rows]), method="independent")
        for epsilon in options.epsilon:
            start = time.perf_counter()
            tuned = tuned_psgd(truth, data, truth.cliques, epsilon, 1 / rows, options.seed)
            print(
                f"{options.graph} N={rows} ε={epsilon:g} δ={1 / rows:g}: KL {tuned.kl:.4g} "
                f"(other noise {tuned.fresh_kl:.4g}), {asdict(tuned.settings)}, "
                f"average {tuned.average:g}, σ/clip {tuned.noise_multiplier:.3f}, "
                f"{len(tuned.tried)} runs, {time.perf_counter() - start:.0f} s, "
                f"dp-accounting ε {second_opinion(tuned)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
