"""How often do 95% intervals of `pf.bootstrap` hold the truth? Prints a Markdown table.

    python experiments/interval_coverage.py --studies 200 --replicates 60

Each study draws a true model, a population from it, private tables, and intervals for marginals,
conditional probabilities and log odds ratios. Every study is new: model, people and noise.
"""

import argparse
import sys
import time

import numpy as np

import privfield as pf
from privfield.estimation.uncertainty.bootstrap import _log_odds_ratio, probability_from

SETTINGS = {  # levels, strength of the interactions, rows, budget
    "8 binary, n=2,000, ε=1": ([2] * 8, 0.5, 2_000, pf.PureDP(1)),
    "8 binary, n=2,000, ρ=0.05": ([2] * 8, 0.5, 2_000, pf.ZCDP(0.05)),
    "8 binary, n=2,000, ε=0.1 (noise dominates)": ([2] * 8, 0.5, 2_000, pf.PureDP(0.1)),
    "8 binary, strong, n=5,000, ε=0.05 (noise dominates)": ([2] * 8, 1.0, 5_000, pf.PureDP(0.05)),
    "6 mixed, n=5,000, ε=1": ([3, 2, 4, 3, 2, 3], 0.6, 5_000, pf.PureDP(1)),
    "6 mixed, n=5,000, ρ=0.05": ([3, 2, 4, 3, 2, 3], 0.6, 5_000, pf.ZCDP(0.05)),
    "6 mixed, n=100,000, ε=1": ([3, 2, 4, 3, 2, 3], 0.6, 100_000, pf.PureDP(1)),
}
QUESTIONS = ("marginal", "pair table", "conditional", "log odds, edge", "log odds, no edge")


def study(levels, strength, rows, budget, replicates, seed):
    """Which intervals of one study held the truth: one share per question."""
    rng = np.random.default_rng([20170701, seed])
    schema = pf.Schema({f"v{i}": n for i, n in enumerate(levels)})
    names = schema.names
    cliques = [(a, b) for i, a in enumerate(names) for b in names[i + 1 : i + 3]]
    tables = [strength * rng.standard_normal([len(schema[v].levels) for v in c]) for c in cliques]
    truth = pf.MarkovRandomField(schema, cliques, tables)
    people = truth.sample(rows, rng=rng, method="independent")
    released = pf.measure(people, schema, cliques, budget, design="auto", insecure_seed=seed)
    boot = pf.bootstrap(released, replicates=replicates, rng=rng)
    event, given = {names[0]: "1"}, {names[1]: "0"}
    asked = [
        (boot.marginal([names[2]]), truth.marginal([names[2]])),
        (boot.marginal([names[1], names[2]]), truth.marginal([names[1], names[2]])),
        (boot.probability(event, given), probability_from(truth, event, given)),
        (boot.log_odds_ratio(names[0], names[1]), _log_odds_ratio(truth, names[0], names[1])),
        (boot.log_odds_ratio(names[0], names[4]), _log_odds_ratio(truth, names[0], names[4])),
    ]
    return [np.mean((found.low <= true) & (true <= found.high)) for found, true in asked]


def main():
    """Print the table; progress goes to stderr."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--replicates", type=int, default=100)
    options = parser.parse_args()
    print("| setting | " + " | ".join(QUESTIONS) + " | all | lowest of all studies |")
    print("|---" * (len(QUESTIONS) + 3) + "|")
    for name, setting in SETTINGS.items():
        start, found = time.monotonic(), []
        for seed in range(options.studies):
            found.append(study(*setting, options.replicates, seed))
            left = (time.monotonic() - start) / len(found) * (options.studies - len(found))
            print(
                f"\r{name}: {len(found)}/{options.studies}, {left:.0f} s left ",
                end="",
                file=sys.stderr,
            )
        shares = np.array(found)
        cells = " | ".join(f"{share:.3f}" for share in shares.mean(axis=0))
        print(
            f"| {name} | {cells} | {shares.mean():.3f} | {shares.mean(axis=1).min():.2f} |",
            flush=True,
        )
    print(
        f"\n{options.studies} studies per row, {options.replicates} replicates each; nominal 0.95. "
        "A share has a standard error of at most "
        f"{np.sqrt(0.05 * 0.95 / options.studies):.3f}."
    )


if __name__ == "__main__":
    main()
