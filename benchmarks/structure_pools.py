"""Chances that a stable graph is released, from pools of independent blocks instead of whole runs.

A pool holds the votes of many independent blocks of one size. Any m different blocks of it are a
run of the mechanism with m blocks, so the mean of π_s over random subsets of m is an unbiased
estimate of the chance that the right graph is released, coins included.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

import privfield as pf
from privfield.mechanisms.graphs.finders import SpinStructure
from privfield.mechanisms.graphs.votes import Finder, cast_vote
from privfield.privacy.stability import release_probabilities

LARGEST = 100  # variables of one component: larger 3-regular graphs have no exact sampler
SUBSETS = 200
Sampler = Callable[[int, np.random.Generator], np.ndarray]


@dataclass
class Case:
    """A model with a known graph: its sampler, the learner in the blocks, and the right vote."""

    sample: Sampler
    finder: Finder
    truth: np.ndarray
    seed: int
    pools: dict[int, Pool] = field(default_factory=dict)

    def pool(self, rows: int, blocks: int) -> Pool:
        """At least `blocks` votes of blocks of so many rows."""
        pool = self.pools.setdefault(rows, Pool(np.empty((0, len(self.truth)), bool)))
        short = blocks - len(pool.wrong)
        if short > 0:
            rng = np.random.default_rng([self.seed, rows, len(pool.wrong)])
            data = self.sample(short * rows, rng)
            data = data[rng.permutation(len(data))].reshape(short, rows, -1)
            votes = [cast_vote(self.finder, part, len(self.truth)) for part in data]
            pool = self.pools[rows] = Pool(np.vstack([pool.wrong, np.array(votes) != self.truth]))
        return pool


@dataclass(frozen=True, eq=False)
class Pool:
    """Which candidates each block decided wrongly."""

    wrong: np.ndarray

    @property
    def recovery(self) -> float:
        """How often a block finds the whole graph: the learner without privacy on its rows."""
        return float(1 - self.wrong.any(axis=1).mean())

    @cached_property
    def _ever_wrong(self) -> np.ndarray:
        return self.wrong[:, self.wrong.any(axis=0)].astype(np.float32)

    @cached_property
    def _ballots(self) -> np.ndarray:
        """A number for each different wrong graph; 0 is the right one."""
        packed = np.packbits(self.wrong, axis=1)
        known: dict[bytes, int] = {bytes(packed.shape[1]): 0}
        return np.array([known.setdefault(row.tobytes(), len(known)) for row in packed])

    def _subsets(self, blocks: int) -> np.ndarray:
        rng = np.random.default_rng(blocks)
        return np.array([rng.permutation(len(self.wrong))[:blocks] for _ in range(SUBSETS)])

    def majority(self, blocks: int, budget: pf.ApproxDP) -> float:
        """The chance of the right graph by edge-wise majority; `blocks` is odd."""
        assert blocks % 2 and blocks <= len(self.wrong)
        if not self._ever_wrong.size:
            return float(chances(budget)[-1] if blocks > 2 * len(chances(budget)) else 0)
        chosen = np.zeros((SUBSETS, len(self.wrong)), np.float32)
        np.put_along_axis(chosen, self._subsets(blocks), 1, axis=1)
        most = (chosen @ self._ever_wrong).max(axis=1).astype(int)
        return float(release_chance((blocks - 1) // 2 - most, budget).mean())

    def mode(self, blocks: int, budget: pf.ApproxDP) -> float:
        """The chance of the right graph by the most frequent one."""
        stable = []
        for subset in self._subsets(blocks):
            counts = np.bincount(self._ballots[subset], minlength=2)
            gap = int(counts[0] - counts[1:].max())
            stable.append((gap - 1) // 2 if gap > 0 else -1)
        return float(release_chance(np.array(stable), budget).mean())


def chances(budget: pf.ApproxDP) -> np.ndarray:
    """π_0, π_1, …, 1."""
    found = release_probabilities(budget.exact_epsilon, budget.exact_delta)
    return np.array([float(chance) for chance in found])


def release_chance(stability: np.ndarray, budget: pf.ApproxDP) -> np.ndarray:
    """π_s; 0 for a negative number, which stands for a wrong graph."""
    pi = chances(budget)
    return np.where(stability < 0, 0.0, pi[np.clip(stability, 0, len(pi) - 1)])


def crossing(rows: Sequence[float], chance: Sequence[float], target: float) -> float:
    """Where the chance reaches the target for good: linear in log rows and log(1 − chance)."""
    x, y = np.log(rows), -np.log(np.maximum(1 - np.array(chance), 1e-4))
    goal = -np.log(1 - target)
    above = y >= goal
    if not above[-1] or above.all():
        return float("nan")  # beyond the grid
    first = len(y) - int(np.argmin(above[::-1]))
    share = (goal - y[first - 1]) / (y[first] - y[first - 1])
    return float(np.exp(x[first - 1] + share * (x[first] - x[first - 1])))


# -- models ----------------------------------------------------------------------------------------


def regular_graph(p: int, seed: int, girth: int) -> nx.Graph:
    """A random 3-regular graph without cycles shorter than `girth`."""
    rng = np.random.default_rng([p, seed, girth])
    while True:
        graph = nx.random_regular_graph(3, p, seed=int(rng.integers(2**31)))
        if girth <= 3 or nx.girth(graph) >= girth:
            return graph


def regular_ising(
    p: int, seed: int, weight: float = 0.4, girth: int = 3
) -> tuple[np.ndarray, Sampler]:
    """Random 3-regular graphs with weights ±`weight`; several components beyond 100 variables."""
    rng = np.random.default_rng([p, seed])
    parts = [LARGEST] * (p // LARGEST) + ([p % LARGEST] if p % LARGEST else [])
    weights, models = np.zeros((p, p)), []
    for number, size in enumerate(parts):
        block = np.zeros((size, size))
        for i, j in regular_graph(size, 1000 * number + seed, girth).edges:
            block[i, j] = block[j, i] = weight * rng.choice([-1, 1])
        start = number * LARGEST
        weights[start : start + size, start : start + size] = block
        models.append(pf.IsingModel(block))

    def sample(count: int, rng: np.random.Generator) -> np.ndarray:
        return np.hstack(
            [model.sample(count, rng, method="independent").astype(np.int8) for model in models]
        )

    return weights, sample


def ising_case(p: int, seed: int, weight: float = 0.4, girth: int = 3) -> Case:
    """`regular_ising` with the built-in learner."""
    weights, sample = regular_ising(p, seed, weight, girth)
    truth = weights[np.triu_indices(p, 1)] != 0
    return Case(sample, SpinStructure(p, 2, weight), truth, seed)


GUIDE = Path(__file__).parents[1] / "docs" / "guide" / "from-a-table-to-a-graph.md"


def symptoms_case(field: float, min_weight: float = 0.3) -> tuple[Case, np.ndarray]:
    """The guide's symptoms, all with that field (0: half of the people have each); their shares."""
    setting: dict[str, Any] = {}
    exec(re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)[0], setting)
    weights = setting["weights"]
    model = pf.IsingModel(weights, np.full(len(weights), field))
    shares = (model.sample(50_000, np.random.default_rng(0), method="independent") > 0).mean(axis=0)
    truth = weights[np.triu_indices(len(weights), 1)] != 0
    finder = SpinStructure(len(weights), 2, min_weight)
    return Case(
        lambda n, rng: model.sample(n, rng, method="independent").astype(np.int8), finder, truth, 5
    ), shares


def true_correlations(weights: np.ndarray, sample: Sampler, rows: int = 200_000) -> tuple[Any, Any]:
    """|E x_i x_j| of neighbours and of others, from a large sample, in a fixed order."""
    data = sample(rows, np.random.default_rng([7, len(weights)])).astype(np.float32)
    values = np.abs(data.T @ data)[np.triu_indices(len(weights), 1)] / rows
    joined = weights[np.triu_indices(len(weights), 1)] != 0
    return values[joined], values[~joined]
