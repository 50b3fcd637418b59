"""Private SGD in the synthetic study, tuned with the truth in hand: NOT PRIVATE, at its best."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from bernstein_setting import Cache, Cell, key, sample, truth
from private_sgd_grid import Settings, mrf_from_sgd, run_psgd, tuned_psgd

import privfield as pf

POPULATIONS = 3
_TUNED_ON = 5  # a population that no other method sees
_MAX_DRAWS = {1_000: 1e7, 10_000: 1e7, 100_000: 3e7}  # rows that one run may read


def private_sgd(cache: Cache, cells: Iterable[tuple[str, int, float]]) -> None:
    """For each graph, N and ε: tune on one population, then run once on each of three others."""
    for graph, people, epsilon in cells:
        found = cache.get(
            f"tuned PSGD | {graph} {people} {epsilon}",
            lambda cell=(graph, people, epsilon): _tune(*cell),
        )
        for population in range(POPULATIONS):
            cell = Cell(graph, people, epsilon, population)
            cache.get(key("PSGD", cell), lambda cell=cell, found=found: _run(cell, *found))
        cache.save()


def _tune(graph: str, people: int, epsilon: float) -> Any:
    model = truth(graph)
    rows = sample(model, people, _TUNED_ON)
    draws = _MAX_DRAWS[people]
    best = tuned_psgd(model, rows, model.cliques, epsilon, 1 / people, max_draws=draws)
    return [asdict(best.settings), best.average]


def _run(cell: Cell, settings: dict[str, float], average: float) -> list[float]:
    rows = sample(cell.truth, cell.people, cell.population)
    budget = pf.ApproxDP(cell.epsilon, 1 / cell.people)
    cliques, seed = cell.truth.cliques, 1 + cell.population
    start = time.process_time()
    run = run_psgd(rows, cell.truth.schema, cliques, budget, Settings(**settings), seed)
    learned = mrf_from_sgd(run, average)
    took = time.process_time() - start
    return [cell.truth.kl_divergence(learned), took]
