"""The audit passes on this code, and fails on code that promises more than it keeps.

False alarms: a check of drawn numbers fails by chance with probability below 1e-9 each (see
`privfield.audit.finding`); enumerations have no randomness.
"""

from dataclasses import replace
from fractions import Fraction
from importlib import import_module

import pytest

from privfield.audit import (
    chains,
    edge_selection,
    frank_wolfe,
    marginals,
    moments,
    network,
    parity_rounds,
    peer_methods,
)
from privfield.audit.primitives import noise, selection, stability
from privfield.audit.run import NOT_AUDITED, audits, run_audit
from privfield.privacy.adjacency import Sensitivity
from privfield.privacy.noise import add_noise


def test_every_claim_is_kept_here():
    news = []
    findings = run_audit(news.append)
    assert [each.mechanism for each in findings if not each.passed] == []
    assert (
        len(findings) > 50
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


DRAWN = [
    (noise.audit_noise, "privfield.audit.primitives.noise", 2),
    (marginals.audit_marginals, "privfield.mechanisms.tables.mechanism", 1),
    (moments.audit_moments, "privfield.mechanisms.moments.mechanism", 1),
    (moments.audit_parities, "privfield.mechanisms.parities.mechanism", 1),
    (network.audit_network, "privfield.mechanisms.peers.statistics", 1),
    (chains.audit_chains, "privfield.mechanisms.chains.mechanism", 1),
    (parity_rounds.audit_parity_rounds, "privfield.mechanisms.parities.pmw", 1),
    (peer_methods.audit_peer_methods, "privfield.mechanisms.peers.objective", 1),
]


@pytest.mark.parametrize(("audit", "module", "times"), DRAWN, ids=[each[1] for each in DRAWN])
def test_half_the_noise_is_noticed(monkeypatch, audit, module, times):
    found = failures(monkeypatch, audit, module, "add_noise", halved_noise)
    assert len(found) == times and all("likelihood ratio" in each.observed for each in found)


def test_understated_sensitivities_are_noticed(monkeypatch):
    from privfield.mechanisms.moments.mechanism import moment_sensitivity
    from privfield.mechanisms.parities.gaussian import parity_sensitivity
    from privfield.mechanisms.tables.design import marginal_sensitivity

    cases = [
        (moments.audit_moments, "privfield.mechanisms.moments.mechanism", moment_sensitivity, 4),
        (moments.audit_parities, "privfield.mechanisms.parities.gaussian", parity_sensitivity, 4),
        (marginals.audit_marginals, "privfield.mechanisms.tables.design", marginal_sensitivity, 3),
    ]
    for audit, module, function, times in cases:
        wrong = understated(function)
        assert len(failures(monkeypatch, audit, module, function.__name__, wrong)) == times


def test_a_residual_design_with_too_little_noise_is_noticed(monkeypatch):
    from privfield.mechanisms.tables.design import choose_design

    def wrong(task, budget, name, kind):
        right = choose_design(task, budget, name, kind)
        parts = [replace(p, law=replace(p.law, scale=0.99 * p.law.scale)) for p in right.parts]
        return replace(right, parts=tuple(parts))

    found = failures(
        monkeypatch, marginals.audit_marginals, "privfield.audit.marginals", "choose_design", wrong
    )
    assert len(found) == 6


def test_a_network_statistic_that_moves_further_is_noticed(monkeypatch):
    from privfield.mechanisms.peers.statistics import choose_laws

    def wrong(budget, sensitivities, kind="auto"):
        return choose_laws(budget, [max(1, s // 2) for s in sensitivities], kind)

    module = "privfield.mechanisms.peers.statistics"
    assert len(failures(monkeypatch, network.audit_network, module, "choose_laws", wrong)) == 2


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


def test_a_score_range_that_is_understated_is_noticed(monkeypatch):
    from privfield.mechanisms.frank_wolfe.selection import range_of

    found = failures(
        monkeypatch,
        frank_wolfe.audit_frank_wolfe,
        "privfield.mechanisms.frank_wolfe.selection",
        "range_of",
        lambda *given: range_of(*given) // 2,
    )
    assert len(found) == 2


def test_rounds_of_parities_that_cost_more_are_noticed(monkeypatch):
    """Half the range, half the scale of choices, or half the noise in the rounds."""
    from privfield.mechanisms.parities.pmw import gaussian_scale, selection_scale_zcdp
    from privfield.mechanisms.parities.sepfem import range_sensitivity
    from privfield.privacy.selection import exponential_mechanism

    audit, module = parity_rounds.audit_parity_rounds, "privfield.mechanisms.parities.pmw"
    for where, name, wrong, times in (
        ("privfield.audit.parity_rounds", "range_sensitivity", range_sensitivity, 2),
        (module, "selection_scale_zcdp", selection_scale_zcdp, 2),
        (module, "gaussian_scale", gaussian_scale, 2),
    ):
        with monkeypatch.context() as patch:
            half = lambda *given, f=wrong: type(f(*given))(Fraction(f(*given)) / 2)  # noqa: E731
            assert len(failures(patch, audit, where, name, half)) == times, name

    def surer(scores, scale, **options):
        return exponential_mechanism(scores, scale / 2, **options)

    found = failures(monkeypatch, audit, module, "exponential_mechanism", surer)
    assert [each.mechanism for each in found] == ["parities by PMW, choices"]


def test_chains_that_count_more_of_a_person_are_noticed(monkeypatch):
    from privfield.mechanisms.chains.mechanism import Weights

    right = Weights.sensitivity

    def wrong(self, adjacency):
        found = right(self, adjacency)
        return Sensitivity(found.l1 // 2, found.l2_squared // 4)

    monkeypatch.setattr(Weights, "sensitivity", wrong)
    assert len([each for each in chains.audit_chains() if not each.passed]) == 4


def test_scores_of_edges_that_move_further_are_noticed(monkeypatch):
    """A distance that is counted twice moves twice as far as its scale allows for."""
    from privfield.mechanisms.edges.scores import distance

    wrong = lambda *given: 2 * distance(*given)  # noqa: E731
    audit, module = edge_selection.audit_edge_selection, "privfield.audit.edge_selection"
    assert len(failures(monkeypatch, audit, module, "distance", wrong)) == 4


def test_other_peer_methods_with_less_noise_are_noticed(monkeypatch):
    from privfield.mechanisms.peers.local import draw_offset, rung_width
    from privfield.mechanisms.peers.objective import plan_objective

    audit, module = peer_methods.audit_peer_methods, "privfield.audit.peer_methods"

    def narrow(pull, ceiling, slope, rung):  # rungs that forget how fast the pull may grow
        return rung_width(pull, ceiling, 1, rung)

    with monkeypatch.context() as patch:
        found = failures(patch, audit, module, "rung_width", narrow)
        assert "inverse sensitivity" in found[0].mechanism

    def surer(pull, ceiling, slope, epsilon, source):
        return draw_offset(pull, ceiling, slope, 2 * epsilon, source)

    with monkeypatch.context() as patch:
        found = failures(patch, audit, "privfield.mechanisms.peers.local", "draw_offset", surer)
        assert len(found) == 1 and "likelihood" in found[0].observed

    def quiet(*given):
        right = plan_objective(*given)
        return replace(right, law=replace(right.law, scale=right.law.scale / 4))

    with monkeypatch.context() as patch:
        found = failures(patch, audit, module, "plan_objective", quiet)
        assert any(each.claim.startswith("ε") for each in found)


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
