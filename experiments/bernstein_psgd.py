"""Private SGD in the synthetic study, tuned with the truth in hand: NOT PRIVATE, at its best."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import product
from typing import Any

from bernstein_setting import Cell, Results, sample

import privfield as pf
from privfield.estimation.trajectories import mrf_from_sgd
from privfield.learners.sgd import calm_pace, start_norm

AVERAGES = (0.0, 0.25, 0.5, 1.0)
_TUNED_ON = 5  # a population that no other method sees
_SAMPLE = 10_000  # rows that a step reads, where there are more
Settings = dict[str, Any]
CHANGES: dict[str, Settings] = {  # factors; δ as it is
    "nothing": {},
    "steps × 4": {"steps": 4},
    "steps × 1/4": {"steps": 1 / 4},
    "steps × 1/10": {"steps": 1 / 10},
    "rate × 4": {"learning_rate": 4},
    "rate × 1/4": {"learning_rate": 1 / 4},
    "rate × 1/10": {"learning_rate": 1 / 10},
    "clip × 2": {"clip": 2},
    "clip × 1/10": {"clip": 1 / 10},
    "1% samples": {"sampling_rate": 1 / 100},
    "δ = 1e-10": {"delta": 1e-10},
    "δ = 1e-20": {"delta": 1e-20},
}


def private_sgd(results: Results, setting: Cell, populations: int, replications: int) -> None:
    """Tune on one population, then run on others, several times on each."""
    settings = tune(results, setting)
    for replication, population in product(range(replications), range(populations)):
        cell = replace(setting, population=population, replication=replication)
        results.fit("PSGD", cell, lambda cell=cell: _trial(cell, settings))


def changed(results: Results, setting: Cell, name: str, populations: int) -> list[float]:
    """KL on each population with one thing changed from the tuned settings."""
    settings = tune(results, setting)
    other = {key: factor * settings[key] for key, factor in CHANGES[name].items()}
    other |= {key: value for key, value in CHANGES[name].items() if key == "delta"}
    if "steps" in other:
        other["steps"] = max(1, round(other["steps"]))
    place = f"{setting.graph} {setting.people} {setting.epsilon:g} {setting.levels}"

    def work() -> list[float]:
        cells = [replace(setting, population=k) for k in range(populations)]
        return [_trial(cell, {**settings, **other})[0] for cell in cells]

    return list(results.get(f"PSGD, changed | {place} | {name} x{populations}", work))


def tune(results: Results, setting: Cell) -> Settings:
    """Double or halve the learning rate, then the number of steps, while the KL falls.

    The clip is the gradient's norm at the start, which every row has. The share of iterates that
    is averaged is the best of four.
    """
    cell = Cell(setting.graph, setting.people, setting.epsilon, _TUNED_ON, 0, setting.levels)
    name = f"PSGD | {cell.graph} {cell.people} {cell.epsilon:g} {cell.levels}"

    def at(place: tuple[int, int]) -> Settings:
        label = f"{name} | rate 2^{place[0]}, steps 2^{place[1]}"
        return dict(results.get(label, lambda: _try(cell, *place)))

    best = (1, 1)
    for axis in (0, 1):
        for way in (1, -1):
            while True:
                other = (best[0] + way, best[1]) if axis == 0 else (best[0], best[1] + way)
                if abs(other[1] - 1) > 2 or at(other)["kl"] >= at(best)["kl"]:
                    break
                best = other
    return at(best)


def _try(cell: Cell, rate: int, steps: int) -> Settings:
    schema, cliques = cell.truth.schema, cell.truth.cliques
    settings: Settings = {
        "steps": round(100 * 2.0**steps),
        "learning_rate": calm_pace(schema, cliques) * 2.0**rate,
        "sampling_rate": min(1.0, _SAMPLE / cell.people),
        "clip": start_norm(schema, cliques),
        "delta": 1 / cell.people,
    }
    released = _learner(cell, settings, seed=0).released_
    kl = {share: cell.truth.kl_divergence(mrf_from_sgd(released, share)) for share in AVERAGES}
    share = min(kl, key=lambda each: kl[each])
    return {**settings, "average": share, "kl": kl[share]}


def _learner(cell: Cell, settings: Settings, seed: int) -> pf.SGDLearner:
    names = ("steps", "learning_rate", "sampling_rate", "clip", "average")
    return pf.SGDLearner(
        pf.ApproxDP(cell.epsilon, settings["delta"]),
        schema=cell.truth.schema,
        cliques=cell.truth.cliques,
        declared_rows=cell.people,
        insecure_seed=seed,
        **{name: settings[name] for name in names if name in settings},
    ).fit(sample(cell.truth, cell.people, cell.population))


def _trial(cell: Cell, settings: Settings) -> list[float]:
    start = time.process_time()
    model = _learner(cell, settings, seed=1 + cell.population + 10 * cell.replication).model_
    return [cell.truth.kl_divergence(model), time.process_time() - start]
