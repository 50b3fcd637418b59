"""How many rows do pairwise and t-wise learners need? Prints two Markdown tables.

    python experiments/recovery.py

Polynomial: 10 variables, three maximal monomials of order 3 and one of order 2 with coefficient
±0.4; recovered when exactly those have an estimate of 0.2 or more among orders 2 and 3. Pairwise:
a cycle of 6 variables with k levels; the largest error of a centred pair potential.
"""

import argparse
import time

import numpy as np

import privfield as pf

MONOMIALS = {(0, 1, 2): 0.4, (3, 4, 5): -0.4, (6, 7, 8): 0.4, (8, 9): 0.4}


def polynomial(rows, budget, seed):
    truth = pf.PolynomialMRF(MONOMIALS, size=10)
    data = truth.sample(rows, rng=np.random.default_rng([rows, seed]), method="independent")
    learner = pf.PolynomialLearner(budget, order=3, width=1.5, objective="l1").fit(data)
    found = learner.model_.coefficients
    kept = {m for m, c in found.items() if len(m) > 1 and abs(c) >= 0.2}
    error = max(abs(found.get(m, 0.0) - MONOMIALS.get(m, 0.0)) for m in {*found, *MONOMIALS})
    return kept == set(MONOMIALS), error


def pairwise(levels, rows, budget, method, seed):
    rng = np.random.default_rng([levels, rows, seed])
    schema = pf.Schema({f"v{i}": levels for i in range(6)})
    edges = [(f"v{i}", f"v{(i + 1) % 6}") for i in range(6)]
    tables = [0.5 * rng.choice([-1, 1]) * (np.eye(levels) - 1 / levels) for _ in edges]
    truth = pf.MarkovRandomField(schema, edges, tables).centred()
    data = truth.sample(rows, rng=rng, method="independent")
    learner = pf.PairwiseLearner(budget, width=1.5, schema=schema, method=method).fit(data)
    ours = _pairs(learner.model_.centred())
    theirs = _pairs(truth)
    zero = np.zeros((levels, levels))
    both = {*ours, *theirs}
    return max(np.abs(ours.get(e, zero) - theirs.get(e, zero)).max() for e in both)


def _pairs(model):
    found = {}
    for clique, table in zip(model.cliques, model.log_potentials, strict=True):
        if len(clique) == 2:
            key = tuple(sorted(clique))
            found[key] = table if key == clique else table.T
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=4)
    repeats = range(parser.parse_args().repeats)
    start = time.monotonic()
    print("| n | ρ | all maximal monomials, none false | mean of the largest error |")
    print("|---:|---:|---:|---:|")
    for rows in (1_000, 3_000, 10_000, 30_000, 100_000):
        for rho in (0.1, 1.0):
            found = [polynomial(rows, pf.ZCDP(rho), seed) for seed in repeats]
            hits, errors = zip(*found, strict=True)
            print(
                f"| {rows:,} | {rho:g} | {sum(hits)} of {len(hits)} | {np.mean(errors):.3f} |",
                flush=True,
            )
    print("\n| k | n | ρ | Frank–Wolfe: mean of the largest error | noisy tables |")
    print("|---:|---:|---:|---:|---:|")
    for levels in (3, 4):
        for rows in (3_000, 30_000, 300_000):
            cells = []
            for method in ("frank-wolfe", "tables"):
                errors = [pairwise(levels, rows, pf.ZCDP(0.5), method, seed) for seed in repeats]
                cells.append(f"{np.mean(errors):.3f}")
            print(f"| {levels} | {rows:,} | 0.5 | " + " | ".join(cells) + " |", flush=True)
    print(f"\n{len(repeats)} repetitions each; {time.monotonic() - start:.0f} s.")


if __name__ == "__main__":
    main()
