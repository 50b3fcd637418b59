"""What one unit loses is a whole number that depends on its own records and the model alone."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privfield as pf
from privfield.data.sequences.form import SequenceForm
from privfield.data.sequences.read import Labelled
from privfield.mechanisms.scores.losses import PersonLosses, RowLosses, Steps, whole_potentials
from privfield.mechanisms.scores.mechanism import HeldOutScore
from privfield.privacy.terms import Terms

STATES = ["a", "b", "c"]
CHAIN = pf.ChainModel(
    STATES, [0.6, 0.39, 0.01], [[0.7, 0.2, 0.1], [1 / 3, 1 / 3, 1 / 3], [0.5, 0.5, 0]]
)
TERMS = Terms(pf.PureDP(1), "add-remove")


def exact(losses, data, bound=7):
    """Sum of losses, and what all records count, in grid steps."""
    return HeldOutScore(TERMS, losses=losses, bound=Fraction(bound)).exact(data).tolist()


# -- the attack that adding floats allowed

GRID = 1024


def ceiled(logs):
    """A sum of logarithms in that order, in whole steps: what order can change."""
    total = 0.0
    for each in logs:
        total += each
    return math.ceil(-GRID * total)


def crafted_chain():
    """A public chain for which three sequences lose one step more in one order than in another."""
    rng = np.random.default_rng(0)
    while True:
        first, second = rng.uniform(0.05, 0.3, 2)
        third = math.exp(-rng.integers(3000, 9000) / GRID) / (first * second)
        start = [first, second, third, 1 - first - second - third]
        if min(start) > 0.01:
            logs = np.log(start[:3]).tolist()
            if ceiled(logs) != ceiled(logs[::-1]):
                return pf.ChainModel(list("abcd"), start, np.full((4, 4), 0.25))


def crowd(labels):
    """200 people with the sequences x, y, z, and before them somebody who names their labels."""
    rows = [("eve", label, "d") for label in labels]
    rows += [(f"p{n}", *pair) for n in range(200) for pair in zip("xyz", "abc", strict=True)]
    return pd.DataFrame(rows, columns=["person", "sequence", "state"])


def summed_as_floats(frame, model):
    """Labels numbered by first appearance, logarithms added in that order."""
    label = pd.factorize(frame["sequence"])[0]
    logs = np.log(model.initial)[frame["state"].map(model.states.index)]
    parts = pd.DataFrame({"person": frame["person"], "label": label, "log": logs})
    ordered = parts.sort_values(["person", "label"], kind="stable").groupby("person")["log"]
    return sum(ceiled(each.tolist()) for _, each in ordered)


def test_one_persons_labels_change_nobody_elses_loss():
    """Only the order of the labels differs: one person alone, who has the same states in both."""
    model = crafted_chain()
    losses = PersonLosses(model, SequenceForm.of(model.states))
    here, there = crowd("xyz"), crowd("zyx")
    assert abs(summed_as_floats(here, model) - summed_as_floats(there, model)) == 200  # it bites
    assert exact(losses, here) == exact(losses, there)


# -- a person's contribution, whatever the company

SOME = st.lists(st.lists(st.sampled_from([*STATES, "?"]), max_size=5), max_size=3)


@settings(max_examples=80, deadline=None)
@given(st.lists(SOME, max_size=5), st.randoms(use_true_random=False))
def test_a_persons_loss_is_the_same_in_any_company_and_order(people, shuffle):
    """Frames with rows of all people mixed: the sum is that of everybody alone."""
    losses = PersonLosses(CHAIN, SequenceForm.of(CHAIN.states))
    rows = {n: rows_of(n, person) for n, person in enumerate(people)}
    alone = [exact(losses, frame(own)) for own in rows.values()]
    turns = [n for n, own in rows.items() for _ in own]
    shuffle.shuffle(turns)
    queues = {n: iter(own) for n, own in rows.items()}
    mixed = exact(losses, frame([next(queues[n]) for n in turns]))
    assert mixed == [sum(each) for each in zip(*alone, strict=True)] if alone else mixed == [0, 0]


def rows_of(n, person):
    return [(f"p{n}", f"s{(n + i) % 3}", x) for i, own in enumerate(person) for x in own]


def frame(rows):
    return pd.DataFrame(rows, columns=["person", "sequence", "state"]).astype(str)


@settings(max_examples=60, deadline=None)
@given(st.lists(SOME, max_size=5), st.permutations(range(5)))
def test_entries_with_ids_add_up_in_any_order(people, order):
    losses = PersonLosses(CHAIN, SequenceForm.of(CHAIN.states))
    entries = [(n, own) for n in order if n < len(people) for own in people[n]]
    found = exact(losses, Labelled([own for _, own in entries], [n for n, _ in entries]))
    alone = [exact(losses, [person]) for person in people if person]
    assert found == [sum(each) for each in zip(*alone, strict=True)] if alone else found == [0, 0]


SCHEMA = pf.Schema({"a": 2, "b": 3, "c": 4})
RNG = np.random.default_rng(3)
TABLE = pf.MarkovRandomField(
    SCHEMA,
    [("a", "b"), ("c", "b"), ("a",), ("b", "a")],
    [RNG.normal(size=shape) * 3 for shape in ((2, 3), (4, 3), (2,), (3, 2))],
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 3)), max_size=40),
    st.randoms(use_true_random=False),
)
def test_a_rows_loss_is_the_same_in_any_company_and_order(rows, shuffle):
    """Also in a batch of other rows, whatever its length: vectorised float sums may differ."""
    losses = RowLosses(TABLE, SCHEMA)
    alone = [exact(losses, np.array([row]))[0] for row in rows]
    shuffled = list(rows)
    shuffle.shuffle(shuffled)
    assert exact(losses, np.array(shuffled, np.int64).reshape(-1, 3))[0] == sum(alone)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(0, 2), st.integers(0, 3)),
        max_size=20,
    ),
    st.sampled_from([1, 3, None]),
)
def test_people_with_rows_never_lose_more_than_claimed(rows, limit):
    """Each person alone: within the bound times what counts of them; together: the sum."""
    schema = pf.Schema({"a": 2, "b": 3, "c": 4}, unit=pf.Person("id", rows=limit))
    losses = RowLosses(TABLE, schema)
    data = pd.DataFrame(rows, columns=["id", "a", "b", "c"])
    data["id"] = data["id"].astype(str)
    steps = Steps.of(Fraction(2), False)
    total = exact(losses, data, 2)
    alone = [exact(losses, data[data["id"] == who], 2) for who in data["id"].unique()]
    for lost, counted in alone:
        assert 0 <= lost <= losses.weight * steps.most
        assert 0 <= counted <= losses.weight * steps.each
    if limit is None and alone:  # with a limit, a release may choose other rows of a person
        assert total == [sum(each) for each in zip(*alone, strict=True)]


# -- the grid


@given(st.fractions(Fraction(1, 1024), 2**20))
def test_sums_stay_within_64_bits(bound):
    steps = Steps.of(bound, False)
    assert 1 <= steps.most <= bound * steps.grid < steps.most + 1
    assert steps.most <= 2**30 and 2**10 <= steps.grid <= 2**20
    assert 1 <= steps.each <= max(1, steps.most // 2)
    assert Steps.of(bound, True).each == 1


@pytest.mark.parametrize("shift", [0.0, 1e3, -1e6])
def test_whole_potentials_say_what_the_model_says(shift):
    tables = [table + shift for table in TABLE.log_potentials]
    model = pf.MarkovRandomField(SCHEMA, TABLE.cliques, tables)
    steps = Steps.of(Fraction(100), True)
    least, whole = whole_potentials(model, steps)
    assert all(table.min() == 0 for table in whole)
    for row in model.sample(20, RNG, method="independent"):
        found = least + sum(
            int(table[tuple(row[v] for v in clique)])
            for clique, table in zip(model.factors.cliques, whole, strict=True)
        )
        expected = -model.log_likelihood(row[None, :])
        assert found / steps.grid == pytest.approx(expected, abs=1e-5 if shift else 5e-6)


def test_what_is_forbidden_costs_the_bound_and_nothing_overflows():
    schema = pf.Schema({"a": 2, "b": 2}, forbidden=[{"a": "1", "b": "1"}])
    deep = pf.MarkovRandomField(schema, [("a",), ("a",), ("b",)], [[0, -1e4], [-1e4, 0], [0, -1e9]])
    losses = RowLosses(deep, schema)
    bound = 2**20
    most = Steps.of(Fraction(bound), False).most
    rows = np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
    found = [exact(losses, rows[i : i + 1], bound)[0] for i in range(4)]
    assert found[2:] == [most, most]
    assert found[:2] == pytest.approx([math.log(2) * 2**10] * 2, abs=3)
