"""Private Frank–Wolfe: how far one record moves the scores along paths, and real selections."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.audit.finding import Finding, bounded, drawn
from privfield.audit.primitives.selection import softmax
from privfield.mechanisms.frank_wolfe.gradients import Engine, Task
from privfield.mechanisms.frank_wolfe.ising import ising_task
from privfield.mechanisms.frank_wolfe.mechanism import run_steps
from privfield.mechanisms.frank_wolfe.rows import Rows
from privfield.mechanisms.frank_wolfe.selection import proved, selection_scale
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.randomness import Entropy

_PAGE = "frank-wolfe.md"
_P, _STEPS, _PATHS, _DRAWS = 3, 5, 6, 2000
_RHO = Fraction(1, 2)


def audit_frank_wolfe() -> list[Finding]:
    """An Ising model of three variables: all records, all their replacements, random paths."""
    found = []
    for adjacency in (Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE):
        found.append(
            bounded(
                f"Frank–Wolfe ({adjacency})",
                "ρ",
                float(_RHO),
                _worst(adjacency),
                f"ranges of all scores for every record, {_PATHS} random paths of {_STEPS} steps",
                _PAGE,
            )
        )
    found.append(_draws())
    return found


def _worst(adjacency: Adjacency) -> float:
    """Σ over steps and regressions of (range/τ)²/8, the largest over neighbours and paths."""
    task = ising_task(_P, 2.0)
    share = _RHO / (_P * _STEPS)
    records = np.array(list(product((-1, 1), repeat=_P)), np.int8)
    rng = np.random.default_rng(0)
    worst = 0.0
    for _ in range(_PATHS):
        picks = rng.integers(0, task.allowed.shape[1], (_STEPS, _P))
        path = np.stack([task.allowed[np.arange(_P), pick] for pick in picks])
        signs = rng.choice(np.array([-1, 1], np.int8), (_STEPS, _P, 1))
        each = [_follow(task, record[np.newaxis], path, signs) for record in records]
        scales = np.array(
            [
                [float(selection_scale(int(c), False, adjacency, 1, share, False)) for c in line]
                for _, line in each[0]
            ]
        )
        gradients = np.stack([np.stack([g for g, _ in steps]) for steps in each])
        changes = list(gradients)
        if adjacency is Adjacency.REPLACE_ONE:
            changes = [a - b for a in gradients for b in gradients]
        for change in changes:
            spread = 2 * np.abs(np.take_along_axis(change, task.allowed[np.newaxis], 2)).max(axis=2)
            worst = max(worst, float(((spread / scales) ** 2 / 8).sum()))
    return worst


def _follow(
    task: Task, rows: NDArray[np.int8], path: NDArray[Any], signs: NDArray[Any]
) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """Gradients and contribution bounds that a given path meets."""
    seen: list[tuple[NDArray[Any], NDArray[Any]]] = []

    def select(gradients: NDArray[Any], contributions: NDArray[Any]) -> Any:
        seen.append((gradients.copy(), contributions.copy()))
        return path[len(seen) - 1], signs[len(seen) - 1]

    held = Rows(iter([rows]), lambda: iter([rows]), None, 2.0**30)
    held.load()
    run_steps(task, Engine(task, held, len(path), 2.0**30), select, len(path))
    return seen


def _draws() -> Finding:
    """Which vertex is chosen, against half the scale."""
    task, share = ising_task(2, 2.0), Fraction(1, 8)
    contributions = np.full(2, 100)
    tau = float(selection_scale(100, False, Adjacency.REPLACE_ONE, 1, share, False))
    gradients = np.array([[0, 150, -300], [150, 0, 300]], np.int64)
    select = proved(task, share, Adjacency.REPLACE_ONE, 1, Entropy.system())
    lines = np.take_along_axis(gradients, task.allowed, axis=1)
    scores = np.concatenate([-lines, lines], axis=1)
    claimed = halved = 0.0
    laws = [[np.log(softmax(line, part * tau)) for line in scores.tolist()] for part in (1, 0.5)]
    for _ in range(_DRAWS // 2):
        blocks, signs = select(gradients, contributions)
        for node in range(2):
            place = int(np.flatnonzero(task.allowed[node] == blocks[node])[0])
            number = place if signs[node, 0] > 0 else place + task.allowed.shape[1]
            claimed += float(laws[0][node][number])
            halved += float(laws[1][node][number])
    return drawn("Frank–Wolfe", claimed, halved, _DRAWS, _PAGE)
