"""Faults planted in the source, where they would really stand: the audit and the contract see them.

Each fault is a line of the module written wrongly; a copy of the module with that line is run.
"""

import inspect
import sys
from importlib import import_module, util
from pathlib import Path
from types import ModuleType

import pytest

from privfield.audit.run import audit_mechanism
from privfield.privacy.budgets import ZCDP
from privfield.privacy.terms import Terms

ROOM = "privfield.mechanisms.parities"
CONTRACT = Path(__file__).parents[1] / "test_contract.py"

LEADER, WEIGHTS = ("sepfem", "PerturbedLeader"), ("pmw", "MultiplicativeWeights")
PHASES = ("phases", "RegressionsAndParities")
LOST = {
    LEADER: ("self.row_rho / (turns * each)", "self.row_rho"),
    WEIGHTS: ("/ (2 * turns)", "/ turns"),
}
FAULTS = {
    "sepfem: the rounds": (LEADER, *LOST[LEADER]),
    "sepfem: the choices": (LEADER, "/ (turns * each)", "/ turns"),
    "sepfem: the states": (LEADER, "(seen * range_sen", "(range_sen"),
    "sepfem: the window": (LEADER, "(seen * range_sen", "(draws * range_sen"),
    "sepfem: the range": (LEADER, "ADD_REMOVE else 4", "ADD_REMOVE else 3"),
    "pmw: the halves": (WEIGHTS, *LOST[WEIGHTS]),
    "pmw: the rounds": (WEIGHTS, "/ (2 * turns)", "/ 2"),
    "pmw: the range": (WEIGHTS, "zcdp(2 * reach", "zcdp(reach"),
    "phases: regressions spend it all": (PHASES, "terms(1 - self.share)", "terms(Fraction(1))"),
    "phases: only one is charged": (PHASES, "self.parities.cost if self.share else None", "None"),
    "pmw: a sum without noise": (WEIGHTS, "append(noisy)", "append(int(counts[pick]))"),
}


def contract():
    """The contract's own tests, as functions."""
    spec = util.spec_from_file_location("contract_of_mechanisms", CONTRACT)
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def with_fault(monkeypatch, module, right, wrong):
    """A copy of a module of this family in which one expression is another."""
    source = inspect.getsource(import_module(f"{ROOM}.{module}"))
    assert source.count(right) == 1
    twin = ModuleType(f"{ROOM}.{module}_with_a_fault")
    monkeypatch.setitem(sys.modules, twin.__name__, twin)  # dataclasses look their module up
    exec(compile(source.replace(right, wrong), twin.__name__, "exec"), vars(twin))
    return twin


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_fails_the_audit_and_the_contract(monkeypatch, fault):
    (module, name), right, wrong = FAULTS[fault]
    kind = getattr(with_fault(monkeypatch, module, right, wrong), name)
    assert any(not each.passed for each in audit_mechanism(kind))
    with pytest.raises(AssertionError):
        for adjacency in kind.adjacencies:
            contract().test_the_promise_is_kept_between_all_neighbours(
                kind, Terms(ZCDP(0.1), adjacency)
            )


@pytest.mark.parametrize("which", LOST, ids=lambda which: which[1])
def test_a_lost_division_is_seen_under_every_adjacency_and_budget(monkeypatch, which):
    kind = getattr(with_fault(monkeypatch, which[0], *LOST[which]), which[1])
    findings = audit_mechanism(kind)
    assert len(findings) == 4 and not any(each.passed for each in findings)
    assert all("above the stated" in each.observed for each in findings)


@pytest.mark.parametrize("which", LOST, ids=lambda which: which[1])
def test_rows_of_people_that_are_counted_once_are_seen(monkeypatch, which):
    """A person of two rows moves sums twice as far, and scales must follow."""
    monkeypatch.setattr(f"{ROOM}.base.unit_weight", lambda schema: 1)
    findings = audit_mechanism(getattr(import_module(f"{ROOM}.{which[0]}"), which[1]))
    assert findings and not any(each.passed for each in findings)
    assert all("people" in each.observed for each in findings)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("l1, l2_squared = 2 * moved, 4 * moved", "l1, l2_squared = moved, 2 * moved"),
        ("count_sets(variables, order) + with_count", "count_sets(variables, order)"),
        ("numbers[: counts.size]", "exact[: counts.size]"),
    ],
    ids=["replaced", "the count", "sums without noise"],
)
def test_wrong_noise_on_sums_is_seen(monkeypatch, right, wrong):
    kind = with_fault(monkeypatch, "gaussian", right, wrong).NoisyParities
    assert any(not each.passed for each in audit_mechanism(kind))


def test_the_copy_without_a_fault_passes(monkeypatch):
    for module, name in (("gaussian", "NoisyParities"), *LOST):
        kind = getattr(with_fault(monkeypatch, module, name, name), name)
        assert all(each.passed for each in audit_mechanism(kind))
