"""A small part of the grid of `experiments/calibration.py`: do intervals and verdicts hold?"""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

PATH = Path(__file__).parents[3] / "experiments" / "calibration.py"
STUDIES, MISSED, FALSE = 16, 0.07, 0.08  # rates that no cell of the whole grid should exceed
CELLS = [  # graph, variables, weight, share, people, budget, adjacency, way, levels
    ("ring", 5, 0.4, 0.5, 1_000, (1, 1e-6), "replace-one", "tables", 2),
    ("tree", 5, 0.8, 0.2, 1_000, (3, 0), "add-remove", "moments", 2),
    ("none", 5, 0.1, 0.03, 1_000, (1, 1e-6), "replace-one", "tables", 2),
    ("none", 4, 0.1, 0.03, 1_000, (1, 1e-6), "add-remove", "tables", 3),
    ("sparse", 4, 0.8, 0.5, 1_000, (0.3, 1e-6), "replace-one", "tables", 3),
    ("ring", 5, 0.4, 0.5, 10_000, (1, 1e-6), "add-remove", "selection", 2),
]


@pytest.fixture(scope="module")
def grid():
    spec = importlib.util.spec_from_file_location("calibration", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_intervals_and_verdicts_hold_in_a_small_grid(grid):
    """One interval of each kind and study, at random: then studies are independent.

    Each of six counts has a chance of 1e-7 to be too large where rates are as bad as allowed.
    """
    rng = np.random.default_rng()
    asked = dict.fromkeys(grid.ASKED, 0)
    missed = dict.fromkeys(grid.ASKED, 0)
    empty = alarms = 0
    for cell in CELLS:
        for _ in range(STUDIES):
            counts, (_, false, true, *_) = grid.study(cell, rng)
            for key, (held, number) in counts.items():
                asked[key] += number > 0
                missed[key] += number > 0 and rng.random() >= held / number
            if not true:
                empty, alarms = empty + 1, alarms + (false > 0)
    for key in grid.ASKED:
        assert asked[key] >= 2 * STUDIES
        assert missed[key] <= binom.isf(1e-7, asked[key], MISSED), key
    assert empty == 2 * STUDIES and alarms <= binom.isf(1e-7, empty, FALSE)


def test_cells_of_a_file_can_be_run_again(grid, tmp_path):
    path = tmp_path / "cells.jsonl"
    plan = [(cell, 7 + number) for number, cell in enumerate(grid.cells(40))]
    path.write_text("".join(json.dumps({"cell": c, "studies": n}) + "\n" for c, n in plan))
    assert list(grid.again(path)) == plan
    listed = dict(grid.planned(grid.cells(40), 200, "1/1", 10))
    assert listed[("none", 5, 0.4, 0.5, 1_000, (1, 1e-6), "replace-one", "tables", 5)] == 400
    assert all(cell[1] <= 10 and cell in grid.cells(40) for cell in listed)
    assert len(list(grid.planned(grid.FURTHER, 200, "1/1", 50))) == len(grid.FURTHER)


def test_a_hopeless_study_says_that_nothing_was_measured(grid):
    cell = ("ring", 10, 0.4, 0.5, 100, (0.01, 1e-6), "replace-one", "tables", 2)
    counts, (clear, _, _, measured, _) = grid.study(cell, np.random.default_rng())
    assert clear == measured == 0
    assert all(asked == 0 for _, asked in counts.values())


@pytest.mark.parametrize(("levels", "graph"), [(2, "tree"), (3, "ring")])
def test_true_models_of_the_grid_are_what_they_say(grid, levels, graph):
    """Its own list of all states against the package's inference."""
    truth = grid.true_model(graph, 4, 0.4, 0.2, levels, np.random.default_rng())
    names = truth.schema.names
    for pair in [names[:2], (names[3], names[1])]:
        np.testing.assert_allclose(truth.marginal(pair), truth.model.marginal(pair), atol=1e-9)
    rare = 1 if levels == 2 else 0
    for name in names:
        assert abs(truth.model.marginal([name])[rare] - 0.2) < 1e-4
    edges = [abs(value) for value in truth.strengths.values() if value]
    np.testing.assert_allclose(edges, [0.4] * (3 if graph == "tree" else 4), atol=1e-9)
    rows = truth.sample(20_000, np.random.default_rng())
    assert abs((rows[:, 0] == rare).mean() - 0.2) < 6 * 0.4 / 20_000**0.5  # chance 2e-9
