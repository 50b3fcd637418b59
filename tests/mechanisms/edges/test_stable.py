"""A stable structure and tables in one release: shares, branches, and runs that are cut off."""

import gc
import types
from collections import deque
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import privfield as pf
from privfield.audit.promise import check_world, watched
from privfield.mechanisms.edges import stable
from privfield.mechanisms.edges.stable import (
    StableSelection,
    StableTables,
    measure_stable,
    share_out,
)
from privfield.mechanisms.graphs.mechanism import StableGraph
from privfield.privacy import laws
from privfield.privacy.conversions import rho_for
from privfield.privacy.ledger import LedgerJournal
from privfield.privacy.mechanism import MemoryJournal
from privfield.privacy.terms import Terms

SCHEMA = pf.Schema({"x": 2, "y": 2, "z": 2})
BUDGET = pf.ApproxDP(3, 1e-6)


@pytest.mark.parametrize(
    "budget", [pf.ApproxDP(1, 1e-9), pf.ApproxDP(0.1, 1e-6), pf.ApproxDP(8, Fraction(1, 3))]
)
def test_shares_add_up_as_approximate_zcdp(budget):
    shares = share_out(budget)
    epsilon, delta = shares.structure.exact_epsilon, shares.structure.exact_delta
    assert shares.cost == shares.structure.as_cost() + shares.tables or (
        shares.cost.exact_rho == epsilon**2 / 2 + shares.tables.exact_rho
        and shares.cost.exact_delta == delta
    )
    assert shares.cost.exact_rho <= rho_for(budget.exact_epsilon, budget.exact_delta - delta)
    assert shares.cost <= budget
    # the same shares from the whole of δ would exceed the budget
    whole = rho_for(budget.exact_epsilon, budget.exact_delta)
    assert not pf.Cost(whole, delta) <= budget
    # so would tables that forget what the structure cost
    assert not pf.Cost(epsilon**2 / 2 + shares.cost.exact_rho, delta) <= budget


def test_tables_that_forget_what_the_structure_cost_are_caught(monkeypatch):
    world = first_world()
    assert check_world(world, (0,)).problem is None

    def greedy(budget):
        right = share_out(budget)
        return replace(right, tables=pf.ZCDP(right.cost.exact_rho))

    monkeypatch.setattr(stable, "share_out", greedy)
    again = replace(world, mechanism=replace(world.mechanism))  # shares are worked out once
    assert check_world(again, (0,)).problem


def stable_rows():
    rng = np.random.default_rng(3)
    weights = np.zeros((3, 3))
    weights[0, 1] = weights[1, 0] = 0.9
    spins = pf.IsingModel(weights).sample(60_000, rng, method="independent")
    return (np.asarray(spins) > 0).astype(int)


def decided(monkeypatch, edges):
    """Release these of the possible edges xy, xz, yz, or nothing."""
    right = StableGraph.let_out

    def let_out(self, randomness, found):
        right(self, randomness, found)
        return edges

    monkeypatch.setattr(StableGraph, "let_out", let_out)


# -- what is released


def test_where_nothing_is_stable_edges_are_selected(monkeypatch, tmp_path):
    decided(monkeypatch, None)
    released = measure_stable(stable_rows(), SCHEMA, BUDGET, min_weight=0.5)
    assert released.structure.edges is None
    assert released.selection.edges == (("x", "y"),)
    assert released.cost == released.selection.cost == share_out(BUDGET).cost <= BUDGET
    released.save(tmp_path / "s")
    again = StableSelection.load(tmp_path / "s")
    assert again.selection.edges == (("x", "y"),) and again.to_bytes() == released.to_bytes()


def test_tables_of_the_edges_and_of_variables_that_are_in_none(monkeypatch, tmp_path):
    decided(monkeypatch, [0])
    released = measure_stable(stable_rows(), SCHEMA, BUDGET, min_weight=0.5)
    assert released.structure.edges == (("x", "y"),) and released.selection is None
    scopes = set(released.measurements.cliques)
    assert {frozenset(each) for each in scopes} >= {frozenset("xy"), frozenset("z")}
    assert not any(len(each) > 1 and "z" in each for each in scopes)
    released.save(tmp_path / "s")
    assert StableSelection.load(tmp_path / "s").to_bytes() == released.to_bytes()


def test_a_stable_structure_too_large_for_inference_limits_the_selection(monkeypatch):
    decided(monkeypatch, [0, 1])
    monkeypatch.setattr(stable.RoomForEdges, "holds", lambda self, pairs: len(pairs) < 2)
    released = measure_stable(stable_rows(), SCHEMA, BUDGET, min_weight=0.5)
    assert released.selection.candidates == 2


def test_a_file_without_its_structure_is_damaged():
    released = measure_stable(stable_rows(), SCHEMA, BUDGET, min_weight=0.5)
    header, arrays = released._parts()
    del arrays["structure"]
    with pytest.raises(KeyError):
        StableSelection._from_parts(header, arrays)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"adjacency": "flip-outcome"}, "adjacency must be"),
        ({"insecure_seed": -1}, "insecure_seed"),
        ({"progress": 3}, "progress must be"),
        ({"max_bytes": 8}, "max_bytes"),
        ({"max_bytes": "much"}, "max_bytes"),
        ({"noise": "uniform"}, "noise must be"),
        ({"min_weight": 0}, "min_weight"),
        ({"schema": pf.Schema({"x": 2, "y": 2, "other": 2})}, "."),
    ],
)
def test_a_stable_release_checks_everything_before_the_charge(tmp_path, change, message):
    data = pd.DataFrame(stable_rows(), columns=list("xyz"))
    ledger = pf.Ledger(
        tmp_path / "l.ledger",
        pf.ApproxDP(3, 1e-6),
        adjacency=change.get("adjacency", "replace-one"),
    )
    given = {"schema": pf.Schema({"x": 2, "y": 2, "z": 2}), **change}
    with pytest.raises(pf.InputError, match=message):
        measure_stable(data, budget=pf.ApproxDP(3, 1e-6), ledger=ledger, **given)
    assert not ledger.charges()


# -- a run that is cut off shows nothing, and draws nothing again


@pytest.mark.parametrize("edges", [None, [0]])
def test_progress_does_not_tell_whether_a_structure_was_released(monkeypatch, edges):
    decided(monkeypatch, edges)
    news = []
    measure_stable(stable_rows(), SCHEMA, BUDGET, min_weight=0.5, progress=news.append)
    stages = [each.stage for each in news]
    assert stages.count("tables") == 1 and stages[-1] == "tables"


class Cut(BaseException):
    """A run is cut off."""


def first_world():
    return next(StableTables.worlds(Terms(pf.ApproxDP(0.7, 1e-6))))


def frames_behind(error):
    """Frames and generators that can be reached from an exception through our own code."""
    found, seen, todo = [], set(), deque([error.args, vars(error), error.__cause__])
    todo.append(error.__context__)
    trace = error.__traceback__
    while trace is not None:
        if "/privfield/" in trace.tb_frame.f_code.co_filename:
            found += [trace.tb_frame] * ("/privacy/" not in trace.tb_frame.f_code.co_filename)
            todo.append({k: v for k, v in trace.tb_frame.f_locals.items() if v is not error})
        trace = trace.tb_next
    while todo and len(seen) < 50_000:
        item = todo.popleft()
        if id(item) in seen or isinstance(item, types.ModuleType | type):
            continue
        seen.add(id(item))
        if isinstance(item, types.FrameType | types.GeneratorType | types.TracebackType):
            found.append(item)
        if isinstance(item, types.FunctionType):  # what it closed over, not its whole module
            todo.extend(cell.cell_contents for cell in item.__closure__ or ())
        else:
            todo.extend(gc.get_referents(item))
    return found


def cut_off_everywhere(tmp_path, monkeypatch, released):
    """Three times at each message and once after each draw; what was seen, and what came out."""
    monkeypatch.setattr(laws, "may_release", lambda *given, **named: released)
    world = first_world()
    kept, news, seen = [], [], []
    write = LedgerJournal.write

    def cut(self, number, data):
        kept.append((number, write(self, number, data)))
        raise Cut

    monkeypatch.setattr(LedgerJournal, "write", cut)
    ledger = pf.Ledger(tmp_path / f"{released}.ledger", pf.ApproxDP(0.7, 1e-6))
    for attempt in range(1000):

        def listen(each, attempt=attempt):
            news.append(each)
            if len(news) == attempt // 3 + 1:
                raise KeyboardInterrupt

        news.clear()
        terms = replace(world.mechanism.terms, ledger=ledger, job="j", progress=listen)
        mechanism = replace(world.mechanism, terms=terms)
        error = None
        try:
            result = mechanism.release(next(world.data_sets()))
            break
        except (KeyboardInterrupt, RuntimeError) as caught:
            error = caught
        assert error.__cause__ is None and error.__context__ is None
        assert not frames_behind(error)
        if isinstance(error, KeyboardInterrupt):
            seen.append((str(error), error.__notes__, list(news)))
    monkeypatch.undo()
    return mechanism, kept, seen, result


@pytest.mark.parametrize("released", [True, False])
def test_cut_off_anywhere_any_number_of_times(released, tmp_path, monkeypatch):
    """One charge, one set of draws, and nothing of the run hangs on the exception."""
    mechanism, kept, seen, result = cut_off_everywhere(tmp_path, monkeypatch, released)
    assert (result.structure.edges is not None) == released
    assert (result.selection is None) == released
    assert len(mechanism.terms.ledger.charges()) == 1
    numbers = [number for number, _ in kept]
    assert len(numbers) > 1 and len(set(numbers)) == len(numbers)
    data = next(first_world().data_sets())
    quiet = replace(mechanism, terms=replace(mechanism.terms, progress=None))
    assert watched(quiet, data, 0, MemoryJournal(dict(kept)))[1] == result.to_bytes()
    assert [stage for *_, news in seen for stage in news][-1].stage == "tables"


def test_an_interruption_shows_the_same_whether_a_structure_was_released(tmp_path, monkeypatch):
    shown = [cut_off_everywhere(tmp_path, monkeypatch, released)[2] for released in (True, False)]
    assert shown[0] and shown[0] == shown[1]


def test_frames_are_seen_where_they_are_left(monkeypatch):
    """The test above would notice an exception that carries its run."""
    from privfield.privacy import mechanism

    monkeypatch.setattr(mechanism, "without_traces", lambda error, title: error)

    def stop(news):
        if news.stage == "tables":
            raise KeyboardInterrupt

    world = first_world()
    terms = replace(world.mechanism.terms, progress=stop)
    with pytest.raises(KeyboardInterrupt) as caught:
        replace(world.mechanism, terms=terms).release(next(world.data_sets()))
    assert frames_behind(caught.value)
