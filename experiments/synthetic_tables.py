"""How often do 95% intervals from synthetic tables hold the truth? Prints a Markdown table.

    python experiments/synthetic_tables.py --studies 200

A mean and a regression coefficient of yes/no variables (a ring of five, couplings ±0.4), from 20
tables with `pf.combine`, and from one table that is taken for real data.
"""

import argparse

import numpy as np

import privfield as pf

VARIABLES = 5
CELLS = [(1_000, 3.0), (1_000, 1.0), (1_000, 0.3), (1_000, 0.1), (5_000, 0.5)]


def population():
    weights = np.zeros((VARIABLES, VARIABLES))
    for i in range(VARIABLES):
        j = (i + 1) % VARIABLES
        weights[i, j] = weights[j, i] = 0.4 if i % 2 else -0.4
    return pf.IsingModel(weights, np.full(VARIABLES, -0.3))


def analyse(states):
    """The share of the first variable, its slopes on the next two, and squared standard errors."""
    x = (states > 0).astype(float)
    outcome, design = x[:, 0], np.column_stack([np.ones(len(x)), x[:, 1], x[:, 2]])
    inverse = np.linalg.pinv(design.T @ design)
    slopes = inverse @ design.T @ outcome
    left = outcome - design @ slopes
    robust = inverse @ ((design * left[:, None] ** 2).T @ design) @ inverse
    return [outcome.mean(), *slopes[1:]], [outcome.var() / len(x), robust[1, 1], robust[2, 2]]


def true_answers(truth):
    joint = truth.to_mrf().marginal(truth.names[:3]).ravel()
    states = np.array(list(np.ndindex(2, 2, 2)), float)
    design = np.column_stack([np.ones(8), states[:, 1:]])
    weighted = joint[:, None] * design
    slopes = np.linalg.solve(weighted.T @ design, weighted.T @ states[:, 0])
    return np.array([joint @ states[:, 0], *slopes[1:]])


def study(truth, people, epsilon, tables, seed):
    """Whether both kinds of intervals hold each true answer, and how wide those of combine are."""
    rng = np.random.default_rng(seed)
    rows = truth.sample(people, rng, method="independent")
    model = pf.IsingLearner(pf.ApproxDP(epsilon, 1e-6), method="moments").fit(rows).model_
    drawn = [each.sample(people, rng, method="independent") for each in model.draws(tables, rng)]
    found = pf.combine(*zip(*map(analyse, drawn), strict=True))
    answers = true_answers(truth)
    estimate, variance = map(np.array, analyse(model.sample(people, rng, method="independent")))
    return (
        (found.low <= answers) & (answers <= found.high),
        np.abs(estimate - answers) <= 1.96 * np.sqrt(variance),
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--tables", type=int, default=20)
    options = parser.parse_args()
    truth = population()
    print(
        "| people, ε (δ = 10⁻⁶) | a mean | slope of a neighbour | slope of a stranger | one table |"
    )
    print("|---|---:|---:|---:|---:|")
    for people, epsilon in CELLS:
        found = [
            study(truth, people, epsilon, options.tables, seed) for seed in range(options.studies)
        ]
        several, alone = np.mean(found, axis=0)
        numbers = " | ".join(f"{x:.3f}" for x in several)
        single = ", ".join(f"{x:.2f}" for x in alone)
        print(f"| {people:,}, {epsilon:g} | {numbers} | {single} |", flush=True)


if __name__ == "__main__":
    main()
