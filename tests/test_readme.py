"""What the README and the examples show runs as shown."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import privfield as pf

ROOT = Path(__file__).parents[1]
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


def test_the_readme_example_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    pd.DataFrame(
        {
            "smoker": rng.choice(["no", "yes"], 1000),
            "age": rng.integers(0, 100, 1000),
            "region": rng.integers(0, 12, 1000),
        }
    ).to_csv("patients.csv", index=False)
    assert len(BLOCKS) == 1
    exec(compile(BLOCKS[0], "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert re.search(r"smoker +0-18 +18-40 +40-65 +65-120", printed)
    assert "of privacy noise" in printed and "ZCDP(rho=" in printed
    m = pf.Measurements.load("measurements.zip")
    assert abs(m.table(("smoker", "age")).sum() - 1000) < 2000


def test_what_the_readme_points_at_exists():
    text = (ROOT / "README.md").read_text()
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (ROOT / target).exists(), target


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_examples_run(example, tmp_path):
    done = subprocess.run(
        [sys.executable, example], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert done.stderr == ""
