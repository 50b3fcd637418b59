"""A small study for the command line, and ways to run `privfield`."""

import csv
import os
import sys

import numpy as np
import pytest

import privfield as pf
from command_line import NAMES
from privfield.cli import main

SCHEMA = pf.Schema(
    {"age": pf.Bins([18, 40, 65, 100]), **{name: ["no", "yes"] for name in NAMES}},
    forbidden=[{"age": "18-40", "worry": "yes"}],
)


@pytest.fixture
def call(capsys, monkeypatch):
    """Run a command in this process: (exit code, stdout, stderr)."""

    def run(*arguments):
        with open(os.devnull) as nobody:
            monkeypatch.setattr(sys, "stdin", nobody)
            code = main([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return run


@pytest.fixture(scope="session")
def study(tmp_path_factory):
    """A folder with data, a schema and a fitted model; to be read only."""
    folder = tmp_path_factory.mktemp("study")
    rng = np.random.default_rng(1)
    previous = np.zeros(3000, bool)
    columns = {"age": rng.integers(18, 100, 3000)}
    for name in NAMES:
        previous = rng.random(3000) < 0.25 + 0.4 * previous
        columns[name] = np.where(previous, "yes", "no")
    columns["worry"] = np.where(columns["age"] < 40, "no", columns["worry"])
    with open(folder / "patients.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    SCHEMA.write(folder / "schema.toml")
    done = main(
        [
            *("fit", str(folder / "patients.csv"), "--schema", str(folder / "schema.toml")),
            *("--epsilon", "1", "--delta", "1e-6", "--cliques", "all-pairs", "--yes"),
            *("--ledger", str(folder / "study.ledger"), "--total", "3,1e-6", "--job", "first"),
            *("-o", str(folder / "model.pf")),
        ]
    )
    assert done == 0
    return folder
