"""The audit passes on this code, and fails on code that promises more than it keeps.

False alarms: a check of drawn numbers fails by chance with probability below 1e-9 each (see
`privfield.audit.finding`); enumerations have no randomness.
"""

from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from itertools import islice

import privfield as pf
from privfield.audit.primitives import noise, selection, stability
from privfield.audit.promise import check_world
from privfield.audit.run import NOT_AUDITED, audit_mechanism, audits, run_audit
from privfield.mechanisms.registry import MECHANISMS
from privfield.privacy.adjacency import Sensitivity
from privfield.privacy.mechanism import World
from privfield.privacy.noise import add_noise
from privfield.privacy.terms import Terms


class Few(World):
    """Two pairs of neighbours; tests/mechanisms/test_contract.py looks at all of them."""

    def neighbours(self):
        return islice(super().neighbours(), 2)


def test_every_claim_is_kept_here(monkeypatch):
    news, looked = [], []

    def whole(world):
        return world.mechanism.request(), len(world.units), len(world.starts)

    def look(world, seeds):
        looked.append(whole(world))
        return check_world(Few(**vars(world)), seeds)

    monkeypatch.setattr("privfield.audit.run.check_world", look)
    findings = run_audit(news.append)
    assert [each.mechanism for each in findings if not each.passed] == []
    wanted = []
    for kind in MECHANISMS:
        for adjacency in kind.adjacencies:
            for budget in (pf.PureDP(1), pf.ZCDP(0.1), pf.ApproxDP(0.7, 1e-6)):
                if kind.takes(terms := Terms(budget, adjacency)):
                    wanted += map(whole, kind.worlds(terms))
    assert looked == wanted  # every world of every mechanism, on all terms
    assert (
        len(findings) > 25
        and NOT_AUDITED
        and [each.done for each in news] == list(range(len(audits())))
    )
    assert all(each.claim and each.observed and each.how and each.page for each in findings)


def halved_noise(values, law, seed=None):
    return add_noise(values, replace(law, scale=law.scale / 2), seed)


def understated(function):
    """A sensitivity that is half of what it should be."""

    def wrong(*arguments, **options):
        right = function(*arguments, **options)
        return Sensitivity(-(-right.l1 // 2), -(-right.l2_squared // 4))

    return wrong


def failures(monkeypatch, audit, module, name, wrong):
    monkeypatch.setattr(import_module(module), name, wrong)  # pf.measure is a function
    return [each for each in audit() if not each.passed]


def test_half_the_noise_is_noticed(monkeypatch):
    module = "privfield.audit.primitives.noise"
    found = failures(monkeypatch, noise.audit_noise, module, "add_noise", halved_noise)
    assert len(found) == 2 and all("likelihood ratio" in each.observed for each in found)


def test_an_understated_sensitivity_of_a_mechanism_is_noticed(monkeypatch):
    """The audit watches what is drawn; it has no copy of any constant."""
    from privfield.mechanisms.tables.design import marginal_sensitivity
    from privfield.mechanisms.tables.mechanism import ContingencyTables

    found = failures(
        monkeypatch,
        lambda: audit_mechanism(ContingencyTables),
        "privfield.mechanisms.tables.design",
        "marginal_sensitivity",
        understated(marginal_sensitivity),
    )
    assert len(found) == 6 and all("above the stated" in each.observed for each in found)


def test_selections_with_half_the_scale_are_noticed(monkeypatch):
    from privfield.privacy.selection import exponential_mechanism_rows, permute_and_flip

    module = "privfield.audit.primitives.selection"
    for name, right in (
        ("exponential_mechanism_rows", exponential_mechanism_rows),
        ("permute_and_flip", permute_and_flip),
    ):
        with monkeypatch.context() as patch:
            found = failures(
                patch, selection.audit_selection, module, name, lambda s, t, f=right: f(s, t / 2)
            )
            assert len(found) == 1
    half = lambda r, e: Fraction(r) / (2 * e)  # noqa: E731
    audit = selection.audit_selection
    assert len(failures(monkeypatch, audit, module, "selection_scale_pure", half)) == 2


def test_releasing_too_often_is_noticed(monkeypatch):
    from privfield.privacy.stability import (
        majority_stability,
        may_release,
        mode_stability,
        release_probabilities,
    )

    module = "privfield.audit.primitives.stability"
    for name, wrong in (
        ("majority_stability", lambda *g: majority_stability(*g) + 1),
        ("mode_stability", lambda *g: mode_stability(*g) + 1),
        ("may_release", lambda *g: may_release(*g) or may_release(*g)),
        ("release_probabilities", lambda e, d: release_probabilities(e, 2 * d)),
    ):
        with monkeypatch.context() as patch:
            assert failures(patch, stability.audit_stability, module, name, wrong), name


def test_an_audit_that_cannot_run_does_not_pass(monkeypatch):
    def broken():
        raise RuntimeError("no entropy")

    monkeypatch.setattr("privfield.audit.run.audits", lambda: {"noise": broken})
    (finding,) = run_audit()
    assert not finding.passed and "no entropy" in finding.observed
