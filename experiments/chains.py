"""Chains of people who move: the study of Bernstein et al. (2017, Figure 3b) on public sequences.

    python experiments/chains.py figure     # docs/figures/chains.png and the table beside it
    python experiments/chains.py compare    # which estimate is best, on chains that are known
    python experiments/chains.py limit      # how many transitions a person should count

The wifi data of the paper were never published. `figure` and `limit` use the MSNBC page-category
sequences of the UCI archive instead (989,818 sessions, 17 states; a session is a person here); give
the path of the zip, or put it at ../shared/data/msnbc990928.zip. Every fourth session is kept back.
Noise is drawn afresh in every run.
"""

from __future__ import annotations

import argparse
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import privfield as pf
from privfield.estimation.chains import METHODS
from privfield.learners.chain import ChainLearner
from privfield.privacy.noise import NoiseLaw

ROOT = Path(__file__).resolve().parents[1]
MSNBC = ROOT.parent / "shared" / "data" / "msnbc990928.zip"
FIGURES = ROOT / "docs" / "figures"
EPSILONS = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
LIMITS = (1, 2, 4, 8, 16, 32)
COLOURS = {"auto": "#0072B2", "naive": "#E69F00", "cgm": "#009E73"}


def read_msnbc(path: Path) -> tuple[list[str], Any]:
    """The states' names, and every session as a list of their positions."""
    with zipfile.ZipFile(path) as archive:
        text = np.frombuffer(archive.read("msnbc990928.seq"), np.uint8)
    head = text[:1000].tobytes()
    names = head.split(b"\n")[2].decode().split()
    body = text[head.index(b"% Sequences:") :]
    digit = (body >= ord("0")) & (body <= ord("9"))
    at = np.flatnonzero(digit[1:] & ~digit[:-1]) + 1
    values = body[at] - ord("0")
    two = digit[at + 1]
    values[two] = 10 * values[two] + body[at[two] + 1] - ord("0")
    breaks = np.append(np.flatnonzero(body == ord("\n")), len(body))
    ends = np.unique(np.searchsorted(at, breaks))  # 0 first; blank lines are no sessions
    return names, pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array(values - 1))


def split(sessions: Any) -> tuple[Any, Any]:
    """Three quarters to learn from and every fourth session to test on: by place, not by value."""
    place = np.arange(len(sessions))
    return sessions.take(pa.array(place[place % 4 != 3])), sessions.take(
        pa.array(place[place % 4 == 3])
    )


# -- figure 3b -------------------------------------------------------------------------------------


def figure(path: Path, trials: int) -> None:
    """Holdout log-likelihood against ε."""
    begin = time.perf_counter()
    names, sessions = read_msnbc(path)
    train, test = split(sessions)
    read = time.perf_counter()
    limited = ChainLearner(pf.NON_PRIVATE, states=names).fit(train)
    counted = time.perf_counter()
    best = ChainLearner(pf.NON_PRIVATE, states=names, limit=65_536).fit(train)
    tops = [each.evaluate(test).mean for each in (limited, best)]
    lines = [
        f"{len(sessions):,} sessions, {len(train):,} to learn from; read in {read - begin:.1f} s, "
        f"a chain fitted without privacy in {counted - read:.1f} s.",
        "Holdout log-likelihood per session in nats: mean and standard deviation over "
        f"{trials} fits (replace-one, limit {limited.limit}).",
        "",
    ]
    lines.append("| ε | " + " | ".join(COLOURS) + " | limited, no noise | without privacy |")
    lines.append("|---|" + "---|" * (len(COLOURS) + 2))
    found: dict[str, list[Any]] = {method: [] for method in COLOURS}
    for epsilon in EPSILONS:
        cells = []
        for method in COLOURS:
            scores = []
            for _ in range(trials):
                learner = ChainLearner(pf.PureDP(epsilon), states=names, method=method).fit(train)
                scores.append(learner.evaluate(test).mean)
            found[method].append(scores)
            cells.append(f"{np.mean(scores):.4f} ± {np.std(scores):.4f}")
        lines.append(
            f"| {epsilon:g} | " + " | ".join(cells) + f" | {tops[0]:.4f} | {tops[1]:.4f} |"
        )
        print(lines[-1], flush=True)
    print("\n".join(lines))
    draw(found, tops, len(train))
    (FIGURES / "chains.md").write_text(
        "\n".join(["# Holdout log-likelihood: `python experiments/chains.py figure`", "", *lines])
        + "\n"
    )


def draw(found: dict[str, list[Any]], tops: list[float], people: int) -> None:
    """Write docs/figures/chains.png."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    shown, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    left.axhline(tops[1], color="#555555", lw=1.2, ls="--", label="without privacy")
    right.axhline(tops[1] - tops[0], color="#555555", lw=1.2, ls=":", label="limit 4, no noise")
    for (method, scores), marker in zip(found.items(), "osd", strict=True):
        values, colour = np.array(scores), COLOURS[method]
        for axes, shift in ((left, values), (right, tops[1] - values)):
            axes.plot(EPSILONS, shift.mean(1), color=colour, marker=marker, label=method)
            axes.fill_between(EPSILONS, shift.min(1), shift.max(1), color=colour, alpha=0.2, lw=0)
    left.set_ylabel("holdout log-likelihood per session (nats)")
    right.set_ylabel("lost against no privacy (nats)")
    right.set_yscale("log")
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_xlabel("ε (replace-one, a session is a person)")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=9)
    shown.suptitle(
        f"MSNBC page categories, 17 states, {people:,} sessions to learn from; band: all fits",
        fontsize=10,
    )
    shown.savefig(FIGURES / "chains.png", dpi=150)


# -- the default limit -----------------------------------------------------------------------------


def limit(path: Path, trials: int) -> None:
    """Holdout log-likelihood against the limit, for many people and for few."""
    names, sessions = read_msnbc(path)
    train, test = split(sessions)
    few = train.slice(0, 20_000)
    print("Holdout log-likelihood per session (nats), auto, by limit")
    print("| people | ε | " + " | ".join(map(str, LIMITS)) + " |\n|---|---|" + "---|" * len(LIMITS))
    for people in (few, train):
        for epsilon in (0.01, 0.1, 1.0, None):
            cells = []
            for most in LIMITS:
                budget = pf.NON_PRIVATE if epsilon is None else pf.PureDP(epsilon)
                scores = [
                    ChainLearner(budget, states=names, limit=most).fit(people).evaluate(test).mean
                    for _ in range(1 if epsilon is None else trials)
                ]
                cells.append(f"{np.mean(scores):.4f}")
            print(f"| {len(people):,} | {epsilon} | " + " | ".join(cells) + " |", flush=True)


# -- which estimate --------------------------------------------------------------------------------

KINDS = ("dense", "sparse", "sticky", "mixed", "independent", "ring")


def made_up(kind: str, states: int, rng: np.random.Generator) -> Any:
    """A transition matrix: even, uneven, lingering, lingering and uneven, without memory, local."""
    eye = np.eye(states)
    if kind == "dense":
        found = rng.dirichlet(np.ones(states), states)
    elif kind == "sparse":
        found = rng.dirichlet(np.full(states, 0.1), states) + 1e-4
    elif kind == "sticky":
        found = 0.7 * eye + 0.3 * rng.dirichlet(np.full(states, 0.5))
    elif kind == "mixed":
        stay = rng.beta(2, 2, states)[:, None]
        found = stay * eye + rng.dirichlet(np.full(states, 0.3), states)
    elif kind == "independent":
        found = np.tile(rng.dirichlet(np.full(states, 0.5)), (states, 1))
    else:
        found = 0.5 * eye + 0.3 * np.roll(eye, 1, axis=1) + 0.2 * np.roll(eye, -1, axis=1)
        found = 0.98 * found + 0.02 / states
    return found / found.sum(axis=1, keepdims=True)


def shrunk(values: Any, law: NoiseLaw) -> Any:
    """A rival: each row shrunk toward independence as James and Stein do."""
    from privfield.solvers.projections import onto_simplex

    size, total = len(values), max(values.sum(), 1.0)
    after = onto_simplex(values.sum(axis=0), total) / total
    rows = []
    for row, visits in zip(values, onto_simplex(values.sum(axis=1), total), strict=True):
        apart = row - visits * after
        keep = max(0.0, 1 - size * law.deviation**2 / max(apart @ apart, 1e-12))
        rows.append(onto_simplex(visits * after + keep * apart, max(visits, 1e-9)) + 0.5)
    return np.array(rows)


def compare(trials: int) -> None:
    """KL of each row from the truth, weighted by how often its state is visited."""
    rng = np.random.default_rng()
    methods = {**METHODS, "James-Stein": shrunk}
    names = list(methods)
    print(
        "| chain | states | people | ε | " + " | ".join(names) + " |\n|" + "---|" * (4 + len(names))
    )
    table = []
    for kind in KINDS:
        for states in (5, 17, 50):
            for people in (1_000, 10_000, 100_000):
                for epsilon in (0.1, 1.0, 10.0):
                    runs = [one(kind, states, people, epsilon, methods, rng) for _ in range(trials)]
                    found = np.mean(runs, axis=0)
                    table.append((kind, *found))
                    cells = " | ".join(f"{value:.3g}" for value in found)
                    print(f"| {kind} | {states} | {people:,} | {epsilon:g} | {cells} |", flush=True)
    values = np.array([row[1:] for row in table])
    ratio = values / values.min(axis=1, keepdims=True)
    print("\nKL relative to the best of these methods in each cell: geometric mean (worst)")
    print("| chain | " + " | ".join(names) + " |\n|" + "---|" * (1 + len(names)))
    for kind in (*KINDS, "all"):
        chosen = ratio[[kind in ("all", row[0]) for row in table]]
        means, worst = np.exp(np.log(chosen).mean(axis=0)), chosen.max(axis=0)
        cells = " | ".join(f"{a:.2f} ({b:.1f})" for a, b in zip(means, worst, strict=True))
        print(f"| {kind} | {cells} |")


def one(
    kind: str, states: int, people: int, epsilon: float, methods: Any, rng: np.random.Generator
) -> list[float]:
    """Four transitions a person, limit 4, replace-one: the noise that `design` would choose."""
    from fractions import Fraction

    from privfield.mechanisms.chains.mechanism import design
    from privfield.privacy.adjacency import Adjacency

    truth = made_up(kind, states, rng)
    visits = np.full(states, 1 / states)
    for _ in range(2_000):
        visits = visits @ truth
    joint = visits[:, None] * truth
    counts = rng.multinomial(4 * people, joint.ravel() / joint.sum()).reshape(truth.shape)
    weights, law, _ = design(
        pf.PureDP(epsilon), Adjacency.REPLACE_ONE, Fraction(4), states, "laplace"
    )
    law = NoiseLaw("laplace", law.scale / weights.whole)
    noisy = counts + rng.laplace(0, law.scale, truth.shape)
    found = []
    for solve in methods.values():
        guess = solve(noisy, law)
        guess = guess / guess.sum(axis=1, keepdims=True)
        seen = joint > 0
        found.append(float((joint[seen] * np.log(truth[seen] / guess[seen])).sum()))
    return found


def main() -> None:
    """Read the command line and run one study."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=("figure", "limit", "compare"))
    parser.add_argument("path", nargs="?", type=Path, default=MSNBC)
    parser.add_argument("--trials", type=int, default=10)
    chosen = parser.parse_args()
    if chosen.what == "compare":
        compare(chosen.trials)
    else:
        {"figure": figure, "limit": limit}[chosen.what](chosen.path, chosen.trials)


if __name__ == "__main__":
    main()
