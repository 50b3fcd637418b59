"""Models, noisy tables, methods and stored results for experiments/bernstein.py."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import networkx
import numpy as np

import privfield as pf
from privfield.estimation.tables.cgm import dual_e_step
from privfield.estimation.tables.observed import observe
from privfield.files import write_whole
from privfield.inference.contraction.elimination import elimination_order
from privfield.inference.engine import Engine
from privfield.privacy.adjacency import Adjacency, marginal_sensitivity
from privfield.privacy.noise import choose_noise

RIDGE = 1e-3  # of the random estimator
RIDGES = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0)  # of naive MLE, tuned with the truth in hand: times b/N
MOST_PRINTED = 2_000  # rounds of Algorithm 2 as printed

Edges = list[tuple[int, int]]


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
    """Chains of an order ("chain3"), or "er-0", "er-1", …: connected Erdős–Rényi graphs."""
    pairs = list(combinations(range(10), 2))
    if graph.startswith("chain"):
        return [(a, b) for a, b in pairs if b - a <= int(graph.removeprefix("chain"))]
    while True:
        edges = [pair for pair in pairs if rng.random() < 0.35]
        found = networkx.Graph(edges)
        if len(found) == 10 and networkx.is_connected(found):
            return edges


def treewidth(edges: Edges) -> int:
    """Of the order in which exact inference would go."""
    return int(elimination_order([2] * 10, edges).treewidth)


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


def tuned_naive(cell: Cell) -> Any:
    """Naive MLE with the ridge that has the least KL. NOT PRIVATE: it needs the truth."""
    given = cell.measured()
    unit = given.scales[0] / cell.people
    found = [pf.estimate(given, "naive-mle", ridge=c * unit) for c in RIDGES]
    return min(found, key=cell.truth.kl_divergence)


def printed_cgm(cell: Cell) -> Any:
    """Algorithm 2 as printed, stopped where the KL is least. NOT PRIVATE: that needs the truth.

    The E-step is exact. KL is looked at after 1, 2, 3, 4, 6, 9, 13, 19, … rounds, until it rises.
    """
    given, model = cell.measured(), cell.truth
    seen = observe(given)
    engine = Engine(given.schema, seen.cliques)
    theta = step = np.zeros(engine.parameters)
    best, least, look = None, np.inf, 1
    for rounds in range(1, MOST_PRINTED + 1):
        step = dual_e_step(engine, seen, theta, start=step)[0]
        theta = theta + step
        if rounds == look:
            look = max(look + 1, int(1.5 * look))
            found = pf.MarkovRandomField(given.schema, model.cliques, engine.split(theta))
            kl = model.kl_divergence(found)
            if kl > least:
                return best
            best, least = found, kl
    raise RuntimeError(f"The KL still falls after {MOST_PRINTED} rounds.")


def random_model(cell: Cell) -> Any:
    """The paper's random estimator (section 4.1), which never saw the tables.

    Tables are uniform on their simplices and do not agree on the variables that they share, so the
    fit is the penalised one that noisy tables get.
    """
    model = cell.truth
    rng = np.random.default_rng([cell.population, cell.replication])
    weights = [rng.exponential(size=table.shape) for table in model.log_potentials]
    tables = [table / table.sum() for table in weights]
    return pf.estimate(measurements(model, tables, "none", 0.0, 1.0), "naive-mle", ridge=RIDGE)


METHODS: dict[str, Callable[[Cell], Any]] = {
    "random": random_model,
    "non-private": lambda cell: pf.estimate(
        cell.measured("none"), "naive-mle", ridge=1 / cell.people
    ),
    "auto": lambda cell: pf.estimate(cell.measured()),
    "CGM": lambda cell: pf.estimate(cell.measured(), "cgm"),
    "CGM, printed": printed_cgm,
    "naive MLE": lambda cell: pf.estimate(cell.measured(), "naive-mle"),
    "naive MLE, tuned": tuned_naive,
    "naive MLE, not projected": lambda cell: pf.estimate(
        cell.measured(), "naive-mle", project=False
    ),
    "auto, Gaussian": lambda cell: pf.estimate(cell.measured("gaussian")),
    "NLBP": lambda cell: pf.estimate(cell.measured(), "cgm", e_step="nlbp"),
    "NLBP, loopy": lambda cell: pf.estimate(
        cell.measured(), "cgm", e_step="nlbp", inference="loopy"
    ),
    "CGM, loopy": lambda cell: pf.estimate(cell.measured(), "cgm", inference="loopy"),
    "naive MLE, loopy": lambda cell: pf.estimate(cell.measured(), "naive-mle", inference="loopy"),
}

# -- results ---------------------------------------------------------------------------------------


class Results:
    """What was computed, in one file: written at least every ten seconds, whole or not at all.

    `fits` has [KL, CPU-seconds] by method, setting ("graph N ε levels") and trial
    ("population.replication"); `other` whatever else a figure needs, by name.
    """

    def __init__(self, path: Path, about: dict[str, str]) -> None:
        self.path = path
        found = json.loads(path.read_text()) if path.exists() else {}
        self.fits: dict[str, dict[str, dict[str, list[Any]]]] = found.get("fits", {})
        self.other: dict[str, Any] = found.get("other", {})
        self._about = about
        self._saved = time.monotonic()

    def of(self, method: str, graph: str, people: int, epsilon: float, levels: int) -> list[Any]:
        """All trials of a setting, in the same order for every method."""
        setting = f"{graph} {people} {epsilon:g} {levels}"
        found = self.fits.get(method, {}).get(setting, {})
        return [found[trial] for trial in sorted(found, key=lambda trial: trial.split(".")[::-1])]

    def fit(self, method: str, cell: Cell, work: Callable[[], list[Any]]) -> list[Any]:
        """One trial, computed if it is not there."""
        setting = f"{cell.graph} {cell.people} {cell.epsilon:g} {cell.levels}"
        place = self.fits.setdefault(method, {}).setdefault(setting, {})
        return self._get(place, f"{cell.population}.{cell.replication}", work, method, setting)

    def get(self, name: str, work: Callable[[], Any]) -> Any:
        """Another number, computed if it is not there."""
        return self._get(self.other, name, work)

    def _get(self, place: dict[str, Any], key: str, work: Callable[[], Any], *names: str) -> Any:
        if key not in place:
            print(*names, key, file=sys.stderr, flush=True)
            place[key] = _short(work())
            if time.monotonic() - self._saved > 10:
                self.save()
        return place[key]

    def save(self) -> None:
        """Write all; one line for each setting."""
        fits = [f"{_json(name)}: {_lines(found)}" for name, found in self.fits.items()]
        parts = {
            "about": _lines(self._about),
            "fits": "{\n" + ",\n".join(fits) + "}",
            "other": _lines(self.other),
        }
        text = ",\n".join(f'"{name}": {part}' for name, part in parts.items())
        with write_whole(self.path) as file:
            file.write(f"{{{text}}}\n".encode())
        self._saved = time.monotonic()


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _lines(found: dict[str, Any]) -> str:
    return "{\n" + ",\n".join(f"{_json(key)}: {_json(value)}" for key, value in found.items()) + "}"


def _short(value: Any) -> Any:
    """Numbers with four digits."""
    if isinstance(value, dict):
        return {key: _short(each) for key, each in value.items()}
    if isinstance(value, float | np.floating):
        return float(f"{value:.4g}")
    return [_short(each) for each in value] if isinstance(value, list | tuple) else value


def fit(results: Results, method: str, cell: Cell) -> list[float]:
    """KL(truth ‖ learned) and the CPU-seconds of the fit."""

    def work() -> list[float]:
        cell.tables()
        start = time.process_time()
        model = METHODS[method](cell)
        took = time.process_time() - start
        return [cell.truth.kl_divergence(model), took]

    return results.fit(method, cell, work)
