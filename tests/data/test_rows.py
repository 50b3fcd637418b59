"""All rows as one small array, and what is public about them."""

import numpy as np
import pandas as pd

import privfield as pf
from privfield.data.rows import find_variables, open_rows
from privfield.data.table import known_rows

SIGNS = pf.Schema({"a": ["no", "yes"], "b": ["no", "yes"]})


def test_rows_are_counted_where_that_reads_none():
    data = np.ones((30, 2))
    assert known_rows(data) == known_rows(pd.DataFrame(data)) == 30
    assert known_rows("file.csv") is None and known_rows(iter(data)) is None


def test_signs_and_levels_are_read():
    frame = pd.DataFrame({"a": ["no", "yes", "?"], "b": ["yes", "yes", None]})
    found = open_rows(frame, SIGNS, find_variables(frame, SIGNS, None))(0)
    assert found.dtype == np.int8 and found.tolist() == [[-1, 1], [1, 1], [-1, -1]]
    mixed = pf.Schema({"a": ["no", "yes"], "c": 3, "one": ["only"]})
    variables = find_variables(None, mixed, None)
    assert not variables.binary and variables.shape == (2, 3, 1)
    codes = open_rows(np.array([[1, 7, 0], [0, -3, 9]]), mixed, variables)(0)
    assert codes.tolist() == [[1, 2, 0], [0, 0, 0]] and codes.dtype == np.uint8
    assert open_rows(np.empty((0, 3)), mixed, variables)(0).shape == (0, 3)


def test_only_one_row_of_a_person_counts():
    schema = pf.Schema({"a": ["no", "yes"]}, unit=pf.Person("id"))
    frame = pd.DataFrame({"id": [1, 2, 1, 3], "a": ["yes", "no", "no", "yes"]})
    read = open_rows(frame, schema, find_variables(frame, schema, None))
    found = {tuple(read(key).ravel().tolist()) for key in range(20)}
    assert found == {(1, -1, 1), (-1, -1, 1)}  # the first or the third row: by the key
