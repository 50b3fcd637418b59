"""How often intervals of edges hold the truth, and how often an edge that is not there looks clear.

python experiments/edge_interval_coverage.py [studies]
"""

from __future__ import annotations

import sys
from itertools import combinations

import numpy as np

import privfield as pf
from privfield.estimation.uncertainty.delta_method import plain_edges, uncertainty
from privfield.estimation.uncertainty.strengths import stand_out

SETTINGS = [
    # kind, budget, rows, variables, mean field
    ("moments", pf.ApproxDP(1, 1e-6), 5_000, 8, -0.4),
    ("moments", pf.PureDP(1), 2_000, 8, -0.4),
    ("moments", pf.PureDP(0.1), 2_000, 8, -0.4),
    ("moments", pf.ZCDP(0.05), 5_000, 8, -1.2),
    ("moments", pf.ApproxDP(1, 1e-6), 5_000, 14, -0.3),
    ("tables", pf.ApproxDP(1, 1e-6), 5_000, 8, -0.4),
    ("tables", pf.PureDP(1), 2_000, 8, -0.4),
    ("tables", pf.ZCDP(0.05), 5_000, 8, -1.2),
    ("mixed", pf.PureDP(1), 5_000, 5, 0.0),
    ("mixed", pf.ZCDP(0.05), 20_000, 5, 0.0),
]


def study(kind, budget, rows, variables, tilt, seed):
    rng = np.random.default_rng(seed)
    if kind == "mixed":
        shape = [2, 3, 4, 2, 3][:variables]
        schema = pf.Schema(
            {
                f"x{i}": pf.Bins(range(k + 1)) if i == 1 else [str(j) for j in range(k)]
                for i, k in enumerate(shape)
            }
        )
        pairs = list(combinations(schema.names, 2))
        tables = [
            0.5 * rng.standard_normal([len(schema[v].levels) for v in pair]) * (rng.random() < 0.6)
            for pair in pairs
        ]
        truth = pf.MarkovRandomField(schema, pairs, tables)
        data = truth.sample(rows, rng, method="independent")
    else:
        weights = np.zeros((variables, variables))
        for i in range(variables):
            j = (i + 1) % variables
            weights[i, j] = weights[j, i] = rng.choice([0.4, -0.3, 0.2])
        truth = pf.IsingModel(weights, rng.normal(tilt, 0.3, variables))
        data = truth.sample(rows, rng, method="independent")
        schema = pf.Schema({name: ["no", "yes"] for name in truth.names})
    if kind == "moments":
        learner = pf.IsingLearner(budget, method="moments", insecure_seed=seed).fit(data)
    else:
        codes = (data > 0).astype(np.uint8) if kind == "tables" else data
        learner = pf.MarginalLearner(budget, schema=schema, insecure_seed=seed).fit(codes)
    found = uncertainty(learner.model_, learner.measurements_)
    true = {(e.first, e.second): e.estimate for e in plain_edges(truth)}
    edges, lines = found.edges(), []
    standing = stand_out(edges)
    for e in edges:
        value = true.get((e.first, e.second), 0.0)
        lines.append(
            (
                e.low <= value <= e.high,
                abs(value) > 1e-9,
                e.status() == "clear",
                (e.first, e.second) in standing,
            )
        )
    shares = [
        low <= p <= high
        for m in found.marginals()
        for p, low, high in zip(truth.marginal([m.name]), m.low, m.high, strict=True)
    ]
    ratio = np.median([f.privacy / f.sampling for f in found.fit() if len(f.names) == 2])
    return lines, shares, ratio


def main() -> None:
    studies = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    print(
        "| setting | noise ÷ sampling | edges | no edge | marginals | false clear | power | FDR |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for setting in SETTINGS:
        found = [study(*setting, seed) for seed in range(studies)]
        lines = np.array([line for each, _, _ in found for line in each])
        hit, real, clear, _ = lines.T
        shares = np.mean([share for _, each, _ in found for share in each])
        ratio = np.mean([ratio for _, _, ratio in found])
        false = [
            sum(~np.array(e)[:, 1] & np.array(e)[:, 3]) / max(1, sum(np.array(e)[:, 3]))
            for e, _, _ in found
        ]
        kind, budget, rows, variables, _ = setting
        print(
            f"| {kind}, {variables} variables, n={rows:,}, {budget} | {ratio:.1f} | "
            f"{hit[real].mean():.3f} | {hit[~real].mean():.3f} | {shares:.3f} | "
            f"{clear[~real].mean():.3f} | {clear[real].mean():.2f} | {np.mean(false):.3f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
