"""The runs behind the PrIsing figures: computed once, kept as small files, gone on with.

A study is a list of cells (network, β, ε). A cell has one line in `<study>.jsonl`: for each method
its mean, standard deviation, mean squared error and the standard error of that, over the real line
and clipped to [0, bound], and the cost of privacy (mean squared distance to the same method without
noise). Cells that are there with as many runs are not run again.
"""

import json
import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
from setting import (
    Lab,
    bench,
    random_network,
    read_network,
    regular_network,
    stand_in,
    stand_in_outcomes,
    studies,
)

from privfield.data.network.outcomes import open_outcomes
from privfield.mechanisms.peers.as_printed import printed_constants, printed_draws

SEED = 1
BATCHES = 100  # of runs, for the cost of privacy: the paper's error bars are over these
HATS = {"made up": 1.8, "blogs": 2.85}
AROUND = (-0.5, -0.25, 0.0, 0.25, 0.5)


@dataclass(frozen=True)
class Plan:
    """The settings of all studies: the paper's, or small ones to try the programs."""

    runs: int = 500
    nodes: int = 2000
    sizes: tuple = (100, 500, 1000, 1500, 2000, 2500, 3000, 3500, 4000)
    powers: tuple = tuple(round(0.1 * k, 1) for k in range(1, 10))
    regular: tuple = (250, 500, 1000)
    betas: tuple = tuple(np.round(np.arange(0, 2.01, 0.1), 1).tolist())
    wide: tuple = tuple(np.round(np.arange(0, 3.21, 0.2), 1).tolist())
    pair: tuple = (0.5, 1.5)
    three: tuple = (5.0, 7.5, 10.0)
    eleven: tuple = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 10.0, 25.0, 100.0)
    six: tuple = (5.0, 7.5, 10.0, 20.0, 50.0, 100.0)
    seven: tuple = (5.0, 7.5, 10.0, 20.0, 50.0, 75.0, 100.0)
    people: int = 403
    blogs: bool = field(default_factory=bench.BLOGS.exists)
    out: Path = Path()
    cache: Path | None = None

    @classmethod
    def small(cls, out):
        """Minutes become a second or two."""
        few = (0.5, 1.5)
        return cls(
            runs=10,
            nodes=60,
            sizes=(30, 60),
            powers=(0.3, 0.6),
            regular=(36, 64),
            betas=few,
            wide=few,
            three=(5.0,),
            eleven=(1.0, 5.0),
            six=(5.0, 20.0),
            seven=(5.0, 20.0),
            people=40,
            blogs=False,
            out=out,
        )


def cells(plan, study):
    """(lab, name of its network, β, the ε) of one study."""

    @cache
    def random(nodes, power):
        return Lab(random_network(nodes, power, 0), 3.0, plan.cache)

    third = 1 / 3
    if study == "beta":
        for beta in plan.betas:
            yield lambda: random(plan.nodes, third), "ER", beta, (5.0,)
    if study == "size":
        for n in plan.sizes:
            for beta in plan.pair:
                yield lambda n=n: random(n, third), f"n = {n}", beta, plan.three
    if study == "density":
        for power in plan.powers:
            for beta in plan.pair:
                name = f"α = {power}"
                yield lambda a=power: random(plan.nodes, a), name, beta, plan.three
    if study == "regular":
        for n in plan.regular:
            lab = cache(lambda n=n: Lab(regular_network(n, 1), 3.0, plan.cache))
            for beta in plan.pair:
                yield lab, f"n = {n}", beta, (5.0,)
    if study == "epsilon":
        for beta in plan.pair:
            yield lambda: random(plan.nodes, third), "ER", beta, plan.eleven
    if study in ("synthetic", "epsilon", "around"):
        for name, lab in real(plan).items():
            around = tuple(round(HATS[name] + step, 2) for step in AROUND)
            betas = plan.betas if name == "made up" else plan.wide
            betas = {"synthetic": betas, "epsilon": plan.pair, "around": around}[study]
            epsilons = {"synthetic": (5.0,), "epsilon": plan.eleven, "around": plan.six}[study]
            for beta in betas:
                yield lab, name, beta, epsilons


def real(plan):
    """The two networks of the paper's section 4.2; one of them made up."""
    found = {"made up": lambda: read_network(stand_in(plan.people))}
    if plan.blogs:
        found["blogs"] = lambda: read_network(bench.blogs()[0])
    return {name: cache(lambda m=make: Lab(m(), 5.0, plan.cache)) for name, make in found.items()}


def compute(plan, study):
    """Run what is missing; the lines of the study."""
    path = plan.out / f"{study}.jsonl"
    whole = [line for line in read(path, plan) if "ours" in line["methods"]]
    done = {(line["network"], line["beta"], line["epsilon"]): line for line in whole}
    for make, name, beta, epsilons in cells(plan, study):
        missing = [e for e in epsilons if (name, beta, e) not in done]
        if not missing:
            continue
        lab = make()
        states = studies(lab.network, beta, plan.runs, SEED)
        mple = lab.mple(states)
        plain = lab.plain(states)
        for epsilon in missing:
            rng = np.random.default_rng([SEED, round(1000 * beta), round(1000 * epsilon)])
            gaussian = lab.printed(states, epsilon, 1 / lab.network.nodes, rng)
            laplace = lab.printed(states, epsilon, 0.0, rng)
            methods = {
                "mple": about(mple, beta, lab.bound),
                "gaussian": about(gaussian, beta, lab.bound, mple),
                "laplace": about(laplace, beta, lab.bound, mple),
                "ours": about(lab.ours(states, epsilon, rng), beta, lab.bound, plain),
            }
            line = {"network": name, "beta": beta, "epsilon": epsilon, "runs": plan.runs}
            line |= {"seed": SEED, "bound": lab.bound, "methods": methods}
            done[name, beta, epsilon] = line
            with path.open("a") as file:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        print(f"{study}: {name}, β = {beta}", file=sys.stderr, flush=True)
    return list(done.values())


def read(path, plan):
    """What was run before, with as many runs."""
    if not path.exists():
        return []
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [line for line in lines if line["runs"] == plan.runs]


def about(found, beta, bound, base=None):
    """Numbers of one method in one cell, to four digits."""

    def row(values):
        squares = (values - beta) ** 2
        numbers = values.mean(), values.std(ddof=1), squares.mean()
        error = squares.std(ddof=1) / len(squares) ** 0.5
        return [float(f"{number:.4g}") for number in (*numbers, error)]

    result = {"line": row(found), "clipped": row(np.clip(found, 0.0, bound))}
    if base is not None:
        result["cost"] = float(f"{((found - base) ** 2).mean():.4g}")
    return result


def compute_cost(plan):
    """Figures 8 and 11: E(β̂priv − β̂)² on one set of outcomes, 100 batches of the runs."""
    path = plan.out / "cost.jsonl"
    done = {line["network"]: line for line in read(path, plan)}
    for name, make in real(plan).items():
        if name in done:
            continue
        lab = make()
        signs = outcomes_of(plan, name, lab.network)
        mple, plain = float(lab.mple(signs)[0]), float(lab.plain(signs[None])[0])
        rng = np.random.default_rng(SEED)
        line = {"network": name, "runs": plan.runs, "batches": BATCHES, "seed": SEED}
        line |= {"mple": mple, "plain": plain, "epsilons": plan.seven, "methods": {}}
        for kind in ("gaussian", "laplace", "ours"):
            rows = []
            for epsilon in plan.seven:
                draws = plan.runs * BATCHES
                if kind == "ours":
                    squares = (lab.ours(signs[None], epsilon, rng, draws) - plain) ** 2
                else:
                    delta = 1 / lab.network.nodes if kind == "gaussian" else 0.0
                    constants = printed_constants(lab.network.couplings, epsilon, delta)
                    found = printed_draws(lab.network.couplings, signs, constants, draws, rng)
                    squares = (found - mple) ** 2
                batches = squares.reshape(BATCHES, plan.runs).mean(axis=1)
                rows.append([float(f"{v:.4g}") for v in (batches.mean(), batches.std(ddof=1))])
            line["methods"][kind] = rows
        done[name] = line
        with path.open("a") as file:
            file.write(json.dumps(line) + "\n")
    return list(done.values())


def outcomes_of(plan, name, network):
    """The real outcomes of the blogs; made-up ones elsewhere."""
    if name == "blogs":
        return open_outcomes(bench.blogs()[1], network.names)()
    return open_outcomes(stand_in_outcomes(stand_in(plan.people)), network.names)()


if __name__ == "__main__":  # only the runs, in the order of what they take
    here = Path(__file__).resolve().parents[2] / "docs" / "figures" / "prising"
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    every = Plan(out=here, cache=folder)
    compute_cost(every)
    for each in ("synthetic", "around", "epsilon", "beta", "size", "regular", "density"):
        compute(every, each)
