"""Sequences from every kind of source, read by the rules as they are written down."""

from __future__ import annotations

import importlib.util
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privfield.data.sequences import read as module
from privfield.data.sequences.form import SequenceForm, StateSet, id_unit
from privfield.data.sequences.read import Sequences, SequenceSource
from privfield.errors import InputError
from privfield.schema import Bins, Person, Schema

STATES = StateSet.of(["home", "work", "shop"])
GAP = 3


def read(data, people=None, states=STATES, columns=module.COLUMNS):
    """People as lists of sequences of codes."""
    found = SequenceSource(states, data, people, columns).read()
    return people_of(found)


def people_of(found):
    return [
        [found.codes[found.offsets[s] : found.offsets[s + 1]].tolist() for s in range(a, b)]
        for a, b in zip(found.owners[:-1], found.owners[1:], strict=True)
    ]


def test_entries_are_sequences_or_lists_of_sequences():
    data = [["home", "work"], [["shop"], ["work", "home"]], [], [[]], ("shop", "shop")]
    assert read(data) == [[[0, 1]], [[2], [1, 0]], [[]], [[]], [[2, 2]]]


def test_a_mapping_names_people():
    assert read({"ann": [["home"], ["work", "work"]], "bob": ["shop"], "cy": []}) == [
        [[0], [1, 1]],
        [[2]],
        [[]],
    ]


def test_entries_with_one_id_are_one_person():
    data = [["home"], ["work"], ["shop"], ["home", "home"], ["work"]]
    people = ["a", "b", "a", None, "b"]
    assert read(data, people) == [[[0], [2]], [[1], [1]]]
    assert read(data, np.array([5, 7, 5, 9, 7])) == [[[0], [2]], [[1], [1]], [[0, 0]]]
    assert read(data, pd.Series(["a", "b", "a", None, "b"])) == [[[0], [2]], [[1], [1]]]
    assert read([[], ["home"]], ["x", "y"]) == [[[]], [[0]]]


def test_what_is_no_state_is_a_gap_or_the_state_that_was_named():
    data = [["home", None, "bar", "work", float("nan"), ["x"], "NA", " shop "]]
    assert read(data) == [[[], [], [], [], [], [3], [], []]]  # a list inside: a list of sequences
    flat = [["home", None, "bar", "work", float("nan"), {1: 2}, "NA", " shop "]]
    assert read(flat) == [[[0, GAP, GAP, 1, GAP, GAP, GAP, 2]]]
    known = StateSet.of(["home", "work", "shop"], unknown="shop")
    assert read(flat, states=known) == [[[0, 2, 2, 1, 2, 2, 2, 2]]]


def test_numbers_are_positions_where_no_state_is_a_number():
    assert read([[0, 2, 5, -1, 1.0, 0.5]]) == [[[0, 2, GAP, GAP, 1, GAP]]]
    numbered = StateSet.of([1, 2, 17])
    assert read([[1, 17, 0, "2"]], states=numbered) == [[[0, 2, GAP, 1]]]
    assert read(np.array([[1, 17], [0, 2]]), states=numbered) == [[[0, 2]], [[GAP, 1]]]
    assert StateSet.of(3).names == ("0", "1", "2")


def test_every_source_reads_the_same(tmp_path):
    codes = [[0, 1, 1], [2, 0, 3]]
    names = [["home", "work", "work"], ["shop", "home", "elsewhere"]]
    rows = [(person, "s", name) for person, seq in zip("ab", names, strict=True) for name in seq]
    frame = pd.DataFrame(rows, columns=["person", "sequence", "state"])
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    expected = [[codes[0]], [codes[1]]]
    sources = [
        *(names, codes, np.array(codes), np.array(codes, float), np.array(names)),
        *(np.array(names, object), pa.array(names), pa.chunked_array([names[:1], names[1:]])),
        *(pa.array(codes), pa.array(codes, pa.large_list(pa.int8())), [np.array(c) for c in codes]),
        *([pd.Series(n) for n in names], dict(zip("ab", names, strict=True))),
        *(frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)),
        *(tmp_path / "t.csv", str(tmp_path / "t.parquet")),
    ]
    for source in sources:
        assert read(source) == expected, type(source)
    assert (
        people_of(SequenceSource(STATES, SequenceSource(STATES, names).read()).read()) == expected
    )


def test_a_frame_may_mix_its_people_and_sequences():
    rows = [
        *(("b", 1, "home"), ("a", 1, "work"), ("b", 2, "shop"), (None, 1, "home")),
        *(("b", 1, "work"), ("a", 1, "work"), ("", 1, "shop"), ("b", None, "home")),
    ]
    frame = pd.DataFrame(rows, columns=["who", "day", "place"])
    mixed = read(frame, columns=("who", "day", "place"))
    assert sorted(map(sorted, mixed)) == [[[0], [0, 1], [2]], [[1, 1]]]
    assert read(frame, columns=("who", None, "place")) == [[[0, 2, 1, 0]], [[1, 1]]]


def test_a_stream_that_can_be_read_once():
    frame = pa.table({"person": ["a", "a"], "sequence": [1, 1], "state": ["home", "shop"]})
    assert read(frame.to_reader()) == [[[0, 2]]]


def test_null_lists_are_empty():
    values = pa.array([0, 1, 2, 0], pa.int8())
    array = pa.ListArray.from_arrays(
        pa.array([0, 2, 3, 4], pa.int32()), values, mask=pa.array([False, True, False])
    )
    assert read(array) == [[[0, 1]], [[]], [[0]]]
    assert read(array[1:]) == [[[]], [[0]]]


def test_a_schema_says_what_values_are_read_as():
    ages = StateSet.of_schema(Schema({"age": Bins([0, 18, 65])}, unit=Person("id")))
    assert read([[3, 200, "40", None, "x"]], states=ages) == [[[0, 1, 1, 0, 0]]]
    with pytest.raises(InputError, match="one variable, the state"):
        StateSet.of_schema(Schema({"a": 2, "b": 2}))


class Hostile2(list):
    def __iter__(self):
        raise ValueError("SECRET")


class Array:
    def __array__(self, *arguments, **options):
        raise ValueError("SECRET")


ODD = [
    *(None, 5, "home", b"home", {}, {"home"}, Hostile2(["home"]), Array(), np.zeros(())),
    *(
        np.zeros((2, 2, 2)),
        [[[]]],
        [object()],
        [2**200],
        [Hostile2()],
        range(3),
        [[None]],
        [b"\xff"],
    ),
    *(np.array([1 + 2j]), float("nan")),
]


@pytest.mark.parametrize("odd", ODD, ids=[type(o).__name__ + str(i) for i, o in enumerate(ODD)])
def test_an_odd_entry_changes_nothing_but_itself(odd):
    plain = [["home", "work"], ["shop"], ["work"]]
    found = read([plain[0], odd, plain[2]])
    assert len(found) == 3
    assert found[0] == [[0, 1]] and found[2] == [[1]]
    assert all(code <= GAP for sequence in found[1] for code in sequence)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_person_changes_only_itself(draws):
    """The neighbour without one person: everybody else's sequences stay as they are."""
    some = st.lists(st.sampled_from(["home", "work", "shop", "x"]), max_size=4)
    entries = draws.draw(st.lists(some, max_size=8))
    ids = draws.draw(st.lists(st.sampled_from("abc"), min_size=len(entries), max_size=len(entries)))
    expected = {
        person: [
            [STATES.names.index(s) if s != "x" else GAP for s in e]
            for e, i in zip(entries, ids, strict=True)
            if i == person
        ]
        for person in dict.fromkeys(ids)
    }
    assert read(entries, ids) == list(expected.values())
    for left_out in set(ids):
        kept = [(e, i) for e, i in zip(entries, ids, strict=True) if i != left_out]
        found = read([e for e, _ in kept], [i for _, i in kept])
        assert found == [v for person, v in expected.items() if person != left_out]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_rows_of_others_do_not_change_the_order_of_sequences(draws):
    """In frames, too: labels that others used before leave a person's sequences as they are."""
    cell = st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"), st.sampled_from(STATES.names))
    rows = draws.draw(st.lists(cell, max_size=25))
    found = read(table(rows))
    people = list(dict.fromkeys(person for person, _, _ in rows))
    for person, sequences in zip(people, found, strict=True):
        assert read(table([row for row in rows if row[0] == person])) == [sequences]
        own = {}
        for _, label, state in (row for row in rows if row[0] == person):
            own.setdefault(label, []).append(STATES.names.index(state))
        assert sequences == list(own.values())


def table(rows):
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    return pa.table(
        {n: pa.array(c, pa.string()) for n, c in zip(module.COLUMNS, columns, strict=True)}
    )


MOMENTS = ["", "2", "10", "-3", "2024-01-05", "2024-01-10", "07", None]
NAMES = ["x", "10", "9", "09", None]


@given(st.data())
def test_a_column_orders_states_and_sequences_whatever_the_order_of_rows(draws):
    """Missing first, numbers by value, other texts byte by byte; at one place in state order.

    Sequences come by their first places, and then by their labels.
    """
    standing = {None: 0, "": 0, "-3": 1, "2": 2, "07": 3, "10": 4, "2024-01-05": 5, "2024-01-10": 6}
    turn = [None, "09", "9", "10", "x"].index
    cell = st.tuples(*map(st.sampled_from, ("ab", NAMES, STATES.names, MOMENTS)))
    rows = draws.draw(st.lists(cell, max_size=25))
    own = {"a": {}, "b": {}}
    for person, label, state, moment in rows:
        place = standing[moment], STATES.names.index(state)
        own[person].setdefault(turn(label), []).append(place)
    expected = {}
    for person, sequences in own.items():
        ordered = sorted((min(each)[0], label, sorted(each)) for label, each in sequences.items())
        expected[person] = [[code for _, code in each] for _, _, each in ordered]
    for _ in range(2):
        columns = dict(zip("pqst", zip(*rows, strict=True) if rows else [()] * 4, strict=True))
        data = pa.table({name: pa.array(c, pa.string()) for name, c in columns.items()})
        people = dict.fromkeys(columns["p"])
        found = read(data, columns=("p", "q", "s", "t"))
        assert found == [expected[person] for person in people]
        rows = draws.draw(st.permutations(rows))
    numbers = pa.table({"p": ["a"] * 3, "s": list(STATES.names), "t": [2.5, 10, -1]})
    assert read(numbers, columns=("p", None, "s", "t")) == [[[2, 0, 1]]]


def test_labels_that_say_the_same_are_told_apart_and_ordered():
    labels = [True, "<class 'bool'>\0True", 7, "07", 7.5, "x", Decimal("7.5"), b"8"]
    states = ["home", "work", "shop", "home", "work", "shop", "home", "work"]
    frame = pd.DataFrame({"p": "a", "q": pd.Series(labels, dtype=object), "s": states, "t": 1})
    found = read(frame, columns=("p", "q", "s", "t"))
    assert found == read(frame[::-1], columns=("p", "q", "s", "t"))
    assert found == [[[0], [2], [0, 1], [1], [0], [1], [2]]]


def test_long_lists_are_read_in_parts(monkeypatch):
    monkeypatch.setattr(module, "_ITEMS", 3)
    monkeypatch.setattr(module, "_PEOPLE", 2)
    data = [["home"] * (n % 4) for n in range(11)]
    assert read(data) == [[[0] * (n % 4)] for n in range(11)]
    found = SequenceSource(STATES, data).read()
    assert list(found.people()) == [(0, 2), (2, 4), (4, 6), (6, 8), (8, 10), (10, 11)]
    assert repr(found) == "<Sequences>"


@pytest.mark.parametrize(
    "data",
    [[], {}, np.zeros((0, 4), int), np.zeros((3, 0), int), pa.array([], pa.list_(pa.int8()))],
)
def test_no_data_at_all(data):
    assert all(person in ([], [[]]) for person in read(data))


def test_bad_input():
    bad = [
        (lambda: SequenceSource(STATES, 5), "sequences must be a list .* got int"),
        (lambda: SequenceSource(STATES, b"home"), "got bytes"),
        (lambda: SequenceSource(STATES, {"home"}), "got set"),
        (lambda: SequenceSource(STATES, np.zeros(3)), "2-D; it has 1 axes"),
        (lambda: SequenceSource(STATES, np.zeros((2, 2), complex)), "dtype is complex128"),
        (lambda: SequenceSource(STATES, np.ma.zeros((2, 2))), "unmasked"),
        (lambda: SequenceSource(STATES, pa.array([[[1]]])), "lists of plain values"),
        (lambda: SequenceSource(STATES, pa.chunked_array([[1]])), "lists of plain values"),
        (lambda: SequenceSource(STATES, "nowhere.csv"), "nowhere.csv"),
        (lambda: SequenceSource(STATES, pd.DataFrame({"a": [1]})), "'state', 'sequence', 'person'"),
        (lambda: SequenceSource(STATES, [["home"]], ["a", "b"]), "one id for each entry"),
        (lambda: SequenceSource(STATES, [["home"]], "a"), "people must be a list"),
        (lambda: SequenceSource(STATES, {"a": ["home"]}, ["a"]), "people must be None"),
        (lambda: StateSet.of(["home"]), "at least two"),
        (lambda: StateSet.of(["home", "home"]), "lists a level twice"),
        (lambda: StateSet.of("home"), "states: must be a list"),
        (lambda: StateSet.of(20_000), "400,000,000 transitions; 134,217,728 fit"),
        (lambda: StateSet.of(["a", "b"], unknown="c"), "no level 'c'"),
        (lambda: StateSet.of_schema({"a": 2}), "got dict"),
    ]
    for make, text in bad:
        with pytest.raises(InputError, match=text):
            make()


# -- whose they are


@pytest.mark.parametrize(
    ("columns", "words", "unit"),
    [
        (module.COLUMNS, None, "person"),
        (("trip", None, "state"), None, "trip"),
        (module.COLUMNS, "person-day", "person-day"),
        (("trip", None, "state"), "person", "person (trip)"),
        (("trip", None, "state"), "trip", "trip"),
    ],
)
def test_the_unit_is_what_the_id_column_identifies(columns, words, unit):
    assert str(SequenceForm.of(["a", "b"], columns=columns, unit=words).unit) == unit
    assert str(id_unit(columns, words)) == unit


def test_a_schema_names_states_columns_and_the_unit():
    schema = Schema({"place": ["a", "b"]}, unit=Person("user_day"))
    form = SequenceForm.of(None, schema=schema, columns=("x", None, "y"))
    assert form.columns == ("user_day", None, "place") and str(form.unit) == "person (user_day)"
    words = SequenceForm.of(None, schema=schema, columns=("x", None, "y"), unit="day")
    assert str(words.unit) == "day (user_day)"
    plain = SequenceForm.of(None, schema=Schema({"place": ["a", "b"]}), columns=("x", None, "y"))
    assert plain.columns == ("x", None, "place") and str(plain.unit) == "x"


def test_errors_show_nothing_that_values_made():
    """The width of texts, and of the indices of categories, follow from what records hold."""
    dates = [pd.Categorical(pd.to_datetime(pd.Series(range(n)))) for n in (3, 300)]
    pairs = [
        [np.ma.array([["a", "b"], ["a", text]]) for text in ("b", "b" * 37)],
        [pa.ListArray.from_arrays([0, 1], pa.array(found)) for found in dates],
        [pa.array([[dict.fromkeys(keys, 1)]]) for keys in ("a", "abc")],
    ]
    for pair in pairs:
        texts = []
        for data in pair:
            with pytest.raises(InputError) as caught:
                SequenceSource(STATES, data)
            texts.append(str(caught.value))
        assert texts[0] == texts[1]


MSNBC = Path(__file__).parents[4] / "shared" / "data" / "msnbc990928.zip"


@pytest.mark.skipif(not MSNBC.exists(), reason="the MSNBC sequences are not there")
def test_the_msnbc_sequences(monkeypatch):
    path = Path(__file__).parents[3] / "experiments" / "chains.py"
    monkeypatch.syspath_prepend(path.parent)  # the experiment has helpers of its own
    spec = importlib.util.spec_from_file_location("chains_experiment", path)
    study = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(study)
    names, sessions = study.read_msnbc(MSNBC)
    assert len(names) == 17 and names[0] == "frontpage" and names[-1] == "travel"
    assert len(sessions) == 989_818  # as the archive says
    assert sessions[2].as_py() == [2, 1, 1, 3, 1, 1, 1, 2, 2]
    found = SequenceSource(StateSet.of(names), sessions).read()
    assert isinstance(found, Sequences) and len(found.codes) == 4_698_794
    assert found.codes.max() == 16 and np.median(np.diff(found.offsets)) == 2


def test_ids_that_are_floats_are_refused_by_their_type():
    frame = pd.DataFrame({"person": [1, None], "sequence": [1, 2], "state": ["home", "work"]})
    for call in (
        lambda: SequenceSource(STATES, frame),
        lambda: SequenceSource(STATES, [["home"], ["work"]], np.array([1.0, 2.0])),
        lambda: SequenceSource(STATES, [["home"], ["work"]], pd.Series([1, None])),
    ):
        with pytest.raises(InputError, match="tells people apart, but its type is float"):
            call()
