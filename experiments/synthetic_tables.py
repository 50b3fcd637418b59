"""How often do 95% intervals from synthetic tables hold the truth? Prints a Markdown table.

    python experiments/synthetic_tables.py --studies 200
    python experiments/synthetic_tables.py --studies 200 --table tree --seed 1000

A mean and a regression coefficient of yes/no variables, from 20 tables with `pf.combine`, and from
one table that is taken for real data. The people are a ring of five with couplings ±0.4, a tree of
seven with couplings from −0.6 to 0.6 and unequal shares, or two blocks of four with couplings 0.25.
"""

import argparse

import numpy as np

import privfield as pf

TREE = [(0, 1, 0.5), (0, 3, -0.25), (1, 2, -0.6), (1, 4, 0.2), (3, 5, 0.6), (3, 6, 0.35)]
CELLS = [(1_000, 3.0), (1_000, 1.0), (1_000, 0.3), (5_000, 0.5)]


def population(table):
    if table == "ring":
        edges, fields = [(i, (i + 1) % 5, 0.4 if i % 2 else -0.4) for i in range(5)], [-0.3] * 5
    elif table == "blocks":
        pairs = [(i, j) for i in range(8) for j in range(i) if i // 2 % 2 == j // 2 % 2]
        edges, fields = [(i, j, 0.25) for i, j in pairs], [-0.2, -0.5] * 4
    else:
        edges, fields = TREE, np.linspace(-0.7, 0.2, 7)
    weights = np.zeros((len(fields), len(fields)))
    for i, j, weight in edges:
        weights[i, j] = weights[j, i] = weight
    return pf.IsingModel(weights, fields)


def analyse(states):
    """The share of the first variable, its slopes on the next two, and squared standard errors."""
    x = (states > 0).astype(float)
    outcome, design = x[:, 0], np.column_stack([np.ones(len(x)), x[:, 1], x[:, 2]])
    inverse = np.linalg.pinv(design.T @ design)
    slopes = inverse @ design.T @ outcome
    left = outcome - design @ slopes
    robust = inverse @ ((design * left[:, None] ** 2).T @ design) @ inverse
    errors = np.maximum(np.diag(robust), 0)  # a column that is constant may round below
    return [outcome.mean(), *slopes[1:]], [outcome.var() / len(x), *errors[1:]]


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
    parser.add_argument("--table", choices=["ring", "tree", "blocks"], default="ring")
    parser.add_argument("--cells", nargs="+", help="such as 1000,0.3: people and ε")
    parser.add_argument("--seed", type=int, default=0, help="of the first study")
    options = parser.parse_args()
    truth = population(options.table)
    seeds = range(options.seed, options.seed + options.studies)
    print(
        "| people, ε (δ = 10⁻⁶) | a mean | slope of a neighbour | slope of a stranger | one table |"
    )
    print("|---|---:|---:|---:|---:|")
    cells = CELLS if options.cells is None else [c.split(",") for c in options.cells]
    for people, epsilon in [(int(people), float(epsilon)) for people, epsilon in cells]:
        found = [study(truth, people, epsilon, options.tables, seed) for seed in seeds]
        several, alone = np.mean(found, axis=0)
        numbers = " | ".join(f"{x:.3f}" for x in several)
        single = ", ".join(f"{x:.2f}" for x in alone)
        print(f"| {people:,}, {epsilon:g} | {numbers} | {single} |", flush=True)


if __name__ == "__main__":
    main()
