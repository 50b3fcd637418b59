"""The ledger: exact sums, refusals that say why, damaged files, many processes, kill -9."""

import contextlib
import json
import math
import multiprocessing
import os
import random
import re
import sqlite3
import subprocess
import sys
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist
from typing import ClassVar

import numpy as np
import pytest

import privfield as pf
from privfield.cli import main
from privfield.privacy.budgets import GaussianDP
from privfield.privacy.ledger import Ledger
from privfield.privacy.mechanism import Mechanism
from privfield.privacy.noise import gaussian_cost
from privfield.privacy.released import Released
from privfield.privacy.terms import Terms
from privfield.reporting.review import review_card

REPLACE = "replace-one"


def exact_delta(pure, rho, epsilon):
    """The exact δ of pure releases at their worst (randomised response: loss ±ε) and Gaussian ones.

    Given the signs of the pure losses, what is left is a Gaussian curve at a shifted ε.
    """
    mu, cdf = math.sqrt(2 * rho), NormalDist().cdf
    losses = {0.0: 1.0}
    for e in pure:
        likely = math.exp(e) / (1 + math.exp(e))
        shifted = {}
        for loss, chance in losses.items():
            for step, weight in ((e, likely), (-e, 1 - likely)):
                key = round(loss + step, 12)
                shifted[key] = shifted.get(key, 0) + chance * weight
        losses = shifted
    curve = {
        loss: cdf(mu / 2 - (epsilon - loss) / mu)
        - math.exp(epsilon - loss) * cdf(-mu / 2 - (epsilon - loss) / mu)
        for loss in losses
    }
    return sum(chance * curve[loss] for loss, chance in losses.items())


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.ledger"


def test_ten_tenths_fill_one_and_the_eleventh_is_refused(path):
    ledger = pf.Ledger(path, total=pf.PureDP(1))
    for _ in range(10):
        ledger.charge("a table", pf.PureDP(0.1), REPLACE)
    assert ledger.spent.epsilon == 1 and ledger.spent_epsilon == 1
    assert ledger.remaining is None
    with pytest.raises(pf.BudgetRefused, match=r"Requested: .*Remaining: nothing.*Missing: eps"):
        ledger.charge("one more", pf.PureDP(1e-9), REPLACE)
    assert len(ledger.charges()) == 10


def test_refusal_says_requested_remaining_missing(path):
    ledger = pf.Ledger(path, total=pf.ZCDP(0.5))
    ledger.charge("first", pf.ZCDP(0.4), REPLACE)
    with pytest.raises(pf.BudgetRefused) as caught:
        ledger.charge("second", pf.ZCDP(0.3), REPLACE)
    text = str(caught.value)
    assert "Requested: ZCDP(rho=0.3). Remaining: ZCDP(rho=0.1). Missing: rho=0.2" in text
    assert isinstance(caught.value, ValueError)
    assert ledger.remaining == pf.ZCDP(0.1)


def test_the_whole_budget_fits_as_one_charge_of_any_kind(tmp_path):
    total = pf.ApproxDP(1, 1e-6)
    for number, cost in enumerate([total, pf.ZCDP(total.rho), pf.PureDP(1)]):
        ledger = pf.Ledger(tmp_path / f"{number}", total=total)
        ledger.charge("all of it", cost, REPLACE)
        assert ledger.spent_epsilon <= 1 + 1e-12


def test_an_approximate_total_admits_more_small_charges_than_adding_epsilons(path):
    ledger = pf.Ledger(path, total=pf.ApproxDP(1, 1e-6))
    for _ in range(100):  # adding ε would stop at 50
        ledger.charge("small", pf.PureDP(0.02), REPLACE)
    assert 0.9 < ledger.spent_epsilon <= 1


def test_a_stable_release_and_gaussian_noise_never_report_less_than_they_spent(path):
    ledger = pf.Ledger(path, total=pf.ApproxDP(2, 1e-6), stable_delta=5e-7)
    ledger.charge("structure", pf.ApproxDP(0.2, 4e-7), REPLACE)
    ledger.charge("tables", pf.ZCDP(0.03), REPLACE)
    cost = ledger.spent
    assert (cost.rho, cost.delta, cost.epsilon) == (0.05, 4e-7, None)
    # The stable release alone costs ε²/2 in ρ: the wrong conversion by .rho would hide most of it.
    assert cost.rho > pf.ApproxDP(0.2, 4e-7).rho + 0.03
    assert 4e-7 + exact_delta([0.2], 0.03, ledger.spent_epsilon) <= 1e-6
    hidden = pf.ZCDP(pf.ApproxDP(0.2, 4e-7).rho + 0.03).epsilon_at(1e-6)
    assert ledger.spent_epsilon > hidden
    with pytest.raises(pf.BudgetRefused, match=r"delta=1e-07.*stable_delta"):
        ledger.charge("another structure", pf.ApproxDP(0.1, 2e-7), REPLACE)


def test_parts_of_a_total_fit_together(tmp_path):
    """Thirds of (ε, δ) as stable releases; thirds of ρ; (ε, δ) thirds asked of Gaussian noise."""
    total = pf.ApproxDP(1, 1e-6)
    for number, parts in enumerate([total.split([1, 1, 1]), pf.ZCDP(total.rho).split([1, 1, 1])]):
        ledger = pf.Ledger(tmp_path / str(number), total=total)
        for part in parts:
            ledger.charge("part", part, REPLACE)
        assert ledger.remaining is None
        with pytest.raises(pf.BudgetRefused):
            ledger.charge("one more", pf.PureDP(0.001), REPLACE)
    ledger = pf.Ledger(tmp_path / "mixed", total=total)
    first, second, third = total.split([1, 1, 1])
    ledger.charge("structure", first, REPLACE)
    for part in (second, third):  # as measure charges Gaussian noise for an (ε, δ) budget
        ledger.charge("tables", pf.ZCDP(part.rho), REPLACE, claim=part)
    assert ledger.spent_epsilon == pytest.approx(1)
    with pytest.raises(pf.BudgetRefused, match="Missing"):
        ledger.charge("more", pf.ZCDP(1e-9), REPLACE)


def test_what_delta_is_for_is_settled_by_the_first_charge(tmp_path):
    total = pf.ApproxDP(1, 1e-6)
    rho = pf.Ledger(tmp_path / "rho", total=total)
    rho.charge("tables", pf.ZCDP(total.rho * 0.1), REPLACE)
    with pytest.raises(pf.BudgetRefused, match=r"delta=1e-09.*settled by the first release"):
        rho.charge("structure", pf.ApproxDP(1e-3, 1e-9), REPLACE)
    adding = pf.Ledger(tmp_path / "adding", total=total)
    adding.charge("structure", pf.ApproxDP(0.1, 1e-7), REPLACE)
    assert adding.remaining == pf.ApproxDP(0.9, 9e-7)
    with pytest.raises(pf.BudgetRefused, match=r"an \(ε, δ\) for every release"):
        adding.charge("tables", pf.ZCDP(1e-6), REPLACE)
    chosen = pf.Ledger(tmp_path / "chosen", total=total, stable_delta=9e-7)
    with pytest.raises(pf.BudgetRefused):
        chosen.charge("too much", pf.ZCDP(total.rho * 0.99), REPLACE)
    chosen.charge("structure", pf.ApproxDP(0.1, 9e-7), REPLACE)
    with pytest.raises(pf.BudgetRefused, match="delta=1e-06"):
        pf.Ledger(tmp_path / "over", total=total).charge("x", pf.ApproxDP(0.1, 2e-6), REPLACE)
    both = pf.Ledger(tmp_path / "both", total=total)
    both.charge("structure and tables", pf.ApproxDP(0.1, 4e-7) + pf.ZCDP(0.01), REPLACE)
    assert isinstance(both.remaining, pf.ZCDP)


def test_pure_totals_refuse_gaussian_noise_and_zcdp_totals_refuse_a_delta(tmp_path):
    pure = pf.Ledger(tmp_path / "pure", total=pf.PureDP(1))
    with pytest.raises(pf.BudgetRefused, match="a pure ε"):
        pure.charge("gaussian", pf.ZCDP(1e-9), REPLACE)
    zcdp = pf.Ledger(tmp_path / "zcdp", total=pf.ZCDP(1))
    with pytest.raises(pf.BudgetRefused, match="a total with δ"):
        zcdp.charge("stable", pf.ApproxDP(0.1, 1e-9), REPLACE)
    zcdp.charge("pure", pf.PureDP(1), REPLACE)
    assert zcdp.remaining == pf.ZCDP(0.5)


def test_a_large_pure_charge_leaves_room_for_gaussian_noise(path):
    """ε²/2 of a pure charge would eat all of ρ; at the ledger's order it counts only ε/α."""
    ledger = pf.Ledger(path, total=pf.ApproxDP(3, 1e-6))
    ledger.charge("laplace", pf.PureDP(1), REPLACE)
    assert pf.PureDP(1).rho > pf.ApproxDP(3, 1e-6).rho
    left = ledger.remaining
    assert isinstance(left, pf.ZCDP)
    assert 0.5 * pf.ApproxDP(2, 1e-6).rho < left.rho < pf.ApproxDP(2, 5e-7).rho
    ledger.charge("gaussian", left, REPLACE)
    assert ledger.spent_epsilon == pytest.approx(3, rel=1e-9)
    assert ledger.remaining is None


@pytest.mark.parametrize("costs", [[(0.5, 0.01)], [(0.1, 0.005)] * 3, [(0.02, 0.0005)] * 20])
def test_mixed_charges_report_no_less_than_their_exact_loss(path, costs):
    ledger = pf.Ledger(path, total=pf.ApproxDP(3, 1e-6))
    for epsilon, rho in costs:
        ledger.charge("laplace", pf.PureDP(epsilon), REPLACE)
        ledger.charge("gaussian", pf.ZCDP(rho), REPLACE)
    epsilons, rho = [epsilon for epsilon, _ in costs], sum(rho for _, rho in costs)
    assert exact_delta(epsilons, rho, ledger.spent_epsilon) <= 1e-6
    assert exact_delta(epsilons, rho, ledger.spent_epsilon / 3) > 1e-6  # and the claim is not idle


@pytest.mark.parametrize(
    "spent", [[], ["pure"], ["gaussian"], ["pure", "gaussian"], ["most"], ["all"]]
)
@pytest.mark.parametrize("delta", [1e-5, 1e-9])
def test_the_epsilons_that_are_left_are_accepted_and_no_larger_ones(tmp_path, spent, delta):
    def charge(ledger, kind, epsilon):
        budget = pf.ApproxDP(epsilon, delta)
        cost = pf.PureDP(epsilon) if kind == "pure" else gaussian_cost(budget, 1000)
        ledger.charge("a table", cost, REPLACE, claim=budget)

    for number, kind in enumerate(("gaussian", "pure")):
        ledger = Ledger(tmp_path / kind, pf.ApproxDP(2, delta))
        for each in spent:
            charge(ledger, each, {"all": 2, "most": 1.98}.get(each, 0.7))
        left = ledger.remaining_epsilons()[number]
        if spent == ["all"]:
            assert left is None and str(ledger).splitlines()[1].endswith("remaining nothing")
            return
        assert left == 2 if not spent else 0 < left < 2
        for shown in (str(ledger), ledger._repr_html_()):
            assert f"epsilon={left:g}" in shown
        with pytest.raises(pf.BudgetRefused):
            charge(ledger, kind, left * 1.002)
        charge(ledger, kind, left)


def test_a_release_that_only_the_curve_admits_settles_it(path):
    total = pf.ApproxDP(1, 1e-6)
    ledger = pf.Ledger(path, total=total)
    ledger.charge("tables", gaussian_cost(pf.ApproxDP(0.98, 1e-6), 1000), REPLACE)
    assert ledger.spent_epsilon == pytest.approx(0.98, abs=1e-6)
    assert isinstance(ledger.remaining, GaussianDP)
    with pytest.raises(pf.BudgetRefused, match="Gaussian noise, or a pure ε, in every release"):
        ledger.charge("choices", pf.ZCDP(1e-6), REPLACE)
    with pytest.raises(pf.BudgetRefused, match="Missing: rho="):
        ledger.charge("tables", gaussian_cost(pf.ApproxDP(0.3, 1e-6), 1000), REPLACE)
    again = pf.Ledger(path)
    again.charge("the rest", again.remaining, REPLACE)
    assert again.remaining is None and again.spent_epsilon == 1


def test_nothing_for_stable_releases_leaves_all_to_the_curve(path):
    ledger = pf.Ledger(path, total=pf.ApproxDP(1, 1e-6), stable_delta=0)
    with pytest.raises(pf.BudgetRefused, match="stable_delta"):
        ledger.charge("structure", pf.ApproxDP(0.1, 1e-9), REPLACE)
    budget = pf.ApproxDP(ledger.remaining_epsilons()[0], 1e-6)
    ledger.charge("tables", gaussian_cost(budget, 1000), REPLACE, claim=budget)
    assert ledger.remaining is None


def test_how_costs_add_up_is_sealed(path):
    ledger = pf.Ledger(path, total=pf.ApproxDP(1, 1e-6))
    ledger.charge("tables", gaussian_cost(pf.ApproxDP(0.5, 1e-6), 1000), REPLACE)
    with sqlite3.connect(path) as db:
        db.execute("INSERT INTO meta VALUES ('on_curve', 'yes')")
    with pytest.raises(pf.InputError, match="not as it was written"):
        pf.Ledger(path)


def test_a_ledger_has_no_gaussian_total(path):
    with pytest.raises(pf.InputError, match="total must be"):
        pf.Ledger(path, total=GaussianDP(1))


def test_the_epsilons_that_are_left_of_other_totals(tmp_path):
    assert Ledger(tmp_path / "a", pf.PureDP(1)).remaining_epsilons() == (None, 1)
    assert Ledger(tmp_path / "b", pf.ZCDP(1)).remaining_epsilons() == (None, None)


def test_remaining_is_what_one_more_release_may_cost(path):
    ledger = pf.Ledger(path, total=pf.ApproxDP(1, 1e-6))
    ledger.charge("pure", pf.PureDP(0.7), REPLACE)
    assert ledger.remaining == pf.PureDP(0.3)
    with pytest.raises(
        pf.BudgetRefused,
        match=r"Remaining: PureDP\(epsilon=0\.3\)\. Missing: rho=0\.00\d+, or a pure ε",
    ):
        ledger.charge("gaussian", pf.ZCDP(0.001), REPLACE)
    with pytest.raises(pf.BudgetRefused, match=r"Missing: rho=0\.0\d+, or epsilon=0\.1\."):
        ledger.charge("more", pf.PureDP(0.4), REPLACE)
    ledger.charge("the rest", ledger.remaining, REPLACE)
    assert ledger.remaining is None


def test_one_adjacency_per_ledger(path):
    ledger = pf.Ledger(path, total=pf.PureDP(1), adjacency="add-remove")
    with pytest.raises(pf.InputError, match="add-remove releases; got 'replace-one'"):
        ledger.charge("x", pf.PureDP(0.1), REPLACE)
    with pytest.raises(pf.InputError, match="is for add-remove adjacency, not replace-one"):
        pf.Ledger(path, adjacency=REPLACE)
    assert ledger.charges() == []
    assert pf.Ledger(path).adjacency == "add-remove"


def test_the_same_job_is_charged_once_and_another_request_is_refused(path):
    ledger = pf.Ledger(path, total=pf.PureDP(1))
    for _ in range(3):
        assert ledger.charge("t", pf.PureDP(0.6), REPLACE, job="a", request="r") == "a"
    assert ledger.spent.epsilon == 0.6
    other = [
        {"request": "other"},
        {"request": "r", "cost": pf.PureDP(50)},
        {"request": "r", "what": "u"},
        {"request": "r", "unit": "person (id)"},
    ]
    for change in other:
        asked = {"what": "t", "cost": pf.PureDP(0.6), "adjacency": REPLACE, "job": "a"} | change
        with pytest.raises(pf.InputError, match="job 'a' in this ledger was another request"):
            ledger.charge(**asked)
    assert ledger.spent.epsilon == 0.6


def test_one_privacy_unit_per_ledger(path):
    ledger = pf.Ledger(path, total=pf.PureDP(1))
    assert ledger.unit is None
    ledger.charge("t", pf.PureDP(0.1), REPLACE, unit="person (id)")
    with pytest.raises(pf.InputError, match=r"protects one person \(id\); this release .* one row"):
        ledger.charge("t", pf.PureDP(0.1), REPLACE)
    assert ledger.unit == "person (id)" and ledger.charges()[0].unit == "person (id)"
    assert ledger.spent.epsilon == 0.1


@dataclass(frozen=True)
class Text(Released):
    """What these tests release."""

    KIND: ClassVar[str] = "text"

    text: str


@dataclass(frozen=True, eq=False)
class Says(Mechanism[Text]):
    """Releases what a function says; `data` is that function."""

    noun = "tests"
    page = "none"
    releases = Text
    cost = property(lambda self: self.terms.budget)
    title = "t"

    def request(self):
        return {"q": 1}

    def open(self, data):
        return lambda randomness: Text(data())

    @classmethod
    def worlds(cls, terms):
        return iter(())


def run_release(ledger, job, run, cost=None):
    terms = Terms(cost or pf.PureDP(0.5), ledger=ledger, job=job)
    return Says(terms).release(run).text


def test_a_release_is_charged_before_it_runs_and_stored_before_it_returns(path):
    ledger = pf.Ledger(path, total=pf.PureDP(1))
    seen = []

    def run():
        seen.append([charge.job for charge in pf.Ledger(path).charges()])
        return "noisy"

    assert run_release(ledger, "a", run) == "noisy"
    assert seen == [["a"]] and Text.from_bytes(ledger.result("a")) == Text("noisy")
    assert run_release(ledger, "a", lambda: "fresh noise") == "noisy"
    assert ledger.spent.epsilon == 0.5


def test_an_interrupted_job_finishes_later_at_no_cost_and_the_error_says_so(path):
    ledger = pf.Ledger(path, total=pf.PureDP(1))

    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        run_release(ledger, None, interrupted)
    job = re.search(r"job='(\w+)'", caught.value.__notes__[0]).group(1)
    assert run_release(ledger, job, lambda: "now") == "now"
    assert ledger.spent.epsilon == 0.5


def test_a_finished_job_does_not_open_its_data_again(path, monkeypatch):
    ledger = pf.Ledger(path, total=pf.PureDP(1))
    run_release(ledger, "a", lambda: "noisy")
    monkeypatch.setattr(Says, "open", lambda self, data: pytest.fail("the data was touched"))
    assert run_release(ledger, "a", None) == "noisy"


def test_two_runs_of_one_job_release_one_draw(path):
    ledger = pf.Ledger(path, total=pf.PureDP(1))

    def slow():  # while this one computes, another process finishes the same job
        assert run_release(pf.Ledger(path), "a", lambda: "first") == "first"
        return "second"

    assert run_release(ledger, "a", slow) == "first"


def test_a_skipped_charge_is_caught(path, monkeypatch):
    ledger = pf.Ledger(path, total=pf.PureDP(1))
    monkeypatch.setattr(Ledger, "charge", lambda self, *args, job=None, **rest: job or "a")
    with pytest.raises(pf.InputError, match="job 'a' was never charged"):
        run_release(ledger, "a", lambda: "noisy")


def test_non_private_and_stray_jobs_are_refused(path):
    ledger = pf.Ledger(path, total=pf.PureDP(1))
    with pytest.raises(pf.InputError, match="NON_PRIVATE cannot be charged"):
        run_release(ledger, "a", lambda: "", cost=pf.NON_PRIVATE)
    with pytest.raises(pf.InputError, match="job needs a ledger"):
        run_release(None, "a", lambda: "")
    with pytest.raises(pf.InputError, match=r"ledger must be a pf\.Ledger; got str"):
        run_release("study.ledger", "a", lambda: "")
    for job in ("", 5, "\ud800"):
        with pytest.raises(pf.InputError, match="job must be non-empty text"):
            run_release(ledger, job, lambda: "")
    with pytest.raises(pf.InputError, match="what must be non-empty text"):
        ledger.charge(None, pf.PureDP(0.1), REPLACE)
    assert ledger.charges() == []


def test_charges_tell_what_was_released_with_which_code(path):
    ledger = pf.Ledger(path, total=pf.ApproxDP(1, 1e-6))
    ledger.charge("3 tables", pf.ZCDP(Fraction(1, 300)), REPLACE, job="a")
    (charge,) = pf.Ledger(path).charges()
    assert charge.cost == pf.ZCDP(Fraction(1, 300))
    assert (charge.job, charge.what, charge.version) == ("a", "3 tables", pf.__version__)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", charge.time)
    assert "3 tables" in str(ledger) and "remaining" in str(ledger)
    standing = str(ledger).splitlines()[1]
    spent, gaussian, pure = (float(e) for e in re.findall(r"epsilon=([\d.e-]+)", standing))
    assert (gaussian, pure) == ledger.remaining_epsilons()  # in ε, as the total is
    assert 0 < spent < 1 and spent == pytest.approx(ledger.spent_epsilon, rel=1e-5)
    assert f"remaining {ledger.remaining}" in str(ledger)  # and as costs add up


def test_opening_a_ledger_again_needs_the_same_total(path):
    pf.Ledger(path, total=pf.PureDP(1))
    with pytest.raises(pf.InputError, match=r"has the total PureDP\(epsilon=1\), not PureDP"):
        pf.Ledger(path, total=pf.PureDP(2))
    assert pf.Ledger(path).total == pf.PureDP(1)


@pytest.mark.parametrize(
    "content", [b"age,smoker\n3,yes\n" * 100, b"SQLite format 3\0" + b"x" * 500]
)
def test_other_files_are_not_touched(path, content):
    path.write_bytes(content)
    with pytest.raises(pf.InputError, match="not a ledger"):
        pf.Ledger(path, total=pf.PureDP(1))
    assert path.read_bytes() == content


def test_another_database_is_not_touched(path):
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE mine (x)")
    before = path.read_bytes()
    with pytest.raises(pf.InputError, match="a database, but not a privfield ledger"):
        pf.Ledger(path, total=pf.PureDP(1))
    assert path.read_bytes() == before


def test_a_ledger_of_a_later_format_is_refused(path):
    pf.Ledger(path, total=pf.PureDP(1))
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(pf.InputError, match="ledger format 99; this is 2"):
        pf.Ledger(path)


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM meta WHERE name = 'total'",
        "DELETE FROM meta WHERE name = 'unit'",
        "DELETE FROM meta WHERE name = 'adding'",
        "UPDATE meta SET value = '{' WHERE name = 'total'",
        "UPDATE meta SET value = (SELECT cost FROM charges) || '}' WHERE name = 'total'",
        "UPDATE meta SET value = 'near' WHERE name = 'adjacency'",
        "UPDATE meta SET value = '1/0' WHERE name = 'stable'",
        "UPDATE charges SET cost = '[]'",
        "DROP TABLE charges",
        "DELETE FROM charges",
    ],
)
def test_a_damaged_ledger_is_refused(path, damage):
    pf.Ledger(path, total=pf.ApproxDP(1, 1e-6)).charge("x", pf.PureDP(0.1), REPLACE)
    db = sqlite3.connect(path)
    db.execute(damage)
    db.commit()
    db.close()
    with pytest.raises(pf.InputError, match="damaged"):
        pf.Ledger(path).charge("x", pf.PureDP(0.1), REPLACE)


def test_changing_the_folder_does_not_lose_the_ledger(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledger = pf.Ledger("here.ledger", total=pf.PureDP(1))
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path / "there")
    ledger.charge("x", pf.PureDP(0.1), REPLACE)
    assert list((tmp_path / "there").iterdir()) == []
    ledger.path.unlink()
    with pytest.raises(pf.InputError, match="cannot"):
        ledger.charge("x", pf.PureDP(0.1), REPLACE)
    assert not ledger.path.exists()


def test_missing_places_are_refused_and_nothing_is_made(tmp_path):
    with pytest.raises(pf.InputError, match="there is no ledger"):
        pf.Ledger(tmp_path / "none.ledger")
    with pytest.raises(pf.InputError, match=r"folder .* does not exist"):
        pf.Ledger(tmp_path / "no" / "where", total=pf.PureDP(1))
    with pytest.raises(pf.InputError, match="total must be"):
        pf.Ledger(tmp_path / "x", total=1.0)
    with pytest.raises(pf.InputError, match="stable_delta goes with"):
        pf.Ledger(tmp_path / "x", total=pf.PureDP(1), stable_delta=1e-7)
    with pytest.raises(pf.InputError, match="as a ledger"):
        pf.Ledger(tmp_path, total=pf.PureDP(1))
    with pytest.raises(pf.InputError, match="path must be a file name; got int"):
        pf.Ledger(5)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_file_left_by_a_crash_becomes_a_ledger(path):
    path.touch()
    with pytest.raises(pf.InputError, match="empty file"):
        pf.Ledger(path)
    assert pf.Ledger(path, total=pf.PureDP(1)).charges() == []


def _spend_until_refused(path, ready, queue):
    ledger = pf.Ledger(path, total=pf.PureDP(1), adjacency=REPLACE)
    ready.wait()
    done = 0
    for _ in range(60):
        try:
            ledger.charge("race", pf.PureDP(0.01), REPLACE)
            done += 1
        except pf.BudgetRefused:
            break
    queue.put(done)


def test_eight_processes_never_overspend(path):
    """All eight create and charge the same ledger at once; exactly 100 hundredths fit."""
    context = multiprocessing.get_context("spawn")
    ready, queue = context.Barrier(8), context.Queue()
    workers = [
        context.Process(target=_spend_until_refused, args=(path, ready, queue)) for _ in range(8)
    ]
    for worker in workers:
        worker.start()
    done = [queue.get(timeout=600) for _ in workers]
    for worker in workers:
        worker.join()
    assert sum(done) == 100
    assert pf.Ledger(path).spent.epsilon == 1
    assert pf.Ledger(path).remaining is None


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="kill -9 needs a POSIX system")
def test_a_hundred_kills_never_leave_noise_without_its_charge(tmp_path):
    """A child measures and hands out results; it is killed inside charging, noising and saving."""
    victim = Path(__file__).with_name("kill_victim.py")
    done = subprocess.run(
        [sys.executable, victim, tmp_path, "100"], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    kills = json.loads(done.stdout)
    assert sum(kills.values()) >= 100
    assert all(kills[phase] >= 10 for phase in ("charging", "noising", "saving")), kills

    ledger = pf.Ledger(tmp_path / "study.ledger")
    charged = {charge.job for charge in ledger.charges()}
    handed_out = [json.loads(line) for line in (tmp_path / "released").read_text().splitlines()]
    assert len(handed_out) >= 25  # the children did get to release things
    for job, cells in handed_out:
        assert job in charged
        stored = pf.Measurements.from_bytes(ledger.result(job))
        assert stored.tables[0].ravel()[:8].tolist() == cells
    begun = set((tmp_path / "begun").read_text().split())
    assert charged <= begun and len(begun - charged) <= sum(
        kills.values()
    )  # no charge out of thin air
    unfinished = [job for job in charged if ledger.result(job) is None]
    assert unfinished  # some were killed between the charge and the release: paid, not released


# -- damage


def three_charges(path):
    ledger = pf.Ledger(path, total=pf.PureDP(10))
    for number in range(3):
        job = ledger.charge("a table", pf.PureDP(Fraction(number + 1, 3)), "replace-one")
        ledger.keep(job, bytes([number]) * 500)
    return ledger


def contents(path):
    ledger = pf.Ledger(path)
    found = ledger.charges()
    return ledger.total, ledger.spent, found, [ledger.result(charge.job) for charge in found]


@pytest.mark.parametrize("kind", ["flip", "cut"])
def test_a_damaged_file_is_refused_or_says_the_same(path, kind):
    """Of 400 single-bit flips and 150 truncations none may load with other numbers."""
    three_charges(path)
    whole, before = path.read_bytes(), contents(path)
    rng, refused = random.Random(5), 0
    near = whole.index(b"1/3")  # of a cost
    for number in range(400 if kind == "flip" else 150):
        if kind == "flip":
            place = near - 64 + number % 128 if number < 200 else rng.randrange(len(whole))
            data = bytearray(whole)
            data[place] ^= 1 << rng.randrange(8)
        else:
            data = whole[: rng.randrange(len(whole))]
        path.write_bytes(bytes(data))
        found = before
        try:
            found = contents(path)
        except pf.InputError:
            refused += 1
        assert found == before
    assert refused > (100 if kind == "flip" else 140)


def test_every_link_of_the_chain_counts(path):
    ledger = three_charges(path)
    head = ledger.head
    assert len(head) == 64
    last = "DELETE FROM results WHERE substr(data, 1, 1) = x'02'"
    changes = (
        "UPDATE charges SET cost = replace(cost, '1/3', '1/9')",
        "UPDATE charges SET time = '2020-01-01T00:00:00+00:00' WHERE number = 2",
        "UPDATE meta SET value = replace(value, '10', '99') WHERE name = 'total'",
        "UPDATE results SET data = x'00' WHERE job = (SELECT job FROM charges WHERE number = 1)",
        "DELETE FROM results WHERE job = (SELECT job FROM charges WHERE number = 3)",
        "DELETE FROM charges WHERE number = 3",
        "DELETE FROM links WHERE number = 6",
        f"DELETE FROM links WHERE number = 6; {last}",
        f"DELETE FROM links WHERE number > 4; DELETE FROM charges WHERE number = 3; {last}",
        "DELETE FROM links WHERE number = 3; DELETE FROM charges WHERE number = 2",
        "DROP TABLE links",
    )
    whole = path.read_bytes()
    for change in changes:
        path.write_bytes(whole)
        with sqlite3.connect(path) as db:
            db.executescript(change)
        with pytest.raises(
            pf.InputError, match=r"damaged: .* is not as it was written\. Use a copy"
        ):
            pf.Ledger(path)
    path.write_bytes(whole)
    ledger = pf.Ledger(path)
    assert ledger.head == head
    ledger.charge("more", pf.PureDP(1), "replace-one")
    assert ledger.head != head


def test_a_ledger_of_version_0_1_opens_and_gets_its_chain(path):
    """The tables as that version made them."""
    with sqlite3.connect(path) as db:
        db.executescript("""
            CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
            CREATE TABLE charges (number INTEGER PRIMARY KEY AUTOINCREMENT,
                job TEXT NOT NULL UNIQUE, what TEXT NOT NULL, cost TEXT NOT NULL,
                claim TEXT NOT NULL, adjacency TEXT NOT NULL, unit TEXT NOT NULL,
                request TEXT NOT NULL, version TEXT NOT NULL, time TEXT NOT NULL);
            CREATE TABLE results (job TEXT PRIMARY KEY REFERENCES charges(job), data BLOB NOT NULL);
            INSERT INTO meta VALUES ('total', '{"kind": "pure", "epsilon": "2"}'),
                ('adjacency', 'replace-one'), ('unit', 'row'), ('adding', '0'), ('stable', '0');
            INSERT INTO charges VALUES (1, 'old', 'tables', '{"kind": "pure", "epsilon": "1"}',
                'null', 'replace-one', 'row', 'digest', '0.1', '2026-01-01T00:00:00+00:00');
            INSERT INTO results VALUES ('old', x'0102');
            PRAGMA application_id = 1346784324; PRAGMA user_version = 1;
        """)
    ledger = pf.Ledger(path)
    assert ledger.spent.epsilon == 1 and ledger.result("old") == b"\x01\x02"
    assert (
        ledger.charge("tables", pf.PureDP(1), "replace-one", job="old", request="digest") == "old"
    )
    ledger.charge("more", pf.PureDP(1), "replace-one")
    assert len(pf.Ledger(path).head) == 64 and pf.Ledger(path).spent.epsilon == 2
    with sqlite3.connect(path) as db:
        db.execute("UPDATE results SET data = x'0103'")
    with pytest.raises(pf.InputError, match="damaged"):
        pf.Ledger(path)


def test_a_damaged_journal_is_not_read(path):
    ledger = pf.Ledger(path, total=pf.PureDP(1))
    journal = ledger.journal(ledger.charge("x", pf.PureDP(1), "replace-one"))
    assert journal.read(0) is None and journal.write(0, b"outcome") == b"outcome"
    assert journal.write(0, b"another") == journal.read(0) == b"outcome"
    with sqlite3.connect(path) as db:
        db.execute("UPDATE journal SET data = replace(data, 'o', 'u')")
        db.execute("UPDATE journal SET data = CAST(data AS BLOB)")
    with pytest.raises(pf.InputError, match="damaged: step 0 of the job"):
        journal.read(0)


@pytest.mark.parametrize("step", [0, 3, 4])
def test_a_missing_entry_of_a_journal_is_noticed(path, step):
    """In the middle and at the end: its step would be drawn a second time for one charge."""
    ledger = pf.Ledger(path, total=pf.PureDP(2))
    for job in ("one", "two"):
        ledger.charge("x", pf.PureDP(1), "replace-one", job=job)
    for number in (0, 1, 3, 4):  # step 2 is a hidden coin, which no journal has
        for job in ("one", "two"):
            ledger.journal(job).write(number, bytes([number]))
    assert pf.Ledger(path).journal("one").read(step) == bytes([step])
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM journal WHERE job = 'one' AND step = ?", (step,))
    with pytest.raises(pf.InputError, match="damaged"):
        pf.Ledger(path)
    with pytest.raises(pf.InputError, match="damaged"):  # nor by whoever opened it before
        ledger.journal("one").write(step, b"drawn again")


def test_a_charge_must_keep_its_claim(path):
    ledger = pf.Ledger(path, total=pf.ApproxDP(5, 1e-5))
    with pytest.raises(pf.InputError, match=r"claim: a cost of .* does not keep"):
        ledger.charge("x", pf.ZCDP(1), "replace-one", claim=pf.ApproxDP(1, 1e-6))


def test_only_a_ledger_without_charges_is_withdrawn(path):
    ledger = pf.Ledger(path, total=pf.PureDP(1))
    other = pf.Ledger(path)
    ledger.withdraw()
    with pytest.raises(pf.InputError):  # whoever charges next finds no ledger, and fails
        other.charge("x", pf.PureDP(1), "replace-one")
    again = pf.Ledger(path, total=pf.PureDP(3))
    again.charge("x", pf.PureDP(1), "replace-one")
    again.withdraw()
    assert pf.Ledger(path).spent.epsilon == 1


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE journal SET job = 'twa'",
        "UPDATE journal SET step = 1",
        "UPDATE journal SET data = 'text'",
        "UPDATE journal SET data = 5",
        "UPDATE results SET data = 5",
        "UPDATE results SET data = 'text'",
        "UPDATE charges SET what = x'fffe'",
        "UPDATE charges SET number = 9 WHERE job = 'one'",
    ],
)
def test_what_stands_at_another_place_or_has_another_type_is_refused(path, damage):
    ledger = pf.Ledger(path, total=pf.ZCDP(1))
    for job in ("one", "two"):
        ledger.charge("a table", pf.ZCDP(0.1), REPLACE, job=job)
    ledger.journal("two").write(0, b"outcome")
    ledger.keep("one", b"result")
    assert pf.Ledger(path).journal("two").read(0) == b"outcome"
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute(damage)
    with pytest.raises(pf.InputError, match="damaged"):
        pf.Ledger(path)


@pytest.mark.parametrize(
    ("total", "adjacency"), [(pf.PureDP(1), REPLACE), (pf.PureDP(10), "add-remove")]
)
def test_a_ledger_made_anew_since_it_was_opened_is_not_charged_by_the_old_rules(
    tmp_path, total, adjacency
):
    """Who made it may take it back, as long as it is empty, and somebody may make another."""
    path = tmp_path / "l"
    early = pf.Ledger(path, total=pf.PureDP(10), adjacency=REPLACE)
    pf.Ledger(path).withdraw()
    late = pf.Ledger(path, total=total, adjacency=adjacency)
    late.charge("t", pf.PureDP(1), adjacency)
    with pytest.raises(pf.InputError, match="another ledger was made"):
        early.charge("t", pf.PureDP(9), REPLACE)
    assert late.spent.epsilon == 1


def test_a_ledger_says_that_a_charge_of_repeatable_noise_promises_nothing(tmp_path, capsys):
    ledger = pf.Ledger(tmp_path / "l", total=pf.PureDP(3))
    schema, rows = pf.Schema({"a": 2}), np.zeros((5, 1), np.uint8)
    pf.measure(rows, schema, [("a",)], pf.PureDP(1), ledger=ledger)
    assert ledger.stamp is None and "NOT PRIVATE" not in f"{ledger}{ledger._repr_html_()}"
    for job in ("x", "x", None):  # the same job again is the same charge
        common = {"ledger": ledger, "job": job, "insecure_seed": 4}
        pf.measure(rows, schema, [("a",)], pf.PureDP(1), **common)
    stamp = "NOT PRIVATE: the noise is repeatable (insecure_seed)"
    assert [charge.stamp for charge in ledger.charges()] == [None, stamp, stamp]
    assert ledger.stamp == stamp
    assert f"\n{stamp}: what was spent promises nothing.\n" in str(ledger)
    assert "promises nothing" in ledger._repr_html_()
    assert main(["ledger", str(ledger.path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["stamp"] == stamp
    assert main(["ledger", str(ledger.path)]) == 0
    assert capsys.readouterr().out.startswith(stamp)
    learner = pf.MarginalLearner(pf.PureDP(1), schema=schema, cliques=[("a",)]).fit(rows)
    assert review_card(learner.model_, ledger)["composition"].startswith(stamp)
