from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privfield.data.choice import Choice
from privfield.data.people import WEIGHT_GRID, People
from privfield.data.sources import base as sources
from privfield.data.table import open_table, unit_weight, weight_grid
from privfield.errors import InputError
from privfield.schema import Person, Schema

CONNECTION = duckdb.connect()  # a relation does not keep its connection alive
Row = tuple[Any, int]  # id, value
IDS = {
    "whole": (pa.int64(), [-(2**63), 0, 1, 2**53, 2**53 + 1, 2**63 - 1]),
    "text": (pa.string(), ["a", "A", " a", "NA", "é", "1", "01"]),
    "bytes": (pa.binary(), [b"\xff", b"\xfe", b"\x00"]),
}


def schema(rows: int | None) -> Schema:
    return Schema({"x": 100}, unit=Person("id", rows))


def nobody(person: Any) -> bool:
    return person is None or person == "" or person == b"" or person != person


def mix(x: int) -> int:
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
    return x ^ (x >> 31)


def number(person: Any, value: int, rank: int, key: int) -> int:
    """What decides whether a row counts, from the page: one word holds all of these rows."""
    name = person.encode() if isinstance(person, str) else person
    name = name if isinstance(name, bytes) else str(name).encode()
    salt = hashlib.blake2b(name, digest_size=8, key=key.to_bytes(8, "little")).digest()
    found = int.from_bytes(salt, "little")
    for word in (value, rank):
        found = mix(((found ^ word) + 0x9E3779B97F4A7C15) % 2**64)
    return found


def chosen(person: Any, values: list[int], limit: int, key: int) -> Counter[int]:
    """The values that count, and how often each."""
    copies = [(v, rank) for v, many in Counter(values).items() for rank in range(many)]
    copies.sort(key=lambda copy: (number(person, *copy, key), copy))
    return Counter(value for value, _ in copies[:limit])


def oracle(rows: list[Row], limit: int | None, key: int = 0) -> list[tuple[int, int]]:
    """(value, weight) of the rows that count, by the rules as they are written down."""
    own: dict[Any, list[int]] = {}
    for person, value in rows:
        if not nobody(person):
            own.setdefault(person, []).append(value)
    if limit is None:
        return [(v, WEIGHT_GRID // len(own[p])) for p, v in rows if not nobody(p)]
    left = {person: chosen(person, values, limit, key) for person, values in own.items()}
    found = []
    for person, value in rows:
        if not nobody(person) and left[person][value]:
            left[person][value] -= 1
            found.append((value, 1))
    return found


def read(data: Any, limit: int | None, key: int = 0) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for batch in open_table(data, schema(limit)).batches(key):
        assert batch.rows == len(batch.columns[0]) > 0
        assert (batch.weights is None) == (limit is not None)
        weights = [1] * batch.rows if batch.weights is None else batch.weights.tolist()
        found += zip(batch.columns[0].tolist(), weights, strict=True)
    return found


every_kind = pytest.mark.parametrize("kind", sorted(IDS))


def draw_rows(draws: st.DataObject, kind: str, values: int = 100) -> list[Row]:
    blank = {"text": "", "bytes": b""}.get(kind)
    ids = draws.draw(st.lists(st.sampled_from([*IDS[kind][1], None, blank]), max_size=40))
    ids += [blank, IDS[kind][1][0], None, blank]
    return [(person, place % values) for place, person in enumerate(ids)]


def arrow(kind: str, rows: list[Row]) -> Any:
    ids = pa.array([person for person, _ in rows], IDS[kind][0], from_pandas=False)
    return pa.table({"x": pa.array([value for _, value in rows], pa.int64()), "id": ids})


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "BATCH_ROWS", 7)


@every_kind
@settings(max_examples=10, deadline=None)
@given(st.data(), st.sampled_from([1, 2, 5, None]), st.sampled_from([2, 100]))
def test_which_rows_count_and_how_much(
    kind: str, draws: st.DataObject, limit: int | None, values: int
) -> None:
    rows = draw_rows(draws, kind, values)
    key = draws.draw(st.integers(0, 2**63 - 1))
    table = arrow(kind, rows)
    expected = oracle(rows, limit, key)
    assert read(table, limit, key) == expected
    coded = table.set_column(1, "id", table["id"].dictionary_encode())
    assert read(coded, limit, key) == expected
    assert read(pl.from_arrow(table), limit, key) == expected
    assert read(CONNECTION.from_arrow(table), limit, key) == expected
    if limit is not None:  # a stream that can be read only once
        assert read(table.to_reader(), limit, key) == expected


@every_kind
@settings(max_examples=15, deadline=None)
@given(st.data(), st.sampled_from([1, 3]))
def test_the_order_of_the_table_decides_nothing(
    kind: str, draws: st.DataObject, limit: int
) -> None:
    """Sorted by what others did, cut into other batches, with others gone: the same rows count."""
    rows = draw_rows(draws, kind, 6)

    def count(some: list[Row]) -> Counter[Any]:
        found: Counter[Any] = Counter()
        for person in {person for person, _ in some if not nobody(person)}:
            alone = [row for row in some if row[0] == person]
            found.update((person, value) for value, _ in read(arrow(kind, alone), limit, 7))
        return found

    expected = count(rows)
    shuffled = draws.draw(st.permutations(rows))
    assert count(shuffled) == expected
    assert Counter(value for value, _ in read(arrow(kind, shuffled), limit, 7)) == Counter(
        value for (_, value), many in expected.items() for _ in range(many)
    )


@every_kind
@settings(max_examples=15, deadline=None)
@given(st.data(), st.sampled_from([1, 3, None]))
def test_a_person_changes_only_its_own_rows(
    kind: str, draws: st.DataObject, limit: int | None
) -> None:
    """The neighbour without one person: nobody else's rows or weights change."""
    rows = draw_rows(draws, kind)
    owner = {value: person for person, value in rows}
    weights = Counter[Any]()
    for value, weight in read(arrow(kind, rows), limit):
        weights[owner[value]] += weight
    assert all(weight <= unit_weight(schema(limit)) for weight in weights.values())
    for person in set(weights):
        others = [row for row in rows if row[0] != person or nobody(row[0])]
        kept = [pair for pair in read(arrow(kind, rows), limit) if owner[pair[0]] != person]
        assert read(arrow(kind, others), limit) == kept


def test_ids_in_csv_are_text_as_they_stand(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b'x,id\n1,7\n2,07\n3," 7"\n4,7\n5,\n6,NA\n7,\xff\n8,NA\n9\n10,""\n')
    found = {value for value, _ in read(path, 1)}
    assert len(found) == 5
    assert {2, 3, 7} < found
    half = WEIGHT_GRID // 2
    shared = {1: half, 2: WEIGHT_GRID, 3: WEIGHT_GRID, 4: half, 6: half, 7: WEIGHT_GRID, 8: half}
    assert dict(read(path, None)) == shared


def test_limits_hold_across_files(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        table = pa.table({"x": [number, number + 10], "id": ["a", f"b{number}"]})
        pq.write_table(table, tmp_path / f"{number}.parquet")
    found = [value for value, _ in read(tmp_path, 2)]
    assert len(found) == 5
    assert {11, 12, 13} < set(found)


def test_pandas_ids_with_holes() -> None:
    frame = pd.DataFrame({"x": [1, 2, 1, 4]})
    frame["id"] = pd.Series([1, None, 1, 2], dtype="Int64")
    assert read(frame, 1) == [(1, 1), (4, 1)]
    frame["id"] = pd.Series(["p", None, "p", "q"])
    assert read(frame, 1) == [(1, 1), (4, 1)]


def test_many_people() -> None:
    rng = np.random.default_rng(0)
    rows = [(int(person), int(value)) for person, value in rng.integers(0, (5_000, 9), (20_000, 2))]
    assert read(arrow("whole", rows), 2, 5) == oracle(rows, 2, 5)


def test_ids_say_the_same_whatever_their_type(tmp_path: Path) -> None:
    """The number 7 in a Parquet file, and the text 7 in a CSV file: the same rows count."""
    rows = [(person, value) for person in range(40) for value in range(9)]
    expected = read(arrow("whole", rows), 3, 11)
    path = tmp_path / "t.csv"
    path.write_text("x,id\n" + "".join(f"{value},{person}\n" for person, value in rows))
    assert read(path, 3, 11) == expected
    assert read({"x": [v for _, v in rows], "id": [p for p, _ in rows]}, 3, 11) == expected


def test_every_row_counts_equally_often() -> None:
    """Over 4,000 people with 8 rows, of which two are equal, each has a chance of 3 in 8."""
    rows = [(person, value) for person in range(4_000) for value in (0, 0, 1, 2, 3, 4, 5, 6)]
    counts = np.bincount([value for value, _ in read(arrow("whole", rows), 3, 1)], minlength=7)
    expected = 4_000 * 3 / 8 * np.array([2, 1, 1, 1, 1, 1, 1])
    # standard deviations at most 43: a false alarm in 10^9 keys
    assert np.all(abs(counts - expected) < 6.5 * 43)
    assert counts.sum() == 12_000


def test_another_key_chooses_other_rows() -> None:
    rows = [(1, value) for value in range(50)]
    assert len({tuple(read(arrow("whole", rows), 5, key)) for key in range(20)}) > 15


def test_wide_rows_are_told_apart() -> None:
    """Rows of many words that differ in the last column only."""
    wide = Schema({f"x{j}": 300 for j in range(20)}, unit=Person("id", 4))
    columns = {f"x{j}": [3] * 8 for j in range(19)} | {"x19": [0, 1, 2, 3, 4, 5, 6, 7]}
    found = [
        sorted(
            code
            for batch in open_table(
                {name: values[::step] for name, values in columns.items()} | {"id": ["p"] * 8}, wide
            ).batches(3)
            for code in batch.columns[19].tolist()
        )
        for step in (1, -1)
    ]
    assert found[0] == found[1]
    assert len(set(found[0])) == 4


def test_rows_that_turn_up_later_do_not_count() -> None:
    """A source whose passes differ: nobody gets more than the limit."""
    words = (np.array([0, 1, 2, 0], np.uint8),)
    choice = Choice([1, 2], np.array([3, 1]), (4,), 2, 0)
    owners = np.array([0, 0, 0, 1])
    crowded = choice.crowded(owners)
    choice.look(owners[crowded], [words[0][crowded]])
    choice.decide()
    more = np.array([0, 0, 0, 0, 0, 0, 1, 1, 1, 2, -1])
    values = (np.array([0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 0], np.uint8),)
    keep = choice.keep(more, values)
    assert keep[:6].sum() == 2
    assert keep[6:].tolist() == [True, True, False, False, False]


def test_rows_that_are_gone_later_raise_nothing() -> None:
    choice = Choice([1], np.array([3]), (4,), 2, 0)
    choice.decide()  # nothing was looked at: the table was empty the second time
    assert not choice.keep(np.array([0, 0]), [np.array([0, 1], np.uint8)]).any()


def test_a_person_with_more_rows_than_the_grid_weighs_nothing_more() -> None:
    ids = pa.array(["a"] * (WEIGHT_GRID + 1) + ["b"])
    people = People()
    people.count(ids)
    weights = people.shares(people.numbers(ids))
    assert weights[:-1].sum() == 0
    assert weights[-1] == WEIGHT_GRID


def test_rows_that_turn_up_after_counting_weigh_nothing() -> None:
    people = People()
    people.count(pa.array(["a", "a", "b"]))
    numbers = people.numbers(pa.array(["a", "c", "a", "a", "b", *map(str, range(3000))]))
    late = people.shares(numbers)
    assert late[:5].tolist() == [WEIGHT_GRID // 2, 0, WEIGHT_GRID // 2, 0, WEIGHT_GRID]
    assert not late[5:].any()


def test_what_one_person_weighs() -> None:
    expected = {1: (1, 1), 5: (1, 5), None: (WEIGHT_GRID, WEIGHT_GRID)}
    for limit, numbers in expected.items():
        assert (weight_grid(schema(limit)), unit_weight(schema(limit))) == numbers
    assert (weight_grid(Schema({"x": 2})), unit_weight(Schema({"x": 2}))) == (1, 1)


def test_ids_with_a_full_dictionary_of_small_indices() -> None:
    for size, kind in ((128, pa.int8()), (256, pa.uint8())):
        ids = pa.DictionaryArray.from_arrays(
            pa.array([*range(size), None]).cast(kind), [str(number) for number in range(size)]
        )
        data = pa.table({"x": [number % 100 for number in range(size + 1)], "id": ids})
        assert len(read(data, 1)) == size


def test_ids_that_are_decimals() -> None:
    for kind in (pa.decimal32(5, 2), pa.decimal64(5, 2), pa.decimal128(5, 2), pa.decimal256(5, 2)):
        ids = pa.array(["1.00", "1.01", None, "1.00"]).cast(pa.decimal128(5, 2)).cast(kind)
        assert read(pa.table({"x": [1, 2, 3, 1], "id": ids}), 1) == [(1, 1), (2, 1)]


def test_sharing_needs_two_passes() -> None:
    with pytest.raises(InputError) as caught:
        open_table(pa.table({"x": [1], "id": [1]}).to_reader(), schema(None))
    assert str(caught.value) == (
        "data can be read only once, but sharing weight among a person's rows takes two passes. "
        "Pass a frame or a file, or limit the rows: pf.Person(column, rows=1)."
    )


def test_the_id_column_must_be_there() -> None:
    with pytest.raises(InputError, match="lacks 1 column of the schema: 'id'"):
        open_table({"x": [1]}, schema(1))
    with pytest.raises(InputError, match="column 'id' has type list"):
        open_table(pa.table({"x": [1], "id": [[1]]}), schema(1))


BIG = [2**53, 2**53 + 1, None]


@pytest.mark.parametrize("rows", [1, None])
@pytest.mark.parametrize(
    "data",
    [
        pd.DataFrame({"x": [1, 2, 3], "id": BIG}),
        pd.DataFrame({"x": [1, 2, 3], "id": pd.array([0.5, None, 1], "Float64")}),
        pd.DataFrame({"x": [1, 2, 3], "id": pd.Series(BIG).astype("category")}),
        pd.DataFrame({"x": [1, 2, 3], "id": pd.Series([1, 2, 3], dtype="float[pyarrow]")}),
        pa.table({"x": [1, 2], "id": pa.array([1, 2], pa.float16())}),
        pa.table({"x": [1, 2], "id": pa.array([1.0, 2.0]).dictionary_encode()}),
        pl.DataFrame({"x": [1, 2], "id": [1.0, 2.0]}),
        {"x": [1, 2], "id": np.array([1, 2], np.float64)},
        {"x": [1, 2], "id": np.array([1, 2], np.longdouble)},
        {"x": [1, 2], "id": pa.chunked_array([[1.0], [2.0]])},
    ],
)
def test_ids_that_are_floats_are_refused_by_their_type(data: Any, rows: int | None) -> None:
    """pandas makes floats of whole numbers when one is missing: 2**53 and 2**53 + 1 are one."""
    with pytest.raises(InputError) as caught:
        open_table(data, schema(rows))
    assert str(caught.value) == (
        "data: column 'id' tells people apart, but its type is float, in which whole numbers from "
        "2**53 on are rounded: two people would count as one. Read ids as text (pandas: "
        "dtype={'id': str}); smaller whole numbers can be converted: .astype(\"Int64\")."
    )


def test_float_ids_in_one_of_many_files_are_refused(tmp_path: Path) -> None:
    for name, ids in (("a", [1, 2]), ("b", [1.0, 2.0])):
        pq.write_table(pa.table({"x": [1, 2], "id": ids}), tmp_path / f"{name}.parquet")
    with pytest.raises(InputError, match="its type is float"):
        open_table(tmp_path, schema(1))


def test_float_ids_are_refused_before_anything_is_charged(tmp_path: Path) -> None:
    import privfield as pf

    ledger = pf.Ledger(tmp_path / "l.ledger", pf.ZCDP(1), "replace-one")
    frame = pd.DataFrame({"x": [1, 2, 3], "id": BIG})
    with pytest.raises(InputError, match="its type is float"):
        pf.measure(frame, schema(1), [("x",)], pf.ZCDP(0.5), ledger=ledger)
    assert not ledger.charges()


def test_floats_among_objects_are_nobody_where_they_are_not_exact() -> None:
    """A column of objects has no type: each value is judged alone."""
    ids = [2**53, float(2**53), 2**53 + 1, 7, 7.0, "7", np.float32(2**24), 2.0**60, "a"]
    data = {"x": list(range(len(ids))), "id": ids}
    assert {value for value, _ in read(data, 9)} == {0, 2, 3, 4, 5, 8}


def test_text_ids_are_compared_byte_by_byte(tmp_path: Path) -> None:
    ids = ["é", "e\u0301", "a", "A", "a ", "a\0", "ａ", "1", "1.0", "01", "+1", "ß", "ss"]
    data = {"x": list(range(len(ids))), "id": ids}
    for table in (data, pa.table(data), pd.DataFrame(data), pl.DataFrame(data)):
        assert len(read(table, 1)) == len(ids)
