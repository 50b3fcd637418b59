"""The list of planted privacy faults fits the source, and planting finds out who sees a fault."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "experiments" / "mutants.py"
_spec = importlib.util.spec_from_file_location(
    "planted_faults", ROOT / "experiments" / "planted_faults.py"
)
planted = importlib.util.module_from_spec(_spec)
sys.modules["planted_faults"] = planted  # dataclasses look their module up
_spec.loader.exec_module(planted)


def test_each_fault_has_one_place_in_the_source():
    for fault in planted.FAULTS:
        text = (ROOT / "src" / "privfield" / fault.file).read_text()
        assert text.count(fault.old) == 1, fault.what
        compile(text.replace(fault.old, fault.new), fault.file, "exec")
        assert (ROOT / fault.tests[0]).exists()


def test_there_are_many_and_those_that_survived_once_are_among_them():
    assert len({fault.what for fault in planted.FAULTS}) == len(planted.FAULTS) >= 60
    assert sum(fault.named for fault in planted.FAULTS) >= 8
    assert {fault.file.split("/")[0] for fault in planted.FAULTS} == {
        *("privacy", "mechanisms", "data")
    }


@pytest.mark.slow
def test_a_planted_fault_is_caught_and_a_harmless_change_survives(tmp_path):
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import mutants\n"
        "from planted_faults import Fault, tests\n"
        "def fault(new, seen): return Fault('', 'privacy/laws.py', 'width**2 / 8', new, seen)\n"
        "laws, races = tests('privacy/test_laws.py'), ('tests/privacy/test_ledger.py', '-k', "
        "'eight_processes')\n"
        "harmless = 'width**2 / (4 + 4)'\n"
        "faults = [fault('width**2 / 9', laws), fault(harmless, laws), fault(harmless, races)]\n"
        "found = mutants.attack(faults)\n"
        "print([seen.outcome for seen in found])\n"
    )
    line = [sys.executable, "-c", program, str(SCRIPT.parent)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=600, cwd=tmp_path)
    assert done.stdout.strip() == "['caught', 'SURVIVED', 'SURVIVED']", done.stdout + done.stderr
