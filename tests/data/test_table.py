from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from memory import PEAK
from privfield.data.sources.base import BATCH_ROWS
from privfield.data.table import open_table
from privfield.errors import InputError
from privfield.schema import Schema


def test_dtypes_and_order_of_columns() -> None:
    schema = Schema({"wide": 300, "narrow": 256, "text": ["a", "b"]})
    data = {"text": ["b", "a"], "narrow": [255, 999], "wide": [299, -1]}
    (batch,) = open_table(data, schema).batches()
    assert [column.dtype for column in batch.columns] == [np.uint16, np.uint8, np.uint8]
    assert [column.tolist() for column in batch.columns] == [[299, 0], [255, 255], [1, 0]]
    assert batch.rows == 2
    assert batch.weights is None


def test_batches_are_bounded() -> None:
    size = 2 * BATCH_ROWS + 5
    schema = Schema({"x": 7})
    values = np.arange(size) % 7
    for data in (values.reshape(-1, 1), {"x": values}):
        batches = list(open_table(data, schema).batches())
        assert [batch.rows for batch in batches] == [BATCH_ROWS, BATCH_ROWS, 5]
        assert np.array_equal(np.concatenate([batch.columns[0] for batch in batches]), values)


def test_no_rows() -> None:
    schema = Schema({"x": 7})
    for data in (np.zeros((0, 1)), {"x": []}, pa.table({"x": pa.array([], pa.string())})):
        assert list(open_table(data, schema).batches()) == []


def test_opening_reads_no_record() -> None:
    def rows() -> object:
        raise AssertionError("read too early")
        yield

    stream = pa.RecordBatchReader.from_batches(pa.schema({"x": pa.int64()}), rows())
    table = open_table(stream, Schema({"x": 2}))
    batches = table.batches()
    with pytest.raises(InputError):
        next(batches)


def test_the_table_does_not_show_its_data() -> None:
    table = open_table(np.array([[12345]]), Schema({"x": 2}))
    assert "12345" not in repr(table)
    assert "12345" not in repr(next(table.source.read()))


_PROBE = (
    PEAK
    + """
import sys
import privfield.data.coding.kernels
from privfield.schema import Schema
from privfield.data.table import open_table
schema = Schema({f"x{j}": 9 for j in range(8)})
for batch in open_table(sys.argv[1], schema).batches():
    pass
small = peak()
rows = sum(batch.rows for batch in open_table(sys.argv[2], schema).batches())
print(rows, peak() - small)
"""
)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_memory_does_not_grow_with_rows(tmp_path: Path, kind: str) -> None:
    """A longer table takes no noticeable memory more: a Parquet file in one row group, and a CSV
    file of which the shorter one is already longer than what is read ahead (32 MiB)."""
    from pyarrow import csv

    sizes = (2_200_000, 6_600_000) if kind == "csv" else (250_000, 3_000_000)
    for name, size in zip(("small", "large"), sizes, strict=True):
        column = np.arange(size) % 9
        table = pa.table({f"x{j}": column for j in range(8)})
        if kind == "csv":
            csv.write_csv(table, tmp_path / f"{name}.csv")
        else:
            pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=size)
    paths = [str(tmp_path / f"{name}.{kind}") for name in ("small", "large")]
    done = subprocess.run(
        [sys.executable, "-c", _PROBE, *paths], capture_output=True, text=True, check=True
    )
    rows, more = map(int, done.stdout.split())
    assert rows == sizes[1]
    assert more < 60  # MiB; held whole, what is longer would take 130 (CSV) and 170


_WIDE = (
    PEAK
    + """
import sys
import numpy as np, pyarrow as pa
import privfield as pf
import privfield.data.coding.kernels, privfield.data.counting.kernels
schema = pf.Schema({f"x{j}": 10 for j in range(1000)})
column = np.arange(300_000) % 10
if sys.argv[1] == "array":
    data = np.broadcast_to(column[:, None], (len(column), 1000))  # takes no room itself
else:
    data = pa.table(dict.fromkeys(schema.names, column))
    if sys.argv[1] == "stream":
        data = data.to_reader()
pf.measure({"x0": [1], **{name: [1] for name in schema.names}}, schema, [("x0",)], pf.PureDP(1))
before = peak()
found = pf.measure(data, schema, [("x0", "x1")], pf.NON_PRIVATE)
print(int(found.tables[0].sum()), peak() - before)
"""
)


@pytest.mark.parametrize("kind", ["array", "table", "stream"])
def test_memory_does_not_grow_with_columns(kind: str) -> None:
    """1,000 columns: batches are bounded by their bytes."""
    done = subprocess.run(
        [sys.executable, "-c", _WIDE, kind], capture_output=True, text=True, check=True
    )
    rows, more = map(int, done.stdout.split())
    assert rows == 300_000
    assert more < 150  # MiB; batches of 131,072 rows would take up to 2,000
