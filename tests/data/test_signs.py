from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from privfield.data.signs import read_signs, stack_signs
from privfield.data.sources import base as sources
from privfield.errors import InputError
from privfield.schema import Person, Schema

SCHEMA = Schema({"a": ["no", "yes"], "b": 2})


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.array([[1.0, -1.0], [np.nan, 0.0], [np.inf, -np.inf]]), [[1, -1], [-1, -1], [1, -1]]),
        (np.array([[1, 0], [-7, 9]]), [[1, -1], [-1, 1]]),
        (np.array([[2**64 - 1, 0]], np.uint64), [[1, -1]]),
        (np.array([[True, False]]), [[1, -1]]),
        (np.zeros((0, 3)), []),
    ],
)
def test_arrays_above_zero_are_plus_one(values: np.ndarray, expected: list[list[int]]) -> None:
    found = stack_signs(values)
    assert found.dtype == np.int8
    assert found.shape == values.shape
    assert found.tolist() == expected


def test_frames_need_two_levels() -> None:
    frame = pd.DataFrame({"b": [1, 0, None, 7], "a": ["yes", "no", None, "?"]})
    found = stack_signs(frame, SCHEMA)
    assert found.dtype == np.int8
    assert found.tolist() == [[1, 1], [-1, -1], [-1, -1], [-1, 1]]
    assert stack_signs(pa.table({"a": pa.nulls(0), "b": pa.nulls(0)}), SCHEMA).shape == (0, 2)
    assert stack_signs(np.array([[1, -1]]), SCHEMA).tolist() == [[1, -1]]


def test_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "BATCH_ROWS", 3)
    values = np.arange(-5, 5).reshape(-1, 1)
    assert [len(batch) for batch in read_signs(values)] == [3, 3, 3, 1]
    assert np.array_equal(stack_signs(values), np.where(values > 0, 1, -1))


def test_a_limit_per_person_holds() -> None:
    schema = Schema({"a": ["no", "yes"]}, unit=Person("id", rows=1))
    data = {"a": ["yes", "no", "no"], "id": [1, 1, 2]}
    assert stack_signs(data, schema).tolist() == [[1], [-1]]


def test_what_cannot_be_signs() -> None:
    with pytest.raises(InputError, match="schema is needed to read a frame or a file"):
        read_signs(pd.DataFrame({"a": [1]}))
    with pytest.raises(
        InputError, match="every variable must have two levels here; not so for 'c'"
    ):
        read_signs({"c": [1]}, Schema({"c": 3}))
    with pytest.raises(InputError, match=r"limit them instead, pf\.Person\(column, rows=1\)"):
        read_signs({"a": [1], "id": [1]}, Schema({"a": 2}, unit=Person("id", rows=None)))
    with pytest.raises(InputError, match="no column 'id' to tell people apart"):
        read_signs(np.zeros((2, 1)), Schema({"a": 2}, unit=Person("id", rows=1)))
    with pytest.raises(InputError, match="2-D array"):
        read_signs(np.zeros(3))
    with pytest.raises(InputError, match="its dtype is str"):
        read_signs(np.array([["a"]]))
    with pytest.raises(InputError, match=r"shape \(n, 3\), but the schema has 2 variables"):
        read_signs(np.zeros((1, 3)), SCHEMA)
    with pytest.raises(InputError, match="schema must be a"):
        read_signs(np.zeros((1, 3)), ["a"])  # type: ignore[arg-type]
