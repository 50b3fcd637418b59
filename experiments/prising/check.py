"""Algorithm 1 as printed against the PrIsing authors' own result files.

    python experiments/prising/check.py [size density epsilon beta blogs stand-in] [--copies 4]
        [--large 60000] [--quick] [--out FOLDER]

Each copy of a setting is what the authors ran once: a new random graph (or the one network of the
blogs), 500 outcomes from 100 Glauber sweeps after a random start, their 500 draws of noise (they
begin each run with R's set.seed(2k), so all settings share them), and the root over the real line.
Networks of more edges than `--large` have one copy. Copies go to docs/figures/prising/check.jsonl,
one line each; what is there is not run again. With the authors' files in ../shared/data/prising,
how far they lie from the copies is printed, and every number that differs at 1%. `--quick` tries it
out: few runs on small networks.
"""

import argparse
import csv
import json
import math
import sys
from pathlib import Path

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student
from setting import (
    ROOT,
    SEARCHED,
    SWEEPS,
    authors_noise,
    bench,
    random_network,
    read_network,
    roots,
    stand_in,
    studies,
)
from small_runs import folder_for

from privfield.mechanisms.peers.as_printed import printed_constants, printed_runs

FOLDER, KEPT = ROOT / "docs" / "figures" / "prising", "check.jsonl"
THEIRS = ROOT.parent / "shared" / "data" / "prising"
RUNS, QUICK_RUNS = 500, 20
QUICK_NETWORKS = {"n = 100", "α = 0.9", "made up"}
SIZES = (100, 500, 1000, 1500, 2000, 2500, 3000, 3500, 4000)
POWERS = tuple(round(0.1 * k, 1) for k in range(1, 10))
THREE = (5.0, 7.5, 10.0)
ELEVEN = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 10.0, 25.0, 100.0)
SIX = (5.0, 7.5, 10.0, 20.0, 50.0, 100.0)
BLOGS_HAT, HIV_HAT = 2.8503, 1.8
WITH_LONELY = 1011  # blogs: the authors' programs count 196 that have no links left, in δ = 1/n too
AROUND = (-0.5, -0.25, 0.0, 0.25, 0.5)


def settings():
    """(study, name of the network, how to make copy k of it, the β, the ε)."""
    for n in SIZES:
        yield "size", f"n = {n}", lambda k, n=n: random_network(n, 1 / 3, k), (0.5, 1.5), THREE
    for a in POWERS:
        yield "density", f"α = {a}", lambda k, a=a: random_network(2000, a, k), (0.5, 1.5), THREE
    er = lambda k: random_network(2000, 1 / 3, k)  # noqa: E731
    yield "epsilon", "ER", er, (0.5, 1.5), ELEVEN
    yield "beta", "ER", er, tuple(np.round(np.arange(0.1, 2.01, 0.1), 1)), (5.0,)
    if bench.BLOGS.exists():
        blogs = read_network(bench.blogs()[0])
        yield "blogs", "blogs", lambda _: blogs, tuple(np.round(np.arange(0, 3.21, 0.2), 1)), (5.0,)
        yield "blogs-epsilon", "blogs", lambda _: blogs, (0.5, 1.5), ELEVEN
        around = tuple(round(BLOGS_HAT + step, 4) for step in AROUND)
        yield "blogs-around", "blogs", lambda _: blogs, around, SIX
    made_up = read_network(stand_in())
    yield (
        "stand-in",
        "made up",
        lambda _: made_up,
        tuple(np.round(np.arange(0, 2.01, 0.1), 1)),
        (5.0,),
    )
    yield "stand-in-epsilon", "made up", lambda _: made_up, (0.5, 1.5), ELEVEN
    around = tuple(round(HIV_HAT + step, 4) for step in AROUND)
    yield "stand-in-around", "made up", lambda _: made_up, around, SIX


def compute(chosen, copies, large, path, quick=False):
    """Fill the file."""
    runs = QUICK_RUNS if quick else RUNS
    noise = authors_noise(runs)
    done = {(line["study"], line["network"], line["copy"]) for line in kept(path)}
    for copy in range(copies):
        for study, name, make, betas, epsilons in settings():
            if study.split("-e")[0].split("-a")[0] not in chosen or (study, name, copy) in done:
                continue
            if quick and name not in QUICK_NETWORKS:
                continue
            network = make(copy)
            if copy and network.edges > large:
                continue
            cells = {}
            for beta in betas:
                states = studies(network, beta, runs, 100 + copy, sweeps=SWEEPS)
                mple = np.clip(roots(network.couplings, states), *SEARCHED)
                cells[f"{beta:g}"] = {"inf": about(mple, beta)}
                for epsilon in epsilons:
                    nodes = WITH_LONELY if name == "blogs" else network.nodes
                    constants = printed_constants(network.couplings, epsilon, 1 / nodes)
                    found = printed_runs(
                        network.couplings, states, constants, noise * constants.scale
                    )
                    cells[f"{beta:g}"][f"{epsilon:g}"] = about(found, beta)
            line = {"study": study, "network": name, "copy": copy, "runs": runs, "cells": cells}
            with path.open("a") as file:
                file.write(json.dumps(line) + "\n")
            print(f"copy {copy}: {study}, {name}", flush=True)


def about(found, beta):
    """[mean, standard deviation, mean squared error], to five digits."""
    values = found.mean(), found.std(ddof=1), ((found - beta) ** 2).mean()
    return [float(f"{value:.5g}") for value in values]


def kept(path=FOLDER / KEPT):
    """The lines of the file."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def theirs(folder=THEIRS):
    """((study, network, β, ε, which number), the authors' value) for each number in their files."""
    pairs = {"le1": "0.5", "ge1": "1.5"}
    ends = {"e1": "5", "e2": "7.5", "e3": "10"}
    for file, study, key in (("mse_by_size", "size", "N"), ("mse_by_density", "density", "alpha")):
        for row in read(folder / f"{file}.csv"):
            place = f"n = {row['N']}" if key == "N" else f"α = {float(row['alpha']):g}"
            for column, value in row.items():
                parts = column.split(".")
                if len(parts) > 1:
                    epsilon = ends[parts[2]] if parts[0] == "p" else "inf"
                    yield (study, place, pairs[parts[1]], epsilon, 2), float(value)
    for file, study, place in (
        ("er", "epsilon", "ER"),
        ("blogs", "blogs-epsilon", "blogs"),
        ("hiv", "stand-in-epsilon", "made up"),
    ):
        for row in read(folder / f"mse_by_epsilon_{file}.csv"):
            for column, beta in (("p.le1", "0.5"), ("p.ge1", "1.5")):
                yield (study, place, beta, f"{float(row['Epsilon']):g}", 2), float(row[column])
    studies_of = {"1": ("beta", "ER"), "7": ("stand-in", "made up"), "10": ("blogs", "blogs")}
    for row in read(folder / "estimates_by_beta.csv"):
        study, place = studies_of[row["figure"].split()[0]]
        epsilon = "5" if row["estimate"] == "private" else "inf"
        for number, column in enumerate(("mean", "sd")):
            beta = f"{float(row['beta']):g}"
            yield (study, place, beta, epsilon, number), float(row[column])
    for file, study, place, hat in (
        ("blogs", "blogs-around", "blogs", BLOGS_HAT),
        ("hiv", "stand-in-around", "made up", HIV_HAT),
    ):
        for row in read(folder / f"figure13_{file}.csv"):
            for number, step in enumerate(AROUND, 1):
                epsilon = row["epsilon"].lower()
                beta = f"{round(hat + step, 4):g}"
                yield (study, place, beta, epsilon, 2), float(row[f"beta{number}"])


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def compare(lines, folder=THEIRS):
    """(key, the authors' value, mean of the copies, the two-sided p-value) for each number.

    The authors' value and the copies are draws of one law if their program and ours do the same:
    the difference over √(1 + 1/copies) standard deviations of the copies then follows Student's t.
    Where there is one copy, the deviation is that of a normal sample of so many runs.
    """
    copies = {}
    for line in lines:
        for beta, row in line["cells"].items():
            for epsilon, values in row.items():
                errors = normal_errors(values, float(beta), line["runs"])
                for number, value in enumerate(values):
                    key = (line["study"], line["network"], beta, epsilon, number)
                    copies.setdefault(key, []).append((value, errors[number]))
    for key, value in theirs(folder):
        if key not in copies:
            continue
        mine, errors = np.array(copies[key]).T
        few = len(mine) < 3
        deviation = errors.mean() if few else mine.std(ddof=1)
        score = (value - mine.mean()) / (deviation * math.sqrt(1 + 1 / len(mine)))
        tail = norm.sf(abs(score)) if few else student.sf(abs(score), len(mine) - 1)
        yield key, value, float(mine.mean()), 2 * float(tail)


def normal_errors(values, beta, runs):
    """Standard errors of mean, deviation and mean squared error if estimates are normal."""
    mean, deviation, _ = values
    squares = 2 * deviation**4 + 4 * deviation**2 * (mean - beta) ** 2
    return deviation / runs**0.5, deviation / (2 * runs) ** 0.5, (squares / runs) ** 0.5


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = ["size", "density", "epsilon", "beta", "blogs", "stand-in"]
    parser.add_argument("studies", nargs="*", default=names)
    parser.add_argument("--copies", type=int, default=4)
    parser.add_argument("--large", type=int, default=60_000, help="edges of what is run once")
    parser.add_argument("--quick", action="store_true", help="small networks, to try it out")
    parser.add_argument("--out", type=Path, help="where copies are kept (docs; quick: new)")
    given = parser.parse_args()
    given.out = folder_for(parser, given.out, FOLDER, given.quick)
    copies, path = 1 if given.quick else given.copies, given.out / KEPT
    compute(given.studies, copies, given.large, path, given.quick)
    if not THEIRS.exists():
        print(f"Nothing to compare with, as {THEIRS} is not there.", file=sys.stderr)
    else:
        found = {}
        for key, value, mine, p in compare(kept(path)):
            found.setdefault(key[0], []).append((p, value, mine, key))
        print("| study | numbers | p < 0.05 | p < 0.01 | smallest p | theirs / ours, median |")
        print("|---|---:|---:|---:|---:|---:|")
        for study, rows in found.items():
            ps = np.array([row[0] for row in rows])
            ratios = [value / mine for _, value, mine, key in rows if key[4]]
            print(
                f"| {study} | {len(ps)} | {(ps < 0.05).mean():.1%} | {(ps < 0.01).mean():.1%} | "
                f"{ps.min():.2g} | {np.median(ratios):.3f} |"
            )
        far = sorted(row for rows in found.values() for row in rows if row[0] < 0.01)
        print("\n| study | network | β | ε | number | theirs | ours | p |")
        print("|---|---|---:|---:|---|---:|---:|---:|")
        for p, value, mine, (study, network, beta, epsilon, number) in far:
            name = ("mean", "deviation", "MSE")[number]
            place = f"| {study} | {network} | {beta} | {epsilon} | {name}"
            print(f"{place} | {value:.3g} | {mine:.3g} | {p:.2g} |")


if __name__ == "__main__":
    main()
