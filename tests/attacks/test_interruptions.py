"""The short version of experiments/interruptions.py: one charge, one set of draws, one result."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "experiments" / "interruptions.py"


@pytest.mark.slow
def test_kills_races_and_interrupts(tmp_path):
    """Failures of any kind end the script with FAULT."""
    numbers = ("--kills", "4", "--programs", "0", "--racers", "2", "--rounds", "1", "--jobs", "8")
    line = [sys.executable, str(SCRIPT), *numbers]
    done = subprocess.run(line, capture_output=True, text=True, timeout=600, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [each.split()[0] for each in done.stdout.splitlines()] == [
        "kills",
        "races",
        "interrupts",
    ]
