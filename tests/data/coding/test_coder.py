"""Every source gives the codes that a plain row-by-row reading of the rules gives."""

from __future__ import annotations

import io
import math
import re
from fractions import Fraction
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

from privfield.data.coding.rules import VariableRule, reading_rule
from privfield.data.sources import base as sources
from privfield.data.table import open_table
from privfield.schema import Bins, Ordered, Schema, Variable, level_numbers, level_text

MISSING = {"", "NA", "NaN", "null", "None", "N/A", "nan", "NULL"}
TRUTH = [
    *[("True", "False"), ("TRUE", "FALSE"), ("1", "0")],
    *[("yes", "no"), ("Yes", "No"), ("YES", "NO")],
]


CONNECTION = duckdb.connect()  # a relation does not keep its connection alive


# The rules again, one value at a time, without numpy, Arrow or step functions.


def oracle(variable: Variable, value: object) -> int:
    missing = variable.levels.index(variable.missing)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return missing
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogatepass")
    if isinstance(value, bytes):
        return oracle_text(variable, value)
    if is_named(variable):
        if isinstance(value, bool):
            return oracle_truth(variable, value)
        known = not isinstance(value, float) or math.isfinite(value)
        return place(variable, level_text(value) if known else None)
    if variable.kind == "number":
        return oracle_position(variable, value)
    number = float(value) if isinstance(value, bool) else value
    if variable.kind == "ordered":
        return oracle_nearest(variable, number)
    for code, low in enumerate(variable.edges[:-1]):
        high = variable.edges[code + 1]
        if low <= number < high or number == high == math.inf:
            return code
    if variable.unknown is not None:
        return variable.levels.index(variable.unknown)
    return 0 if number < variable.edges[0] else len(variable.levels) - 1


def place(variable: Variable, name: str | None) -> int:
    return variable.levels.index(name if name in variable.levels else variable.unknown)


def is_named(variable: Variable) -> bool:
    """Whether numbers are names too; ordered ones may stand for all that lie near."""
    return variable.kind == "levels" or (
        variable.kind == "ordered" and variable.unknown is not None
    )


def oracle_nearest(variable: Variable, number: Any) -> int:
    """A half goes up; what is a step or more off the ends is missing."""
    ends = [Fraction(level) for level in variable.levels]
    if len(ends) > 1:
        low, second, *_ = sorted(ends)
        *_, last, high = sorted(ends)
        if not low - (second - low) < number < high + (high - last):
            return variable.levels.index(variable.missing)
    if not math.isfinite(number):
        return ends.index(max(ends) if number > 0 else min(ends))
    return min(range(len(ends)), key=lambda code: (abs(ends[code] - Fraction(number)), -ends[code]))


def test_99_is_no_answer_on_a_scale() -> None:
    values = [0, 0.01, 1, 6, 6.5, 6.99, 7, 99, -1, math.inf]
    scale = Schema({"x": Ordered(range(1, 7))}, gaps={"x": "no answer"})
    expected = [6, 0, 0, 5, 5, 5, 6, 6, 6, 6]
    assert codes({"x": values}, scale) == expected
    assert codes({"x": [str(value) for value in values]}, scale) == expected
    assert codes({"x": [99, 7, 0, 3]}, scale) == [6, 6, 6, 2]
    middle = Schema({"x": Ordered(range(1, 7))}, missing={"x": 3})
    assert codes({"x": [99, None, 6]}, middle) == [2, 2, 5]
    asked = Schema({"x": Ordered(range(1, 7))}, unknown={"x": 6})
    assert codes({"x": [99, 7, 1]}, asked) == [5, 5, 0]


def oracle_position(variable: Variable, number: Any) -> int:
    """Positions 0, 1, …: what "number" variables and arrays of codes hold."""
    last = len(variable.levels) - 1
    if variable.unknown is None:
        return round(min(max(number, 0), last))
    listed = number in range(last + 1)
    return int(number) if listed else variable.levels.index(variable.unknown)


def oracle_truth(variable: Variable, value: bool) -> int:
    levels = variable.levels
    fitting = [pair for pair in TRUTH if pair[0] in levels and pair[1] in levels]
    if "true" in levels or "false" in levels or len(fitting) != 1:
        fitting = [("true", "false")]
    return place(variable, fitting[0][0 if value else 1])


def oracle_text(variable: Variable, raw: bytes) -> int:
    for text in (raw, raw.strip()):
        word = text.decode("utf-8", "surrogateescape")
        if word in variable.levels:
            return variable.levels.index(word)
        if word in MISSING:
            return variable.levels.index(variable.missing)
    if word.lower() in ("true", "false"):
        return oracle(variable, word.lower() == "true")
    if is_named(variable):
        decimal = re.fullmatch(r"[+-]?[0-9]+\.[0-9]*", word, re.ASCII)
        return oracle(variable, float(word)) if decimal else place(variable, None)
    try:
        number = float(word.encode("utf-8", "surrogateescape"))
    except ValueError:
        number = None
    if number is None or "_" in word:
        return variable.levels.index(variable.unknown or variable.missing)
    return oracle(variable, number)


NAMES = [
    *["no", "yes", "Yes", "No", "true", "false", "True", "False", "TRUE", "FALSE"],
    *["0", "1", "2", "-3", "01", "1.0", "1.5", "0.1", "10", "255", "65536", "1e+16"],
    *["9007199254740993", "18446744073709551615", "-9223372036854775808"],
    *["NA", "", " a", "a", "é", "a,b", 'say "hi"', "two\nlines", "inf", "nan", "-0"],
]
SCALE = ["0", "1", "2", "-3", "1.5", "0.25", "10", "255", "65536", "6"]
EDGES = [-math.inf, -1e9, -2.5, -1.0, 0.0, 0.1, 0.5, 1.0, 18.0, 40.0, 1e6, 1e300, math.inf]
INTEGERS = st.one_of(
    st.integers(-5, 15),
    st.sampled_from([-(2**63), 2**63 - 1, 2**53 + 1, 255, 256, 65536, -(2**31), 10**6, 39, 40]),
)
FLOATS = st.one_of(
    st.sampled_from([0.0, -0.0, 0.5, 1.5, 2.5, -0.5, 1.0, 2.0, -3.0, 10.0, 0.1, 1e16, 1e300]),
    st.sampled_from([math.inf, -math.inf, math.nan, 5e-324, 17.999999999999996, 255.0, 2**31]),
    st.floats(),
)
ODD = [
    *[" yes ", "\tno", "1.0", "2.50", "-0.0", "+1.0", "1e0", " 17 ", "1_0", "١", "1.5 "],
    *["Infinity", "-inf", "NAN", "1e999", "9" * 400, "9" * 400 + ".0", "tRuE", " FALSE"],
    *["N/A", " null ", "None", "0-18", "<0.1", ">=40", "junk", "'", "0x10", ".5", "1."],
]
TEXTS = st.one_of(
    st.sampled_from(NAMES),
    st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0"), max_size=4),
)
BYTES = st.one_of(TEXTS.map(str.encode), st.binary(max_size=4))


@st.composite
def schemas(draw: st.DrawFn, kind: str) -> Schema:
    if kind == "levels":
        given = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=8, unique=True))
    elif kind == "ordered":
        names = draw(st.sampled_from([NAMES, SCALE]))
        given = Ordered(draw(st.lists(st.sampled_from(names), min_size=1, max_size=8, unique=True)))
        if level_numbers(given.levels) and names is NAMES:
            given = Ordered([*given.levels, "much"])  # NAMES holds numbers that floats round
    elif kind == "number":
        given = draw(st.sampled_from([1, 2, 3, 12, 256, 257]))
    else:
        given = Bins(sorted(draw(st.sets(st.sampled_from(EDGES), min_size=2, max_size=6))))
    levels = Schema({"x": given})["x"].levels
    rules = {}
    for rule in ("missing", "unknown"):
        if draw(st.booleans()):
            rules[rule] = {"x": draw(st.sampled_from(levels[:50]))}
    return Schema({"x": given}, **rules)


every_kind = pytest.mark.parametrize("kind", ["levels", "ordered", "number", "bins"])


def probes(schema: Schema) -> list[float]:
    """The numbers of the schema and their next neighbours, where mistakes would show."""
    found: list[float] = []
    for text in (*schema["x"].levels[-9:], *schema["x"].edges):
        try:
            number = float(text)
        except ValueError:
            continue
        if math.isfinite(number):
            found += [number, math.nextafter(number, -math.inf), math.nextafter(number, math.inf)]
            found += [number - 0.5, number + 0.5, number + 1]
    return found


def whole_probes(schema: Schema, low: int = -(2**63), high: int = 2**63 - 1) -> list[int]:
    names = [name for name in schema["x"].levels[-9:] if re.fullmatch("-?[0-9]+", name)]
    numbers = [*map(int, names), *map(round, probes(schema)), low, high]
    return [n + step for n in numbers for step in (-1, 0, 1) if low <= n + step <= high]


def codes(data: Any, schema: Schema) -> list[int]:
    found: list[int] = []
    for batch in open_table(data, schema).batches():
        (column,) = batch.columns
        assert column.size == batch.rows
        assert column.flags.c_contiguous
        assert column.dtype == (np.uint8 if schema.shape[0] <= 256 else np.uint16)
        found += column.tolist()
    return found


def csv_bytes(values: list[bytes]) -> bytes:
    rows = [b'"' + each.replace(b'"', b'""') + b'",z' for each in values]
    return b"\r\n".join([b"x,other", *rows, b""])


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return tmp_path_factory.mktemp("coding")


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "BATCH_ROWS", 7)  # slices with all kinds of offsets


def arrow_sources(column: Any, folder: Any) -> dict[str, Any]:
    """The same column in everything that can hold Arrow columns."""
    table = pa.table({"unused": pa.nulls(len(column)), "x": column})
    pq.write_table(table, folder / "x.parquet", row_group_size=5)
    half = len(column) // 2
    return {
        "arrow": table,
        "chunks": pa.concat_tables([table.slice(0, half), table.slice(half)]),
        "reader": table.to_reader(max_chunksize=3),
        "mapping": {"x": column},
        "dictionary": pa.table({"x": column.dictionary_encode()}),
        "parquet": folder / "x.parquet",
        "polars": pl.from_arrow(table),
        "duckdb": CONNECTION.from_arrow(table),
    }


@every_kind
@settings(max_examples=13, deadline=None)
@given(st.data(), st.lists(st.none() | TEXTS, max_size=20))
def test_text(folder: Any, kind: str, draws: st.DataObject, values: list[str | None]) -> None:
    schema = draws.draw(schemas(kind))
    values = [*values, *ODD, *schema["x"].levels[-9:]]
    expected = [oracle(schema["x"], value) for value in values]
    for name, data in arrow_sources(pa.array(values, pa.string()), folder).items():
        assert codes(data, schema) == expected, name
    for kind in (pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary()):
        column = pa.array(values, kind)
        assert codes(pa.table({"x": column}), schema) == expected, kind
    assert codes(pd.DataFrame({"x": pd.Series(values, dtype=object)}), schema) == expected
    assert codes(pd.DataFrame({"x": pd.Series(values, dtype="str")}), schema) == expected
    distinct = list(dict.fromkeys(value for value in values if value is not None))
    categories = pd.Categorical(values, categories=distinct)
    assert codes(pd.DataFrame({"x": categories}), schema) == expected


@every_kind
@settings(max_examples=13, deadline=None)
@given(st.data(), st.lists(BYTES, max_size=20))
def test_bytes_through_csv(
    folder: Any, kind: str, draws: st.DataObject, values: list[bytes]
) -> None:
    schema = draws.draw(schemas(kind))
    values = [*values, b"\xff\xfe", b"yes\xff", b"\xc3(", *map(str.encode, ODD)]
    expected = [oracle(schema["x"], value) for value in values]
    path = folder / "x.csv"
    path.write_bytes(csv_bytes(values))
    assert codes(path, schema) == expected
    assert codes(str(path), schema) == expected
    pq.write_table(pa.table({"x": pa.array(values, pa.binary())}), folder / "bytes.parquet")
    assert codes(folder / "bytes.parquet", schema) == expected


@every_kind
@settings(max_examples=13, deadline=None)
@given(st.data(), st.lists(st.none() | INTEGERS, max_size=20))
def test_whole_numbers(
    folder: Any, kind: str, draws: st.DataObject, values: list[int | None]
) -> None:
    schema = draws.draw(schemas(kind))
    values = [*values, *whole_probes(schema)]
    expected = [oracle(schema["x"], value) for value in values]
    for name, data in arrow_sources(pa.array(values, pa.int64()), folder).items():
        assert codes(data, schema) == expected, name
    assert codes(pd.DataFrame({"x": pd.array(values, dtype="Int64")}), schema) == expected
    for kind in (pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32()):
        low, high = np.iinfo(kind.to_pandas_dtype()).min, np.iinfo(kind.to_pandas_dtype()).max
        some = [v for v in values if v is None or low <= v <= high] + [low, high]
        found = codes(pa.table({"x": pa.array(some, kind)}), schema)
        assert found == [oracle(schema["x"], value) for value in some]


@every_kind
@settings(max_examples=10, deadline=None)
@given(st.data(), st.lists(st.none() | st.integers(2**63 - 2, 2**64 - 1), max_size=9))
def test_huge_whole_numbers(kind: str, draws: st.DataObject, values: list[int | None]) -> None:
    schema = draws.draw(schemas(kind))
    values = [*values, *whole_probes(schema, 0, 2**64 - 1)]
    found = codes(pa.table({"x": pa.array(values, pa.uint64())}), schema)
    assert found == [oracle(schema["x"], value) for value in values]


@every_kind
@settings(max_examples=13, deadline=None)
@given(st.data(), st.lists(st.none() | FLOATS, max_size=20))
def test_decimal_numbers(
    folder: Any, kind: str, draws: st.DataObject, values: list[float | None]
) -> None:
    schema = draws.draw(schemas(kind))
    values = [*values, *probes(schema)]
    expected = [oracle(schema["x"], value) for value in values]
    for name, data in arrow_sources(pa.array(values, pa.float64()), folder).items():
        assert codes(data, schema) == expected, name
    assert codes(pd.DataFrame({"x": np.array(values, float)}), schema) == expected


@every_kind
@settings(max_examples=10, deadline=None)
@given(st.data(), st.lists(st.none() | st.booleans(), max_size=20))
def test_truth(folder: Any, kind: str, draws: st.DataObject, values: list[bool | None]) -> None:
    schema = draws.draw(schemas(kind))
    expected = [oracle(schema["x"], value) for value in values]
    for name, data in arrow_sources(pa.array(values, pa.bool_()), folder).items():
        assert codes(data, schema) == expected, name
    assert codes(pd.DataFrame({"x": pd.array(values, dtype="boolean")}), schema) == expected


@every_kind
@settings(max_examples=13, deadline=None)
@given(st.data(), st.lists(INTEGERS, max_size=20), st.lists(FLOATS, max_size=20))
def test_arrays_hold_codes(
    kind: str, draws: st.DataObject, whole: list[int], decimal: list[float]
) -> None:
    schema = draws.draw(schemas(kind))
    variable = schema["x"]
    missing = variable.levels.index(variable.missing)
    numbers = [*decimal, *probes(schema)]
    for dtype, values in (
        (np.int64, [*whole, *whole_probes(schema)]),
        (np.float64, numbers),
        (np.longdouble, numbers),
        (np.bool_, [True, False]),
    ):
        array = np.array(values, dtype).reshape(-1, 1)
        expected = [missing if v != v else oracle_position(variable, v) for v in values]
        assert codes(array, schema) == expected
        assert codes(np.asfortranarray(array), schema) == expected
        assert codes(array.astype(array.dtype.newbyteorder()), schema) == expected


def test_float_columns_of_half_and_single_precision() -> None:
    schema = Schema({"x": ["none", "0.1", "7", "1e+300"]})
    for kind in (pa.float32(), pa.float16()):
        numbers = np.array([0.1, 7, 0.2, np.nan, np.inf], kind.to_pandas_dtype())
        assert codes(pa.table({"x": pa.array(numbers, kind)}), schema) == [1, 2, 0, 0, 0]


@pytest.mark.parametrize("unknown", [{}, {"x": 65_533}])
def test_the_largest_variable(unknown: dict[str, int]) -> None:
    schema = Schema({"x": 65_535}, unknown=unknown)
    values = [-1, 0, 65_534, 65_535, 70_000]
    expected = [oracle(schema["x"], value) for value in values]
    for kind in (pa.int64(), pa.uint32(), pa.float64(), pa.string()):
        some = [max(value, 0) for value in values] if kind == pa.uint32() else values
        column = pa.array(some).cast(kind)
        assert codes(pa.table({"x": column}), schema)[1:] == expected[1:]


def test_decimals_and_categories_of_numbers() -> None:
    schema = Schema({"x": ["none", "1.5", "3"]})
    column = pa.array(["1.50", None, "3.00", "2.00"]).cast(pa.decimal128(5, 2))
    assert codes(pa.table({"x": column}), schema) == [1, 0, 2, 0]
    frame = pd.DataFrame({"x": pd.Categorical([3, None, 3, 9])})
    assert codes(frame, schema) == [2, 0, 2, 0]
    assert codes(pa.table({"x": pa.nulls(3)}), schema) == [0, 0, 0]


def test_decimals_are_not_rounded_twice() -> None:
    """Arrow's cast to double makes 0.57 the double below 0.57."""
    texts = [f"{number / 1000:g}" for number in range(1, 3000)]
    column = pa.array(texts).cast(pa.decimal128(10, 3))
    assert codes(pa.table({"x": column}), Schema({"x": ["none", *texts]})) == [*range(1, 3000)]
    edges = Bins([0, 0.57, 0.7, 9])
    for kind in (pa.decimal32(5, 2), pa.decimal64(5, 2), pa.decimal128(5, 2), pa.decimal256(5, 2)):
        column = pa.array(["0.56", "0.57", "0.70", None, "-1.00"]).cast(pa.decimal128(5, 2))
        assert codes(pa.table({"x": column.cast(kind)}), Schema({"x": edges})) == [0, 1, 2, 0, 0]
    whole = pa.array(["9007199254740993", "9007199254740992"]).cast(pa.decimal128(20, 0))
    schema = Schema({"x": ["none", "9007199254740993"]})
    assert codes(pa.table({"x": whole}), schema) == [1, 0]
    assert codes(pa.table({"x": whole.dictionary_encode()}), schema) == [1, 0]


def test_a_dictionary_that_changes_between_batches() -> None:
    schema = Schema({"x": ["a", "b", "c"]})
    batches = [
        pa.record_batch({"x": pa.DictionaryArray.from_arrays([0, 1, None], pa.array(names))})
        for names in (["a", "b"], ["b", "c"], ["c", None], ["a", "b"])
    ]
    assert codes(pa.Table.from_batches(batches), schema) == [0, 1, 0, 1, 2, 0, 2, 0, 0, 0, 1, 0]


def test_an_index_at_a_null_may_be_anything() -> None:
    indices = pa.Array.from_buffers(
        pa.int32(),
        3,
        [pa.py_buffer(bytes([0b101])), pa.py_buffer(np.array([1, 10**9, 0], np.int32))],
    )
    column = pa.DictionaryArray.from_arrays(indices, pa.array(["a", "b"]), safe=False)
    assert codes(pa.table({"x": column}), Schema({"x": ["a", "b"]})) == [1, 0, 0]


def test_memory_that_is_not_aligned() -> None:
    raw = b"\0" + np.arange(4, dtype=np.int64).tobytes()
    column = pa.Array.from_buffers(pa.int64(), 4, [None, pa.py_buffer(raw).slice(1)])
    for data in (pa.table({"x": column}), pa.table({"x": column}).to_reader()):
        assert codes(data, Schema({"x": 4})) == [0, 1, 2, 3]


def test_a_level_where_doubles_are_sparse() -> None:
    schema = Schema({"x": ["other", "1e+16"]})
    near = [1e16, math.nextafter(1e16, 0), math.nextafter(1e16, math.inf)]
    assert codes(pa.table({"x": near}), schema) == [1, 0, 0]


def test_numbers_too_large_to_be_a_level() -> None:
    schema = Schema({"x": ["other", "inf"]})
    assert codes(pa.table({"x": ["9" * 400 + ".0", "inf"]}), schema) == [0, 1]
    assert codes(pa.table({"x": [math.inf]}), schema) == [0]


def test_more_texts_than_are_remembered() -> None:
    values = [str(number / 8) for number in range(70_000)]
    schema = Schema({"x": Bins([0, 100, 1000, 8000])})
    found = codes(pa.table({"x": values}), schema)
    assert found == [oracle(schema["x"], value) for value in values]
    rule = VariableRule(schema["x"], reading_rule(schema["x"]))
    assert [rule.text(value.encode()) for value in values] == found
    assert len(rule._remembered) <= 2**16


def test_columns_are_found_by_name() -> None:
    schema = Schema({"a": ["no", "yes"], "b": 3})
    data = pa.table({"c": ["x"], "b": [2], "a": ["yes"]})
    (batch,) = open_table(data, schema).batches()
    assert [column.tolist() for column in batch.columns] == [[1], [2]]


def test_csv_reads_numbers_as_their_text(folder: Any) -> None:
    """A frame and the CSV file that pandas writes of it give the same codes."""
    frame = pd.DataFrame(
        {
            "whole": [1, 2, 3],
            "holes": [1.0, None, 3.0],
            "truth": [True, False, True],
            "size": [0.5, 1e20, -3.0],
        }
    )
    schema = Schema(
        {"whole": ["1", "2"], "holes": ["1", "3", "x"], "truth": ["no", "yes"], "size": 5},
        missing={"holes": "x"},
    )
    buffer = io.StringIO()
    frame.to_csv(buffer, index=False)
    (folder / "frame.csv").write_text(buffer.getvalue())
    (one,), (two,) = (list(open_table(d, schema).batches()) for d in (frame, folder / "frame.csv"))
    for left, right in zip(one.columns, two.columns, strict=True):
        assert left.tolist() == right.tolist()


@pytest.mark.parametrize(
    "given",
    [Ordered([1, 2, 3, 4]), ["m", "f", "1"], 5, Bins([0, 18, 65]), Ordered(["low", "2", "high"])],
    ids=str,
)
def test_gaps_and_missing_codes_are_read_as_the_last_level_and_all_else_as_ever(
    given: Any, folder: Any
) -> None:
    """What is missing or unlisted is what two readings disagree on that send it elsewhere."""
    plain = Schema({"x": given})
    size, names = plain.shape[0], plain["x"].levels
    gone = ["99", "-9", "1.5", "none"]
    schema = Schema({"x": given}, gaps={"x": "7"}, missing_codes={"x": gone})
    numbers = [1.0, 2.0, 0.0, 17.0, 64.5, 99.0, -9.0, 1.5, 7.0, 98.0, 100.0, -8.5, 6.0]
    texts = ["m", "f", "1", "low", "high", "2", "3", "99", "-9", "1.5", " 99 ", "99.0", "7", "none"]
    silent = {99.0, -9.0, 1.5, 7.0, "99", "-9", "1.5", " 99 ", "99.0", "7", "none"}
    for column in (
        pa.array([*numbers, None]),
        pa.array([int(v) for v in numbers]),
        pa.array([*texts, None, ""]),
    ):
        readings = []
        for level in (names[0], names[-1]):
            rules = {"missing": {"x": level}}
            if plain["x"].unknown is not None:
                rules["unknown"] = {"x": level}
            readings.append(codes(pa.table({"x": column}), Schema({"x": given}, **rules)))
        expected = [
            size if value in silent or one != two else one
            for value, one, two in zip(column.to_pylist(), *readings, strict=True)
        ]
        for name, data in arrow_sources(column, folder).items():
            assert codes(data, schema) == expected, name
        assert codes({"x": np.array(column.to_pylist(), object)}, schema) == expected
    positions = np.arange(size + 1).reshape(-1, 1)
    assert codes(positions, schema) == list(range(size + 1))
