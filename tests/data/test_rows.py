"""Rows as small arrays, and what is public about them."""

from collections import Counter

import numpy as np
import pandas as pd

import privfield as pf
from privfield.data.rows import Variables, find_variables, open_rows
from privfield.data.table import known_rows
from privfield.data.tally import joined

SIGNS = pf.Schema({"a": ["no", "yes"], "b": ["no", "yes"]})


def read(data, schema, variables, key=0):
    """All rows as a learner gets them."""
    table = open_rows(data, schema, variables)
    return variables.rows(joined(table.batches(key), table.schema.shape))


def test_rows_are_counted_where_that_reads_none():
    data = np.ones((30, 2))
    assert known_rows(data) == known_rows(pd.DataFrame(data)) == 30
    assert known_rows("file.csv") is None and known_rows(iter(data)) is None


def test_signs_and_levels_are_read():
    frame = pd.DataFrame({"a": ["no", "yes", "?"], "b": ["yes", "yes", None]})
    found = read(frame, SIGNS, find_variables(frame, SIGNS, None))
    assert found.dtype == np.int8 and found.tolist() == [[-1, 1], [1, 1], [-1, -1]]
    mixed = pf.Schema({"a": ["no", "yes"], "c": 3, "one": ["only"]})
    variables = find_variables(None, mixed, None)
    assert not variables.binary and variables.shape == (2, 3, 1)
    codes = read(np.array([[1, 7, 0], [0, -3, 9]]), mixed, variables)
    assert codes.tolist() == [[1, 2, 0], [0, 0, 0]] and codes.dtype == np.uint8
    assert read(np.empty((0, 3)), mixed, variables).shape == (0, 3)


def test_an_array_is_read_by_signs_as_often_as_wanted():
    data = np.array([[0.5, -3], [np.nan, 0]])
    table = open_rows(data, None, find_variables(data, None, None))
    for _ in range(2):
        (batch,) = table.batches()
        assert [column.tolist() for column in batch.columns] == [[1, 0], [0, 0]]


def test_rows_that_differ_are_tallied_whatever_their_order_and_number_of_words():
    rng = np.random.default_rng(0)
    for shape in ((1,), (2, 3), (1, 300, 2), (5,) * 60):
        schema = pf.Schema({f"x{n}": size for n, size in enumerate(shape)})
        data = rng.integers(0, shape, (200, len(shape)))[rng.integers(0, 90, 500)]
        table = open_rows(data, schema, Variables(schema.names, shape)).tallied()
        (batch,) = table.batches()
        rows = map(tuple, np.stack(batch.columns, axis=1).tolist())
        assert Counter(dict(zip(rows, batch.weights.tolist(), strict=True))) == Counter(
            map(tuple, data.tolist())
        )


def test_only_one_row_of_a_person_counts():
    schema = pf.Schema({"a": ["no", "yes"]}, unit=pf.Person("id"))
    frame = pd.DataFrame({"id": [1, 2, 1, 3], "a": ["yes", "no", "no", "yes"]})
    variables = find_variables(frame, schema, None)
    found = {tuple(read(frame, schema, variables, key).ravel().tolist()) for key in range(20)}
    assert found == {(1, -1, 1), (-1, -1, 1)}  # the first or the third row: by the key
