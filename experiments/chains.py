"""Chains of people who move: the study of Bernstein et al. (2017, Figure 3b) on public sequences.

    python experiments/chains.py figure     # docs/figures/chains.png and the table beside it
    python experiments/chains.py compare    # which estimate is best, on chains that are known
    python experiments/chains.py limit      # how many transitions a person should count

The wifi data of the paper were never published. `figure` and `limit` use the MSNBC page-category
sequences of the UCI archive instead (989,818 sessions, 17 states; a session is a person here); give
the path of the zip, or put it at ../shared/data/msnbc990928.zip. Every fourth session is kept back.
Noise is drawn afresh in every run. What `figure` computed is kept in chains.json, beside the
figure, and not computed again; `--sessions 300` tries it out.
"""

from __future__ import annotations

import argparse
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from small_runs import folder_for, needed

import privfield as pf
from privfield.data.sequences.read import SequenceSource, StateSet
from privfield.estimation.chains import METHODS
from privfield.files import write_whole
from privfield.learners.chain import ChainLearner
from privfield.privacy.noise import NoiseLaw

ROOT = Path(__file__).resolve().parents[1]
MSNBC = ROOT.parent / "shared" / "data" / "msnbc990928.zip"
FIGURES = ROOT / "docs" / "figures"
EPSILONS = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
LIMITS = (1, 2, 4, 8, 16, 32)
COLOURS = {"auto": ("#56B4E9", "^"), "cgm": ("#004488", "s"), "naive": ("#DDAA33", "d")}
ABOUT = {
    "command": "python experiments/chains.py figure",
    "runs": "by ε: [auto, cgm, naive] of each release, held-out log-likelihood of a session, nats",
    "seeds": "noise is drawn afresh",
    "tops": "without noise: limit 4, and no limit",
}


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


def figure(path: Path, trials: int, most: int | None, folder: Path) -> None:
    """Holdout log-likelihood against ε: one release for all methods, kept in chains.json."""
    names, sessions = read_msnbc(path)
    sessions = sessions.slice(0, most)
    states = StateSet.of(names)
    train, test = (SequenceSource(states, part).read() for part in split(sessions))
    stored = folder / "chains.json"
    known = json.loads(stored.read_text()) if stored.exists() else {"about": ABOUT}
    if "tops" not in known:
        found = [ChainLearner(pf.NON_PRIVATE, states=names, limit=limit) for limit in (4, 65_536)]
        known["tops"] = [each.fit(train).evaluate(test).mean for each in found]
    runs = known.setdefault("runs", {})
    for epsilon in EPSILONS:
        own = runs.setdefault(f"{epsilon:g}", [])
        while len(own) < trials:
            learner = ChainLearner(pf.PureDP(epsilon), states=names).fit(train)
            row = []
            for method in COLOURS:
                learner.model_ = pf.estimate(learner.measurements_, method)
                row.append(round(learner.evaluate(test).mean, 5))
            own.append(row)
            print(epsilon, row, flush=True)
            with write_whole(stored) as file:
                file.write((json.dumps(known, ensure_ascii=False, indent=1) + "\n").encode())
    draw(runs, known["tops"], len(train), folder)
    write_table(runs, known["tops"], len(sessions), len(train), folder)


def write_table(
    runs: dict[str, Any], tops: list[float], sessions: int, learned: int, folder: Path
) -> None:
    """Write chains.md."""
    number = min(map(len, runs.values()))
    lines = ["# How well chains predict: holdout log-likelihood", ""]
    lines += ["    python experiments/chains.py figure", ""]
    lines.append(
        f"{sessions:,} sessions, {learned:,} to learn from. Holdout log-likelihood per session in "
        f"nats: mean and standard deviation over {number} releases (replace-one, limit 4), each "
        "read by every method; raw numbers in chains.json."
    )
    columns = [*COLOURS, "cgm − naive", "limited, no noise", "without privacy"]
    lines += ["", "| ε | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    for epsilon, own in runs.items():
        values = np.array(own)
        names = list(COLOURS)
        ahead = values[:, names.index("cgm")] - values[:, names.index("naive")]
        cells = [f"{each.mean():.4f} ± {each.std():.4f}" for each in values.T]
        cells.append(f"{ahead.mean():.5f} ± {ahead.std():.5f}")
        cells += [f"{top:.4f}" for top in tops]
        lines.append(f"| {epsilon} | " + " | ".join(cells) + " |")
    print("\n".join(lines))
    (folder / "chains.md").write_text("\n".join(lines) + "\n")


def draw(runs: dict[str, Any], tops: list[float], people: int, folder: Path) -> None:
    """Write chains.png."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    shown, axis = plt.subplots(figsize=(7.4, 4.4), layout="constrained")
    epsilons = [float(epsilon) for epsilon in runs]
    lost = tops[1] - np.array(list(runs.values()))  # ε, run, method
    places = {}
    for index, (method, (colour, marker)) in enumerate(COLOURS.items()):
        values = lost[:, :, index]
        axis.plot(epsilons, values.mean(1), color=colour, marker=marker, ms=5)
        axis.fill_between(epsilons, values.min(1), values.max(1), color=colour, alpha=0.2, lw=0)
        places[method] = (float(values.mean(1)[0]), colour)
    axis.axhline(tops[1] - tops[0], color="#555555", lw=1.2, ls=":")
    axis.text(min(epsilons), 1.05 * (tops[1] - tops[0]), "limit 4, no noise", fontsize=9)
    axis.set(xscale="log", yscale="log", xlabel="ε (replace-one, a session is a person)")
    axis.set_ylabel("held-out log-likelihood of a session\nlost against no privacy (nats)")
    axis.spines[["top", "right"]].set_visible(False)
    axis.set_title(
        f"MSNBC page categories, |X| = 17, {people:,} sessions to learn from;\n"
        f"without privacy {tops[1]:.3f} nats; band: all releases",
        fontsize=9,
        loc="left",
    )
    name_lines(axis, places, min(epsilons), left=True)
    shown.savefig(folder / "chains.png", dpi=150)


def name_lines(
    axis: Any, places: dict[str, tuple[float, str]], end: float, left: bool = False
) -> None:
    """Names beside the ends of lines on logarithmic axes, at least a line apart."""
    low, high = np.log(axis.get_ylim())
    bottom, wide = -np.inf, max(axis.get_xlim()) / min(axis.get_xlim())
    for name, (value, colour) in sorted(places.items(), key=lambda each: each[1][0]):
        bottom = at = max(np.log(max(value, 1e-9)), bottom + 0.06 * (high - low))
        axis.annotate(
            name,
            (end, value),
            xytext=(end * wide ** (-0.06 if left else 0.06), np.exp(at)),
            color="#222222",
            fontsize=9,
            va="center",
            ha="right" if left else "left",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "lw": 0.8,
                "relpos": (1.0 if left else 0.0, 0.5),
                "shrinkA": 2,
                "shrinkB": 5,
            },
        )
    if left:
        axis.set_xlim(left=end * wide**-0.22)
    else:
        axis.set_xlim(right=end * wide**0.3)


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
    parser.add_argument("--sessions", type=int, help="of the figure (all)")
    parser.add_argument("--out", type=Path, help="where the figure goes (docs; few sessions: new)")
    chosen = parser.parse_args()
    chosen.out = folder_for(parser, chosen.out, FIGURES, chosen.sessions is not None)
    if chosen.what == "compare":
        compare(chosen.trials)
    elif chosen.what == "limit":
        limit(needed(parser, chosen.path), chosen.trials)
    else:
        figure(needed(parser, chosen.path), chosen.trials, chosen.sessions, chosen.out)


if __name__ == "__main__":
    main()
