"""Running the installed program, and the variables of the study that its tests use."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(sys.executable).with_name("privfield")
NAMES = ["low mood", "poor sleep", "fatigue", "worry"]


def installed(*arguments, **options):
    """Run the installed program as a shell would; stdout and stderr are pipes."""
    if not PROGRAM.exists():
        pytest.skip("the program privfield is not installed next to this Python")
    options = {
        "capture_output": True,
        "text": True,
        "timeout": 300,
        "stdin": subprocess.DEVNULL,
    } | options
    return subprocess.run([PROGRAM, *map(str, arguments)], **options)


def start(*arguments, **options):
    """The same, without waiting for its end."""
    if not PROGRAM.exists():
        pytest.skip("the program privfield is not installed next to this Python")
    return subprocess.Popen([PROGRAM, *map(str, arguments)], **options)
