"""Models, noisy tables, methods and a cache for experiments/bernstein.py."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import networkx
import numpy as np

import privfield as pf
from privfield.estimation.tables.cgm import discrepancy, dual_e_step
from privfield.estimation.tables.observed import observe
from privfield.files import write_whole
from privfield.inference.contraction.elimination import elimination_order
from privfield.inference.engine import Engine
from privfield.privacy.adjacency import Adjacency, marginal_sensitivity
from privfield.privacy.noise import choose_noise

RIDGE = 1e-3  # of naive MLE, everywhere but in Figure 1c
STEP_GROWTH = 1.3
MOST_MOVED = 5.0  # of θ: the potentials of the study lie within

Edges = list[tuple[int, int]]
Tables = Sequence[np.ndarray]


# -- the setting -----------------------------------------------------------------------------------


@cache
def truth(graph: str, levels: int = 10) -> pf.MarkovRandomField:
    """10 variables; potentials of each edge uniform on the simplex."""
    rng = np.random.default_rng([levels, *graph.encode()])
    edges = _edges(graph, rng)
    names = [f"x{i}" for i in range(10)]
    potentials = np.log(rng.dirichlet(np.ones(levels**2), len(edges)))
    return pf.MarkovRandomField(
        pf.Schema(dict.fromkeys(names, levels)),
        [(names[a], names[b]) for a, b in edges],
        list(potentials.reshape(-1, levels, levels)),
    )


def _edges(graph: str, rng: np.random.Generator) -> Edges:
    """Third-order chain, or a connected Erdős–Rényi graph of treewidth 3, edge probability 0.35."""
    pairs = list(combinations(range(10), 2))
    if graph == "chain3":
        return [(a, b) for a, b in pairs if b - a <= 3]
    while True:
        edges = [pair for pair in pairs if rng.random() < 0.35]
        found = networkx.Graph(edges)
        connected = len(found) == 10 and networkx.is_connected(found)
        if connected and elimination_order([2] * 10, edges).treewidth == 3:
            return edges


def sample(model: pf.MarkovRandomField, people: int, seed: int) -> np.ndarray:
    """A population: one row per person."""
    return model.sample(people, np.random.default_rng([people, seed]), method="independent")


@cache
def counts(graph: str, levels: int, people: int, seed: int) -> np.ndarray:
    """The true edge tables of a population."""
    model = truth(graph, levels)
    edges = [model.schema.clique(clique) for clique in model.cliques]
    found = np.zeros((len(edges), levels**2), np.int64)
    for part in range(-(-people // 1_000_000)):  # large populations a million at a time
        rows = sample(model, min(people, 1_000_000), seed + 1000 * part).astype(np.int64)
        for table, (a, b) in zip(found, edges, strict=True):
            table += np.bincount(rows[:, a] * levels + rows[:, b], minlength=levels**2)
    return found.reshape(-1, levels, levels)


@dataclass(frozen=True)
class Cell:
    """One noisy release: population and replication included."""

    graph: str
    people: int
    epsilon: float
    population: int = 0
    replication: int = 0
    levels: int = 10

    @property
    def truth(self) -> pf.MarkovRandomField:
        """The model that the population came from."""
        return truth(self.graph, self.levels)

    def tables(self) -> np.ndarray:
        """The true tables."""
        return counts(self.graph, self.levels, self.people, self.population)

    def measured(self, noise: str = "laplace") -> pf.Measurements:
        """With Laplace(|C|/ε) noise, with Gaussian noise for (ε, 1/N), or with none."""
        scale, tables = 0.0, self.tables()
        seed = [self.people, self.population, self.replication, int(1000 * self.epsilon)]
        rng = np.random.default_rng(seed)
        if noise == "laplace":
            scale = len(tables) / self.epsilon
            tables = tables + rng.laplace(0, scale, tables.shape)
        elif noise == "gaussian":
            budget = pf.ApproxDP(self.epsilon, 1 / self.people)
            sensitivity = marginal_sensitivity(Adjacency.ADD_REMOVE, len(tables), 1)
            scale = choose_noise(budget, sensitivity, "gaussian")[0].scale
            tables = tables + rng.normal(0, scale, tables.shape)
        return measurements(self.truth, tables, noise, scale, self.people)


def measurements(
    model: pf.MarkovRandomField, tables: Any, noise: str, scale: float, total: float
) -> pf.Measurements:
    """Tables of the model's edges."""
    return pf.Measurements.from_tables(
        model.schema, model.cliques, list(tables), noise=noise, scale=scale, total=total
    )


# -- the methods -----------------------------------------------------------------------------------


def cgm(given: pf.Measurements) -> pf.MarkovRandomField:
    """EM with the dual E-step until the residuals are as large as noise of this law may be.

    A plain EM step moves each θ by at most 1/b, and hundreds are needed where b is large. Each
    step here is `STEP_GROWTH` times longer than the one before: EM is a proximal-point method, and
    longer steps follow the same path. The sum of residuals may exceed its mean by one standard
    deviation: where there is little to learn, no θ may ever bring it down to the mean.
    """
    seen = observe(given)
    engine = Engine(given.schema, seen.cliques)
    theta, length, moved = np.zeros(engine.parameters), 1.0, 0.0
    while True:
        step, found = dual_e_step(engine, replace(seen, scale=seen.scale / length), theta)
        theta, moved = theta + step, moved + length / seen.scale.max()
        enough = seen.cells + math.sqrt(seen.cells)
        if discrepancy(seen, found) <= enough or moved > MOST_MOVED:
            return pf.MarkovRandomField(given.schema, given.cliques, engine.split(theta))
        length *= STEP_GROWTH


def naive(given: pf.Measurements, ridge: float = RIDGE, project: bool = True) -> Any:
    """Naive maximum likelihood."""
    return pf.estimate(given, "naive-mle", ridge=ridge, project=project)


def random_model(cell: Cell) -> Any:
    """The paper's random estimator (section 4.1), which never saw the tables.

    Tables are uniform on their simplices and do not agree on the variables that they share, so the
    fit is the penalised one that noisy tables get.
    """
    model = cell.truth
    rng = np.random.default_rng([cell.population, cell.replication])
    weights = [rng.exponential(size=table.shape) for table in model.log_potentials]
    tables = [table / table.sum() for table in weights]
    return naive(measurements(model, tables, "none", 0.0, 1.0))


METHODS: dict[str, Callable[[Cell], Any]] = {
    "random": random_model,
    "non-private": lambda cell: naive(cell.measured("none"), 1 / cell.people),
    "auto": lambda cell: pf.estimate(cell.measured()),
    "CGM": lambda cell: cgm(cell.measured()),
    "naive MLE": lambda cell: naive(cell.measured()),
    "auto, Gaussian": lambda cell: pf.estimate(cell.measured("gaussian")),
    "NLBP": lambda cell: pf.estimate(cell.measured(), "cgm", e_step="nlbp"),
}

# -- the cache -------------------------------------------------------------------------------------


class Cache:
    """What was computed, by key; on disk at least every ten seconds, whole or not at all."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.known: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        self._saved = time.monotonic()

    def get(self, key: str, work: Callable[[], Any]) -> Any:
        """The value of the key, computed if it is not there."""
        if key not in self.known:
            print(key, file=sys.stderr, flush=True)
            self.known[key] = work()
            if time.monotonic() - self._saved > 10:
                self.save()
        return self.known[key]

    def save(self) -> None:
        """Write all."""
        with write_whole(self.path) as file:
            file.write(json.dumps(self.known).encode())
        self._saved = time.monotonic()


def fit(cache: Cache, method: str, cell: Cell) -> list[float]:
    """KL(truth ‖ learned) and the CPU-seconds of the fit."""

    def work() -> list[float]:
        cell.tables()
        start = time.process_time()
        model = METHODS[method](cell)
        took = time.process_time() - start
        return [cell.truth.kl_divergence(model), took]

    return cache.get(key(method, cell), work)


def key(method: str, cell: Cell) -> str:
    """Names a fit in the cache."""
    return f"{method} | " + " ".join(str(value) for value in asdict(cell).values())
