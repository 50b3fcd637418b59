"""The recipe for a new mechanism in CONTRIBUTING.md works as it stands."""

import re
import sys
import textwrap
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import privfield as pf
from privfield.audit.promise import check_world
from privfield.privacy.randomness import Randomness
from privfield.privacy.terms import Terms

TEXT = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text()


NO_CASE = (  # combinations in a table of cases that do not exist
    *("Gaussian noise has no pure ε", "one step: there is nothing to divide by"),
    *("it reads every row", "signals reach the main thread only"),
)
LISTED = {  # reasons that do not name what is missing as the table does
    "root may write everywhere": "not root",
    "SIGINT cannot be sent to one process there": "not Windows",
    "needs POSIX signals": "pthread_kill",
    "kill -9 needs a POSIX system": "fork",
    "finds executors in /proc": "/proc",
    "needs bash": "bash",
    "R is not installed": "R, with qgraph",
    "R has no qgraph": "R, with qgraph",
    "Spark needs Java 17": "Java 17",
    "no browser": "a browser",
    "the program privfield is not installed": "`privfield` next to Python",
    "the MSNBC sequences are not there": "the MSNBC sequences",
}


def test_tests_skip_for_listed_reasons_only():
    """Reads the tests: each `importorskip`, `skipif` and `skip`."""
    table = TEXT[TEXT.index("## What tests skip") : TEXT.index("## Adding a mechanism")]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("|")]
    listed = " ".join(rows[2:])
    found = set()
    for path in Path(__file__).parent.rglob("*.py"):
        if path.name == Path(__file__).name:
            continue
        text = path.read_text()
        for name in re.findall(r'importorskip\(\s*"([^"]+)"', text):
            found.add(f"`{name.split('.')[0]}`")
        for reason in re.findall(r'(?:pytest\.skip\(\s*|reason=)f?"([^"]+)"', text):
            found.add(reason)
    assert len(found) > 15
    for reason in found:
        name = next((LISTED[key] for key in LISTED if key in reason), None)
        short = reason.replace(" are not here", "").replace(" is not installed", "")
        known = name if name is not None else short.split(":")[0].split(",")[0]
        assert known.lower() in listed.lower() or reason in NO_CASE, reason


@pytest.fixture(scope="module")
def recipe():
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    module = sys.modules["recipe"] = ModuleType("recipe")
    exec(compile(textwrap.dedent(code), "CONTRIBUTING.md", "exec"), vars(module))
    yield module.CountRows
    del sys.modules["recipe"]


@pytest.mark.parametrize("budget", [pf.PureDP(1), pf.ZCDP(0.1), pf.ApproxDP(1, 1e-6)], ids=repr)
def test_it_keeps_its_promise_and_breaks_it_with_half_the_noise(recipe, budget, monkeypatch):
    (world,) = recipe.worlds(Terms(budget, "add-remove"))
    found = check_world(world)
    assert found.problem is None and found.share == pytest.approx(1, rel=1e-6)
    draw = Randomness.draw
    monkeypatch.setattr(
        Randomness, "draw", lambda self, s, law, x: draw(self, s, law.quieter(Fraction(2)), x)
    )
    assert "above the stated" in check_world(world).problem


def test_it_charges_stores_and_replays(recipe, tmp_path):
    ledger = pf.Ledger(tmp_path / "l", pf.PureDP(1), adjacency="add-remove")
    terms = Terms(pf.PureDP(1), "add-remove", ledger=ledger, job="count")
    mechanism = recipe(terms, schema=pf.Schema({"a": 2}))
    released = mechanism.release(np.zeros((500, 1), int))
    assert 300 < released.count < 700  # Laplace noise of scale 1: never
    assert mechanism.release(None) == released
    with pytest.raises(pf.InputError, match="adjacency must be 'add-remove' for a row count"):
        replace(mechanism, terms=Terms(pf.PureDP(1), "replace-one"))
