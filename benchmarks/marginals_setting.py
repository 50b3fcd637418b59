"""The synthetic setting of Bernstein et al. (2017, section 4.1), for benchmarks/marginals.py."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

GRAPHS = ("chain3", "er")
SIZES = (1_000, 10_000, 100_000, 1_000_000)
EPSILONS = (0.1, 0.5, 1.0)
CASES = Path(__file__).resolve().parents[2] / "shared" / "cases" / "marginals"

Edges = list[tuple[int, int]]


@dataclass(frozen=True, eq=False)
class Problem:
    """Noisy tables of all edges."""

    graph: str
    people: int
    epsilon: float
    edges: Edges
    noisy: np.ndarray
    scale: float

    @property
    def name(self) -> str:
        return f"{self.graph} | {self.people:,} | {self.epsilon:g}"


def third_order_chain(length: int) -> Edges:
    return [(i, j) for i in range(length) for j in range(i + 1, min(length, i + 4))]


def erdos_renyi(nodes: int, rng: np.random.Generator) -> Edges:
    """A connected random graph, each edge with probability 0.4."""
    import networkx

    while True:
        edges = [pair for pair in combinations(range(nodes), 2) if rng.random() < 0.4]
        if len(set().union(*edges)) == nodes and networkx.is_connected(networkx.Graph(edges)):
            return edges


def field(levels: Sequence[int], edges: Edges, tables: Sequence[np.ndarray]) -> Any:
    import privfield as pf

    names = [f"x{i}" for i in range(len(levels))]
    schema = pf.Schema(dict(zip(names, levels, strict=True)))
    return pf.MarkovRandomField(schema, [(names[a], names[b]) for a, b in edges], tables)


def dirichlet_field(edges: Edges, levels: Sequence[int], rng: np.random.Generator) -> Any:
    """Every edge's potentials uniform on the simplex."""
    shapes = [(levels[a], levels[b]) for a, b in edges]
    tables = [np.log(rng.dirichlet(np.ones(a * b))).reshape(a, b) for a, b in shapes]
    return field(levels, edges, tables)


def load_truth(graph: str) -> tuple[Any, Edges]:
    """The truth of the shared cases, or one like it."""
    path = CASES / f"{graph}_truth.npz"
    if path.exists():
        case = np.load(path)
        edges = [(int(a), int(b)) for a, b in case["edges"]]
        return field([int(case["K"])] * int(case["T"]), edges, list(case["theta"])), edges
    rng = np.random.default_rng(GRAPHS.index(graph))
    edges = third_order_chain(10) if graph == "chain3" else erdos_renyi(10, rng)
    return dirichlet_field(edges, [10] * 10, rng), edges


def count(rows: np.ndarray, edges: Edges, levels: Sequence[int]) -> list[np.ndarray]:
    return [
        np.bincount(
            rows[:, a].astype(np.int64) * levels[b] + rows[:, b], minlength=levels[a] * levels[b]
        ).reshape(levels[a], levels[b])
        for a, b in edges
    ]


def problems(graph: str, truth: Any, edges: Edges, trials: int) -> Iterator[Problem]:
    """Trial 0 is the shared case where it exists; each other trial is a new population."""
    for people in SIZES:
        for trial in range(trials):
            counts = None
            rng = np.random.default_rng([GRAPHS.index(graph), people, trial])
            for epsilon in EPSILONS:
                scale = len(edges) / epsilon
                path = CASES / f"{graph}_N{people}_eps{epsilon:g}_r0.npz"
                if trial == 0 and path.exists():
                    noisy = np.load(path)["y"]
                else:
                    if counts is None:
                        rows = truth.sample(people, rng, method="independent")
                        counts = np.array(count(rows, edges, truth.schema.shape))
                    noisy = counts + rng.laplace(0, scale, counts.shape)
                yield Problem(graph, people, epsilon, edges, noisy, scale)


def measurements(schema: Any, problem: Problem) -> Any:
    import privfield as pf

    names = schema.names
    return pf.Measurements.from_tables(
        schema,
        [(names[a], names[b]) for a, b in problem.edges],
        list(problem.noisy),
        noise="laplace",
        scale=problem.scale,
        total=problem.people,
    )
