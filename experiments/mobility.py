"""The mobility study of Bernstein et al. (2017, Figure 3b) on public sessions, from our own runs.

    python experiments/mobility.py all    # docs/figures/bernstein/figure3b.*

The wifi data of the paper were never published. Here are as many sessions of a news site as the
paper has user-days (MSNBC page categories, UCI archive; ../shared/data/msnbc990928.zip or --data),
drawn by numpy from seed 2017; every fourth is kept back. A session is cut to a segment: its first
six pages, filled up with null. The model is the paper's: p(x) ∝ φ(x₁) ψ(x₁, x₂) … ψ(x₅, x₆).

`tune` searches settings of private SGD with the held-out sessions in hand (NOT PRIVATE: private SGD
at its best), `psgd` and `fits` run the methods, `why` changes settings of private SGD one at a
time, `draw` draws. Every fit is kept in figure3b.json beside the figure: what is there is not
computed again, a study that was interrupted goes on; `--sessions 300` tries it out. Noise of
ChainLearner is drawn afresh; private SGD has insecure_seed 0 where it is tuned, 1, 2, … in its runs
and 9 in `why`.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
from chains import MSNBC, name_lines, read_msnbc
from small_runs import folder_for, needed

import privfield as pf
from privfield.estimation.trajectories import mrf_from_sgd
from privfield.files import write_whole
from privfield.learners.sgd import calm_pace, start_norm
from privfield.privacy.gaussian_curve import gaussian_rho_for

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "figures" / "bernstein"
SESSIONS = 124_399  # user-days of the paper
LENGTH, NULL = 6, "off"
EPSILONS = (0.003, 0.01, 0.03, 0.1, 0.5, 1.0)
RUNS = 10  # of each method and ε
STEPS = (30, 100, 300, 1000)
RATES = (1, 2)  # of the learner's own
CLIPS = (0.5,)  # of the norm of every gradient at the start; 1 in the search over the others
AVERAGES = (0.0, 0.25, 0.5, 1.0)
ORDERS = 32  # moments that the accountant of Abadi et al. looks at
STYLES = {  # dark to light in grey as well; markers and dashes differ too
    "non-private": ("#000000", "", "--"),
    "auto": ("#56B4E9", "^", "-"),
    "auto, Gaussian": ("#88CCEE", "<", "-."),
    "CGM": ("#004488", "s", "-"),
    "naive MLE": ("#DDAA33", "d", "-"),
    "PSGD": ("#CC6677", "v", ":"),
}
ABOUT = {
    "command": "python experiments/mobility.py all",
    "data": f"{SESSIONS:,} MSNBC sessions drawn by numpy default_rng(2017), first {LENGTH} pages",
    "fits": "method: {ε: [[held-out log-likelihood of a segment in nats, CPU-seconds], …]}",
    "seeds": "noise of ChainLearner afresh; PSGD insecure_seed 0 to tune, then 1, 2, …",
    "tuned": "PSGD by ε: [log-likelihood, settings, share of iterates averaged, settings tried]",
    "tried": "PSGD by ε, steps, rate, clip: [log-likelihood, share of iterates averaged]",
    "why": "PSGD, one setting changed: log-likelihood",
    "tried, Rényi": "the same, noise by Rényi divergences, 8 to 16% more; likewise fits",
}


@dataclass
class Results:
    """What was computed, in a file that is whole after every fit."""

    path: Path
    known: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = json.loads(self.path.read_text()) if self.path.exists() else {}
        self.known = {**known, "about": ABOUT}

    def get(self, part: str, key: str, work: Callable[[], Any]) -> Any:
        """The value, computed if it is not there."""
        known = self.known.setdefault(part, {})
        if key not in known:
            known[key] = work()
            print(part, key, known[key], file=sys.stderr, flush=True)
            self.save()
        return known[key]

    def more(self, method: str, epsilon: float, number: int, work: Callable[[int], Any]) -> Any:
        """A list of that many fits at least."""
        known = self.known.setdefault("fits", {}).setdefault(method, {})
        runs = known.setdefault(f"{epsilon:g}", [])
        while len(runs) < number:
            start = time.process_time()
            score = work(len(runs))
            runs.append([round(score, 5), round(time.process_time() - start, 2)])
            print(method, epsilon, runs[-1], file=sys.stderr, flush=True)
            self.save()
        return runs

    def save(self) -> None:
        """Write all."""
        text = json.dumps(self.known, ensure_ascii=False, indent=1)
        with write_whole(self.path) as file:
            file.write((text + "\n").encode())


@dataclass
class Study:
    """The sessions, and how methods are run on them."""

    data: Path
    sessions: int = SESSIONS

    @cached_property
    def states(self) -> list[str]:
        """Page categories, and null."""
        return [*read_msnbc(self.data)[0], NULL]

    @cached_property
    def rows(self) -> np.ndarray:
        """One segment per session, as codes."""
        names, sessions = read_msnbc(self.data)
        rng = np.random.default_rng(2017)
        chosen = np.sort(rng.permutation(len(sessions))[: self.sessions])
        offsets, values = np.asarray(sessions.offsets), np.asarray(sessions.values)
        rows = np.full((len(chosen), LENGTH), len(names), np.uint8)
        for place in range(LENGTH):
            at = offsets[chosen] + place
            there = at < offsets[chosen + 1]
            rows[there, place] = values[at[there]]
        return rows

    @property
    def train(self) -> np.ndarray:
        """Three quarters."""
        return self.rows[np.arange(len(self.rows)) % 4 != 3]

    @property
    def test(self) -> np.ndarray:
        """Every fourth."""
        return self.rows[3::4]

    @property
    def delta(self) -> float:
        """As in the paper."""
        return 1 / len(self.train)

    def chain(self, budget: Any, method: str, noise: str = "auto") -> float:
        """`pf.ChainLearner`, neighbours as in the paper."""
        learner = pf.ChainLearner(
            budget,
            states=self.states,
            segment=LENGTH,
            null=NULL,
            limit=1,
            method=method,
            noise=noise,
            adjacency="add-remove",
        )
        return learner.fit(self.train).evaluate(self.test).mean

    @cached_property
    def schema(self) -> pf.Schema:
        """A segment as a row of a table."""
        return pf.Schema({f"t{place}": self.states for place in range(1, LENGTH + 1)})

    @property
    def cliques(self) -> list[tuple[str, ...]]:
        """Of the same model."""
        return [("t1",), *pairwise(self.schema.names)]

    def sgd(self, epsilon: float, settings: dict[str, float], seed: int, **changes: Any) -> Any:
        """`pf.SGDLearner` with tied potentials: log-likelihood by share of iterates averaged."""
        used = {**settings, **changes}
        learner = pf.SGDLearner(
            pf.ApproxDP(epsilon, used.get("delta", self.delta)),
            schema=self.schema,
            cliques=self.cliques,
            tied=True,
            declared_rows=len(self.train),
            steps=int(used["steps"]),
            sampling_rate=used.get("sampling", 1),
            clip=used["clip"] * start_norm(self.schema, self.cliques),
            learning_rate=used["rate"] * calm_pace(self.schema, self.cliques),
            insecure_seed=seed,
        ).fit(self.train)
        return {
            share: mrf_from_sgd(learner.released_, share).log_likelihood(self.test) / len(self.test)
            for share in AVERAGES
        }


# -- the methods -----------------------------------------------------------------------------------


def fits(study: Study, results: Results, runs: int) -> None:
    """Every method of `pf.ChainLearner` at every ε."""
    results.get("non-private", "tied", lambda: study.chain(pf.NON_PRIVATE, "auto"))
    methods = {"auto": "auto", "CGM": "cgm", "naive MLE": "naive"}
    for epsilon in EPSILONS:
        for name, method in methods.items():
            results.more(
                name,
                epsilon,
                runs,
                lambda run, e=epsilon, m=method: study.chain(pf.PureDP(e), m),
            )
        results.more(
            "auto, Gaussian",
            epsilon,
            runs,
            lambda run, e=epsilon: study.chain(pf.ApproxDP(e, study.delta), "auto", "gaussian"),
        )


def psgd(study: Study, results: Results, runs: int) -> None:
    """Private SGD as it was tuned, with other noise."""
    for epsilon in EPSILONS:
        _, settings, share, _ = results.known["tuned"][f"{epsilon:g}"]
        results.more(
            "PSGD",
            epsilon,
            runs,
            lambda run, e=epsilon, s=settings, a=share: study.sgd(e, s, run + 1)[a],
        )


def tune(study: Study, results: Results) -> None:
    """A grid over steps and rate, then the clip: 1,000 steps at most, rates that are stable."""
    for epsilon in reversed(EPSILONS):

        def search(epsilon: float = epsilon) -> list[Any]:
            tried: list[tuple[float, float, dict[str, float]]] = []

            def score(settings: dict[str, float]) -> None:
                key = f"{epsilon:g} " + " ".join(f"{value:g}" for value in settings.values())

                def work() -> list[float]:
                    found = study.sgd(epsilon, settings, 0)
                    share = max(AVERAGES, key=lambda each: found[each])
                    return [round(found[share], 5), share]

                value, share = results.get("tried", key, work)
                tried.append((value, share, settings))

            for steps, rate in product(worthwhile(epsilon), RATES):
                score({"steps": steps, "rate": rate, "clip": 1.0})
            for clip in CLIPS:
                score({**max(tried, key=lambda each: each[0])[2], "clip": clip})
            value, share, settings = max(tried, key=lambda each: each[0])
            return [value, settings, share, len(tried)]

        results.get("tuned", f"{epsilon:g}", search)


def worthwhile(epsilon: float) -> tuple[int, ...]:
    """Numbers of steps: the larger ε, the more."""
    return STEPS[2:] if epsilon > 0.03 else STEPS[1:3] if epsilon > 0.01 else STEPS[:2]


# -- why private SGD wins here ---------------------------------------------------------------------


def why(study: Study, results: Results, epsilon: float = 0.5) -> None:
    """From the tuned settings, one thing changed at a time."""
    _, settings, share, _ = results.known["tuned"][f"{epsilon:g}"]
    ratio = few_moments(epsilon, study.delta)
    changes: dict[str, dict[str, Any]] = {
        "nothing": {},
        "δ = 1e-10": {"delta": 1e-10},
        "δ = 1e-20": {"delta": 1e-20},
        "clip × 1/10": {"clip": settings["clip"] / 10},
        "clip × 2": {"clip": settings["clip"] * 2},
        "rate × 1/10": {"rate": settings["rate"] / 10},
        "rate × 5": {"rate": settings["rate"] * 5},
        "steps × 1/10": {"steps": max(1, settings["steps"] // 10)},
        "steps × 3": {"steps": settings["steps"] * 3},
        "1% samples": {"sampling": 0.01},
        f"noise × {ratio:.2f} ({ORDERS} moments)": {"noise": ratio},
    }
    for name, change in changes.items():

        def run(change: dict[str, Any] = change) -> float:
            spent = with_noise(epsilon, study.delta, change.get("noise", 1.0))
            return round(study.sgd(spent, settings, 9, **change)[share], 5)

        results.get("why", f"{epsilon:g}, {name}", run)


def few_moments(epsilon: float, delta: float) -> float:
    """How many times the noise an accountant with moments 1 … 32 asks for; inf: no noise is enough.

    Full batches: the λ-th log-moment of T steps is Tλ(λ + 1)/2σ², and ε = (moment + log 1/δ)/λ. The
    exact curve asks for σ² = T/2ρ.
    """
    left = [(order, epsilon - math.log(1 / delta) / order) for order in range(1, ORDERS + 1)]
    found = [(order + 1) / (2 * rest) for order, rest in left if rest > 0]
    return math.sqrt(min(found, default=math.inf) * 2 * curve(epsilon, delta))


def with_noise(epsilon: float, delta: float, ratio: float) -> float:
    """The ε at which the exact curve asks for `ratio` times the noise of ε."""
    if ratio == 1:
        return epsilon
    target, low, high = curve(epsilon, delta) / ratio**2, 2e-3, epsilon
    for _ in range(60):
        middle = (low + high) / 2
        enough = curve(middle, delta) < target
        low, high = (middle, high) if enough else (low, middle)
    return high


def curve(epsilon: float, delta: float) -> float:
    """ρ of the Gaussian noise that (ε, δ) takes."""
    budget = pf.ApproxDP(epsilon, delta)
    return float(gaussian_rho_for(budget.exact_epsilon, budget.exact_delta))


# -- drawing ---------------------------------------------------------------------------------------


def draw(results: Results, folder: Path, rows: int) -> str:
    """figure3b.png, and the table beside it."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    known = results.known
    best = known["non-private"]["tied"]
    shown, axis = plt.subplots(figsize=(7.4, 4.4), layout="constrained")
    counted = {len(runs) for name in STYLES for runs in known["fits"].get(name, {}).values()}
    fits = " to ".join(map(str, sorted({min(counted), max(counted)})))
    places: dict[str, tuple[float, str]] = {}
    for name, (colour, marker, dash) in STYLES.items():
        cells = known["fits"].get(name, {})
        if not cells:
            continue
        epsilons = sorted(map(float, cells))
        lost = [[best - score for score, _ in cells[f"{e:g}"]] for e in epsilons]
        means = [np.mean(each) for each in lost]
        axis.plot(epsilons, means, color=colour, marker=marker, ls=dash, ms=5)
        low, high = [min(each) for each in lost], [max(each) for each in lost]
        axis.fill_between(epsilons, low, high, color=colour, alpha=0.2, lw=0)
        places[name] = (float(means[-1]), colour)
    axis.set(xscale="log", yscale="log", xlabel="ε (one session added or removed)")
    axis.set_ylabel("held-out log-likelihood of a segment lost\nagainst no privacy (nats)")
    axis.spines[["top", "right"]].set_visible(False)
    axis.set_title(
        f"{rows:,} sessions to learn from, |X| = 18 (17 pages and null), segments of {LENGTH};\n"
        f"without privacy {best:.3f} nats; band: {fits} fits; PSGD and “auto, Gaussian”: δ = 1/N",
        fontsize=9,
        loc="left",
    )
    name_lines(axis, places, max(map(float, known["fits"]["auto"])))
    folder.mkdir(parents=True, exist_ok=True)
    shown.savefig(folder / "figure3b.png", dpi=150)
    return table(known, best)


def table(known: dict[str, Any], best: float) -> str:
    """Means and standard deviations."""
    names = [name for name in STYLES if name in known["fits"]]
    lines = ["| ε | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    for epsilon in EPSILONS:
        cells = []
        for name in names:
            runs = [score for score, _ in known["fits"][name].get(f"{epsilon:g}", [])]
            cells.append(f"{np.mean(runs):.4f} ± {np.std(runs):.4f}" if runs else "–")
        lines.append(f"| {epsilon:g} | " + " | ".join(cells) + " |")
    times = [
        np.median([took for runs in known["fits"][name].values() for _, took in runs])
        for name in names
    ]
    lines.append("| CPU-s of a fit | " + " | ".join(f"{took:.2f}" for took in times) + " |")
    return f"Without privacy {best:.4f}.\n\n" + "\n".join(lines)


def main() -> None:
    """Run what is asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=("fits", "tune", "psgd", "why", "draw", "all"))
    parser.add_argument("--data", type=Path, default=MSNBC)
    parser.add_argument("--out", type=Path, help="where results go (docs; few sessions: new)")
    parser.add_argument("--runs", type=int, default=RUNS, help="of each method and ε (10)")
    parser.add_argument("--sessions", type=int, default=SESSIONS)
    chosen = parser.parse_args()
    chosen.out = folder_for(parser, chosen.out, FOLDER, chosen.sessions != SESSIONS)
    results = Results(chosen.out / "figure3b.json")
    study = Study(needed(parser, chosen.data), chosen.sessions)
    if chosen.what in ("fits", "all"):
        fits(study, results, chosen.runs)
    if chosen.what in ("tune", "all"):
        tune(study, results)
    if chosen.what in ("psgd", "all"):
        psgd(study, results, chosen.runs)
    if chosen.what in ("why", "all"):
        why(study, results)
    if chosen.what in ("draw", "all"):
        learned = chosen.sessions - chosen.sessions // 4
        print(draw(results, chosen.out, learned))


if __name__ == "__main__":
    main()
