"""Chains of people: the tables are right, one person weighs what is claimed, nothing else leaks."""

import hashlib
import json
import logging
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privfield as pf
from privfield.audit.promise import check_world
from privfield.data.sequences.form import COLUMNS, StateSet, id_unit
from privfield.data.sequences.read import SequenceSource
from privfield.mechanisms.chains import mechanism as chains
from privfield.mechanisms.chains.measurements import ChainMeasurements
from privfield.mechanisms.chains.mechanism import (
    GRID,
    ChainTransitions,
    Weights,
    count_chain,
    design,
)
from privfield.privacy.adjacency import Adjacency, Unit
from privfield.privacy.terms import Terms
from releases import measure_chain
from traces import public_trace

AB = StateSet.of(["a", "b"])
ABC = StateSet.of(["a", "b", "c"])
RNG = np.random.default_rng(20240501)
DATA = RNG.integers(0, 3, (300, 5))
BUDGETS = [pf.PureDP(1), pf.ZCDP(0.1), pf.ApproxDP(0.7, 1e-6)]


def steps(people, states, weights):
    return count_chain(SequenceSource(states, people).read(), len(states.names), weights)


def oracle(people, states, weights):
    """Both tables straight from the definition, in whole grid steps."""
    size = len(states.names)
    initial, transitions = [0] * size, [[0] * size for _ in range(size)]
    for person in people:
        segments = [[]]
        for sequence in person:
            segments.append([])
            for state in sequence:
                if state in states.names:
                    segments[-1].append(states.names.index(state))
                else:
                    segments.append([])
        segments = [segment for segment in segments if segment]
        moves = [pair for s in segments for pair in pairwise(s)]
        for segment in segments:
            initial[segment[0]] += weights.start // len(segments)
        for before, after in moves:
            transitions[before][after] += min(weights.whole, weights.most // len(moves))
    return [*initial, *(cell for row in transitions for cell in row)]


some_people = st.lists(
    st.lists(st.lists(st.sampled_from(["a", "b", "c", "?", None]), max_size=7), max_size=4),
    max_size=5,
)
some_weights = st.builds(
    lambda limit, start: chains._weights(limit, start),
    st.fractions(1, 9, max_denominator=50),
    st.floats(0.02, 5),
)


@settings(max_examples=100, deadline=None)
@given(some_people, some_weights)
def test_the_tables_are_what_the_definition_says(people, weights):
    assert steps(people, ABC, weights).tolist() == oracle(people, ABC, weights)


@settings(max_examples=200, deadline=None)
@given(some_people, some_weights)
def test_nobody_weighs_more_than_the_limit(people, weights):
    for person in people:
        found = steps([person], ABC, weights)
        assert found.min() >= 0
        assert found[:3].sum() <= weights.start
        assert found[3:].sum() <= weights.most
    together = sum((steps([p], ABC, weights) for p in people), np.zeros(12, np.int64))
    assert (steps(people, ABC, weights) == together).all()  # people do not change each other


@given(st.fractions(1, 65_536), st.integers(2, 10_000), st.sampled_from(BUDGETS))
def test_weights_keep_the_limit_whatever_it_is(limit, states, budget):
    weights, law, cost = design(budget, Adjacency.REPLACE_ONE, limit, states, "auto")
    assert weights.most <= limit * GRID < weights.most + 1
    assert weights.start >= 1 and law.scale > 0 and cost <= budget


def test_a_known_example():
    people = {"u": [["a", "b", "b"], ["b"]], "v": ["a"], "w": [["a", "a", "a", "a", "a"]], "x": []}
    m = measure_chain(people, AB, pf.NON_PRIVATE, limit=2)
    assert m.initial == pytest.approx([0.5 + 1 + 1, 0.5])
    assert m.transitions == pytest.approx(np.array([[2, 1], [0, 1]]))  # w: four times 1/2
    assert m.stamp.startswith("NOT PRIVATE") and m.noise == "none" and "NOT PRIVATE" in repr(m)


def test_more_states_than_a_byte_holds():
    data = RNG.integers(-1, 301, (50, 6))  # −1 and 300 are gaps
    m = measure_chain(data, StateSet.of(300), pf.NON_PRIVATE, limit=10)
    expected = np.zeros((300, 300))
    for row in data:
        for before, after in pairwise(row):
            if min(before, after) >= 0 and max(before, after) < 300:
                expected[before, after] += 1
    assert (m.transitions == expected).all()


# -- the promise -----------------------------------------------------------------------------------

SEGMENTS = [s for n in range(5) for s in product("ab", repeat=n)] + [("a", "?", "b"), ("?",)]
HISTORIES = [[], *([s] for s in SEGMENTS), *([s, t] for s in SEGMENTS[1:7] for t in SEGMENTS[1:7])]
HISTORIES = [[list(s) for s in history] for history in HISTORIES]
OTHERS = [[["a", "b"]], [["b"], ["b", "b", "a", "a"]]]


def all_shifts(adjacency, weights):
    """How every change of one person moves the tables; next to two others, who stay."""
    tables = [steps([*OTHERS, history], AB, weights) for history in HISTORIES]
    absent = steps(OTHERS, AB, weights)
    if adjacency == "add-remove":
        return [table - absent for table in tables]
    return [s - t for s in tables for t in tables]


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("limit", [1, 2, 3])
@pytest.mark.parametrize("start", [0.25, 1.0, 1.5])
def test_sensitivity_by_enumeration_is_attained(adjacency, limit, start):
    """Both tables together, in L1 and in L2: never more than claimed, and exactly that much."""
    weights = chains._weights(Fraction(limit), start)
    claim = weights.sensitivity(Adjacency(adjacency))
    shifts = [[int(v) for v in shift] for shift in all_shifts(adjacency, weights)]
    assert max(sum(map(abs, shift)) for shift in shifts) == claim.l1
    assert max(sum(v * v for v in shift) for shift in shifts) == claim.l2_squared
    units = 2 if adjacency == "replace-one" else 1
    if start == 1.0:  # the numbers of the notes: τ + 1 and τ² + 1
        assert claim.l1 == units * (limit + 1) * GRID
        assert claim.l2_squared == units * (limit**2 + 1) * GRID**2


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
def test_an_understated_sensitivity_is_caught(monkeypatch, budget, adjacency):
    """First states forgotten in the sensitivity: the neighbours of the contract show it."""
    honest = Weights.sensitivity
    monkeypatch.setattr(Weights, "sensitivity", lambda w, which: honest(replace(w, start=0), which))
    worlds = ChainTransitions.worlds(Terms(budget, adjacency))
    assert any("costs" in (check_world(world, (0,)).problem or "") for world in worlds)


def test_the_design_is_better_than_one_noise_for_all():
    """The public split has less expected loss than equal noise at the same ε, or ρ."""
    for budget, kind in ((pf.PureDP(1), "laplace"), (pf.ZCDP(0.1), "gaussian")):
        for states, limit in product((3, 17, 200), (1, 4, 50)):
            law = {}
            for name, weights in (
                ("ours", design(budget, Adjacency.ADD_REMOVE, Fraction(limit), states, kind)[0]),
                ("equal", chains._weights(Fraction(limit), 1.0)),
            ):
                noise, _ = chains.choose_noise(
                    budget, weights.sensitivity(Adjacency.ADD_REMOVE), kind
                )
                first, step = noise.scale / weights.start, noise.scale / weights.whole
                law[name] = first**2 + step**2 * states**2 / limit
            assert law["ours"] <= 1.001 * law["equal"]


# -- nothing else depends on records ---------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_public_metadata_is_the_same_on_neighbours(adjacency, tmp_path, capfd, caplog):
    caplog.set_level(logging.DEBUG)
    data = [row.tolist() for row in DATA]
    ids = [f"p{number // 2}" for number in range(len(data))]
    wild = [None, {"a": 1}, ["a"] * 10_000, [], [["b"], 5], [float("nan"), 2**100], ["c"]]
    versions = [(data, ids)] + [([odd, *data[1:]], ids) for odd in wild]
    if adjacency == "add-remove":
        versions += [(data[2:], ids[2:]), ([], [])]
    traces = []
    for number, (entries, people) in enumerate(versions):
        release = partial(measure_chain, entries, ABC, pf.PureDP(1), 3, people=people)
        seen = tmp_path / str(number), capfd, caplog
        traces.append(public_trace(release, "chain measurements", *seen, adjacency=adjacency))
    assert all(trace == traces[0] for trace in traces)
    assert traces[0]["printed"] == ("", "", "")
    assert [(item.stage, item.done) for item in traces[0]["news"]] == [
        *(("counting", None), ("adding noise", None))
    ]


# -- ledger, seed, files ---------------------------------------------------------------------------


def test_a_job_is_measured_once(tmp_path):
    ledger = pf.Ledger(tmp_path / "l", total=pf.PureDP(1))
    arguments = (DATA, ABC, pf.PureDP(0.6))
    first = measure_chain(*arguments, ledger=ledger, job="a")
    again = measure_chain(None, *arguments[1:], ledger=ledger, job="a")  # needs no data
    assert first.to_bytes() == again.to_bytes() and ledger.spent.epsilon == 0.6
    for change in ({"limit": 9}, {"noise": "laplace", "limit": 2}):
        with pytest.raises(pf.InputError, match="another request"):
            measure_chain(*arguments, ledger=ledger, job="a", **change)
    with pytest.raises(pf.BudgetRefused):
        measure_chain(*arguments, ledger=ledger)


def test_days_and_persons_do_not_share_a_ledger(tmp_path):
    ledger = pf.Ledger(tmp_path / "l", total=pf.PureDP(5))
    measure_chain(DATA, ABC, pf.PureDP(1), ledger=ledger, unit="person-day")
    with pytest.raises(pf.InputError, match=r"protects one person-day; .* one person"):
        measure_chain(DATA, ABC, pf.PureDP(1), ledger=ledger)


def test_trips_and_persons_do_not_share_a_ledger(tmp_path):
    ledger = pf.Ledger(tmp_path / "l", total=pf.PureDP(5))
    frame = pd.DataFrame(
        {"trip": ["t1", "t1", "t2"], "person": ["u"] * 3, "state": ["a", "b", "c"]}
    )
    trips = measure_chain(
        frame, ABC, pf.PureDP(1), columns=("trip", None, "state"), ledger=ledger, job="trips"
    )
    assert trips.unit == ledger.unit == "trip" and "per trip" in repr(trips)
    with pytest.raises(pf.InputError, match=r"protects one trip; .* one person\."):
        measure_chain(frame, ABC, pf.PureDP(1), columns=("person", None, "state"), ledger=ledger)
    with pytest.raises(pf.InputError, match="another request"):
        measure_chain(
            frame, ABC, pf.PureDP(1), columns=("person", None, "state"), ledger=ledger, job="trips"
        )
    assert len(ledger.charges()) == 1


def test_requests_name_the_unit_and_old_jobs_are_known():
    def request(unit):
        return ChainTransitions(Terms(pf.PureDP(1), unit=unit), states=ABC).request()

    assert request(id_unit(("trip", None, "state")))["unit"] == "trip"
    # as version 0.1 wrote them, whose ledgers hold "person", "person (id)" or words
    text = json.dumps(request(id_unit(COLUMNS)), sort_keys=True)
    assert hashlib.sha256(text.encode()).hexdigest().startswith("9244b642af798205bbe9bff1f7b9c822")
    for unit in (id_unit(COLUMNS), Unit("person", "id"), id_unit(COLUMNS, "person-day")):
        assert list(request(unit)) == [
            *("what", "states", "rule", "weights", "noise", "adjacency", "insecure")
        ]


@pytest.mark.parametrize("stage", ["counting", "adding noise"])
def test_an_interrupted_measurement_costs_nothing_more(tmp_path, stage):
    ledger = pf.Ledger(tmp_path / "l", total=pf.PureDP(1))

    def stop(news):
        if news.stage == stage:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        measure_chain(DATA, ABC, pf.PureDP(1), ledger=ledger, job="a", progress=stop)
    assert "job='a'" in caught.value.__notes__[0]
    assert ledger.spent.epsilon == 1
    m = measure_chain(DATA, ABC, pf.PureDP(1), ledger=ledger, job="a")
    assert m.transitions.shape == (3, 3) and ledger.spent.epsilon == 1


def test_released_numbers_lie_on_the_public_grid():
    m = measure_chain(DATA, ABC, pf.PureDP(1))
    for table, grid in ((m.initial, m.initial_grid), (m.transitions, m.transition_grid)):
        assert table / grid == pytest.approx(np.round(table / grid), abs=1e-3)
    assert m.transition_law.deviation == pytest.approx(np.sqrt(2) * m.transition_scale, rel=1e-3)


def test_a_damaged_file_is_refused(tmp_path):
    data = measure_chain(DATA, ABC, pf.PureDP(1)).to_bytes()
    for bad in (data[:-30], b"", b"x" * 100):
        (tmp_path / "m").write_bytes(bad)
        with pytest.raises(pf.InputError, match="damaged"):
            ChainMeasurements.load(tmp_path / "m")
    good = measure_chain(DATA, ABC, pf.PureDP(1))
    bad_fields = [
        ({"states": ("a", "b")}, "shape"),
        ({"states": ("a", "b", "b")}, "different states"),
        ({"initial": np.full(3, np.nan)}, "finite"),
        ({"transitions": np.zeros((3, 2))}, "shape"),
        ({"noise": "loud"}, "noise must be"),
        ({"initial_scale": -1.0}, "initial_scale must be above 0"),
        ({"transition_scale": float("nan")}, "transition_scale must be above 0"),
        ({"transition_grid": 0.0}, "transition_grid must be above 0"),
        ({"unit": 3}, "unit"),
    ]
    for change, text in bad_fields:
        with pytest.raises(pf.InputError, match=text):
            replace(good, **change)


def test_bad_input_is_found_before_anything_is_charged(tmp_path):
    ledger = pf.Ledger(tmp_path / "l", total=pf.PureDP(1))
    bad = [
        ({"sequences": 3}, "got int"),
        ({"sequences": "none.csv"}, "none.csv"),
        ({"sequences": pd.DataFrame({"state": ["a"]})}, "lacks"),
        ({"people": [1]}, "one id for each entry"),
        ({"budget": None}, "budget must be .*got NoneType"),
        ({"budget": pf.NON_PRIVATE}, "NON_PRIVATE cannot be charged"),
        ({"limit": 0.5}, "limit must lie between 1 and 65,536; got 0.5"),
        ({"limit": float("nan")}, "limit must be finite"),
        ({"limit": "x"}, "limit must be a number"),
        ({"limit": 1e9}, "limit must lie"),
        ({"adjacency": "flip-outcome"}, "for chains"),
        ({"adjacency": "replace"}, "adjacency must be one of"),
        ({"adjacency": "add-remove"}, "replace-one releases"),
        ({"noise": "loud"}, "noise must be"),
        ({"noise": "gaussian"}, "no pure ε"),
        ({"insecure_seed": -1}, "insecure_seed must be"),
        ({"progress": 5}, "progress must be a function"),
        ({"unit": " "}, "unit must be non-empty text"),
        ({"columns": ("a", "b")}, "columns must name"),
        ({"columns": (None, "b", "c")}, "columns must name"),
        ({"job": 5}, "job must be non-empty text"),
    ]
    for changes, text in bad:
        arguments = {"sequences": DATA, "states": ABC, "budget": pf.PureDP(0.1)} | changes
        with pytest.raises(pf.InputError, match=text):
            measure_chain(ledger=ledger, **arguments)
    assert ledger.charges() == []
