"""Which rule should choose the strength of shrinkage? The comparison behind the default estimate.

    python experiments/shrinkage_rules.py --repeats 2

Third-order chains and Erdős–Rényi graphs of 10 variables with 10 states (Bernstein et al. 2017),
with potentials at full strength, at 0.3 and at 0.1 of it; fresh populations and Laplace noise.
Each rule picks one model from the same path of prior variances τ² = 2⁻⁹ … 2⁴. Numbers are
KL(truth ‖ model) relative to the best model on the path, which only someone who knows the truth
could pick.
"""

import argparse
import sys
from itertools import combinations

import numpy as np

import privfield as pf
from privfield.estimation.tables import shrinkage
from privfield.estimation.tables.interactions import interactions

POWERS = range(-9, 5)
STATES, VARIABLES = 10, 10


def edges(graph, rng):
    """Positions of a third-order chain, or of a connected random graph with 17 edges."""
    pairs = list(combinations(range(VARIABLES), 2))
    if graph == "chain":
        return [(i, j) for i, j in pairs if j - i <= 3]
    while True:
        chosen = [pairs[k] for k in sorted(rng.choice(len(pairs), 17, replace=False))]
        reached, before = {0}, 0
        while len(reached) > before:
            before = len(reached)
            reached |= {v for e in chosen if reached & set(e) for v in e}
        if before == VARIABLES:
            return chosen


def release(graph, strength, people, epsilon, rng):
    """A true model and the noisy tables of its edges."""
    schema = pf.Schema({f"v{i}": STATES for i in range(VARIABLES)})
    cliques = [(schema.names[i], schema.names[j]) for i, j in edges(graph, rng)]
    tables = np.log(rng.dirichlet(np.ones(STATES**2), len(cliques)))
    tables = strength * (tables - tables.mean(axis=1, keepdims=True))
    truth = pf.MarkovRandomField(schema, cliques, tables.reshape(-1, STATES, STATES))
    rows, scale = truth.sample(people, rng=rng, method="independent"), len(cliques) / epsilon
    counts = []
    for clique in cliques:
        i, j = schema.clique(clique)
        table = np.bincount(rows[:, i] * STATES + rows[:, j], minlength=STATES**2)
        counts.append(table.reshape(STATES, STATES) + rng.laplace(0, scale, (STATES, STATES)))
    return truth, pf.Measurements.from_tables(
        schema, cliques, counts, noise="laplace", scale=scale, total=people
    )


def path(truth, measurements):
    """KL of each model on the path, and what each rule makes of it (smaller is better)."""
    parts = interactions(measurements)
    first = shrinkage._Problem(parts, 1, "exact", 4e9)
    main = shrinkage._choose(first, {}, 1, first.begin({}, None))
    problem = shrinkage._Problem(parts, 2, "exact", 4e9)
    fit = problem.begin(main.prior, problem.grow(main.theta))
    kl, rules = [], {}
    for power in POWERS:
        fit = problem.solve({**main.prior, 2: 2.0**power}, fit, rounds=3)
        tau, expected = problem.variances(fit.prior), problem.total * fit.weights
        spread = expected + problem.noise
        gain = tau * expected**2 / spread
        mu = problem.engine.run(fit.theta)[1]
        left = problem.lift.centred(problem.counts - problem.total * mu)
        residual = float((left**2 / spread).sum())
        plain = float(problem.free @ (gain / (1 + gain)))
        evidence = residual + float((fit.theta**2 / tau).sum())
        evidence += float(problem.free @ (np.log1p(gain) + np.log(spread)))
        model = pf.MarkovRandomField(
            parts.schema,
            [tuple(parts.schema.names[v] for v in scope) for scope in problem.scopes],
            problem.engine.split(fit.theta),
        )
        kl.append(truth.kl_divergence(model))
        for name, value in {
            "τ² = 1, fixed": abs(power),
            "evidence (Laplace approximation)": evidence,
            "Cp, λ held fixed": residual + 2 * plain,
            "Cp, 3 per parameter, λ held fixed": residual + 3 * plain,
            "Cp": residual + 2 * fit.effective,
            "Cp, 2.5 per parameter": residual + 2.5 * fit.effective,
            "Cp, 2.2 p + 2√(2p) for p parameters (the default)": fit.error,
            "Cp, 3 per parameter": residual + 3 * fit.effective,
        }.items():
            rules.setdefault(name, []).append(value)
    best = min(kl)
    return {name: kl[int(np.argmin(values))] / best for name, values in rules.items()}


def main():
    """Print the table; progress goes to stderr."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    strengths, found = (1.0, 0.3, 0.1), {}
    for number, strength in enumerate(strengths):
        for graph in ("chain", "random"):
            for people in (1_000, 10_000, 100_000, 1_000_000):
                for epsilon in (0.1, 0.5, 1.0):
                    for repeat in range(repeats):
                        rng = np.random.default_rng([number, people, int(10 * epsilon), repeat])
                        answer = path(*release(graph, strength, people, epsilon, rng))
                        for name, value in answer.items():
                            found.setdefault(name, {}).setdefault(strength, []).append(value)
                    print(f"\r{strength} {graph} {people} {epsilon}   ", end="", file=sys.stderr)
    heads = [f"potentials × {s:g}: mean (worst)" for s in strengths]
    print("| rule | " + " | ".join(heads) + " |\n|---|" + "---|" * len(heads))
    for name, by_strength in found.items():
        cells = []
        for strength in strengths:
            values = by_strength[strength]
            cells.append(f"{np.exp(np.mean(np.log(values))):.3f} ({max(values):.3g})")
        print(f"| {name} | " + " | ".join(cells) + " |")
    print(f"\nGeometric means over 24 settings × {repeats} populations each.")


if __name__ == "__main__":
    main()
