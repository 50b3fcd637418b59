"""The short version of experiments/fuzz.py: a right answer or one InputError."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "experiments" / "fuzz.py"
_spec = importlib.util.spec_from_file_location("fuzz_experiment", SCRIPT)
fuzz = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(fuzz)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of numpy, on odd numbers in model files
@pytest.mark.parametrize("kind", fuzz.TARGETS, ids=lambda kind: kind.name)
def test_mutations_give_a_right_answer_or_one_input_error(kind, tmp_path):
    found = fuzz.attack(kind(tmp_path), seed=0, numbers=range(300))
    assert not found.faults
    assert found.cases == 300
    assert found.answered and found.refused


@pytest.mark.parametrize("kind", fuzz.TARGETS, ids=lambda kind: kind.name)
def test_a_wrong_answer_is_seen(kind, tmp_path):
    target = kind(tmp_path)

    def wrong(case):
        raise ZeroDivisionError

    target.answer = wrong
    assert len(fuzz.attack(target, seed=0, numbers=range(3)).faults) == 3
