"""Synthetic rows in pieces, so that memory does not grow with their number."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from privfield.errors import InputError
from privfield.files import csv_bytes, write_whole
from privfield.progress import ProgressCallback, tell
from privfield.stamps import note_beside

if TYPE_CHECKING:
    from privfield.models.base import Model
    from privfield.schema import Variable

MOST_COPIES = 1000
_PIECE_CELLS = 4_000_000  # of codes drawn at a time
_MOST_ROWS = 3 * 65_536  # which are balanced with each other, block by block
SUFFIXES = (".csv", ".parquet", ".pq")


def numbered(path: Path, copies: int) -> list[Path]:
    """The files of several copies: rows-1.csv, rows-2.csv, …"""
    if not 2 <= copies <= MOST_COPIES:
        raise InputError(f"--copies must lie between 2 and {MOST_COPIES}; got {copies:,}.")
    width = len(str(copies))
    return [path.with_stem(f"{path.stem}-{k:0{width}}") for k in range(1, copies + 1)]


def choose_method(model: Model, method: str, copies: bool = False) -> str:
    """Balanced where exact inference fits in memory; copies have independent rows."""
    if copies and method == "balanced":
        raise InputError(
            "--method: rows of --copies are independent, as rules for combining them ask; leave it."
        )
    if method not in ("auto", "balanced", "independent", "gibbs"):
        raise InputError(f"--method must be auto, balanced, independent or gibbs; got {method!r}.")
    if method != "auto":
        return method
    from privfield.inference.contraction.plan import DEFAULT_MAX_BYTES
    from privfield.models.network import NetworkIsing

    if isinstance(model, NetworkIsing):
        return "chains"
    size = model.inference_size()
    if not size.complete or size.bytes > DEFAULT_MAX_BYTES:
        return "gibbs"
    return "independent" if copies else "balanced"


def write_rows(
    model: Model,
    n: int,
    path: Path,
    rng: np.random.Generator,
    method: str,
    progress: ProgressCallback | None = None,
) -> None:
    """Draw n rows and write them; the file appears whole or not at all."""
    import pyarrow as pa

    variables = model.schema.variables
    plain = path.suffix.lower() == ".csv"  # Parquet has room for a stamp
    about = None if model.stamp is None else {"stamp": model.stamp}
    schema = pa.schema([pa.field(v.name, _kind(v)) for v in variables], about)
    levels = (level for v in variables if v.kind != "number" for level in v.levels)
    quoted = any(re.search('[",\r\n]', level) or not level for level in levels)
    with (
        note_beside(path, model.stamp if plain else None),
        write_whole(path) as file,
        _writer(path, file, schema, quoted) as writer,
    ):
        done = 0
        for states in _pieces(model, n, rng, method):
            columns = [
                _column(v, np.ascontiguousarray(codes))
                for v, codes in zip(variables, states.T, strict=True)
            ]
            writer.write(pa.record_batch(columns, schema=schema))
            done += len(states)
            tell(progress, "drawing rows", done)


def _pieces(model: Model, n: int, rng: np.random.Generator, method: str) -> Iterator[Any]:
    size = max(1, min(_MOST_ROWS, _PIECE_CELLS // len(model.schema)))
    left = n
    while left:
        states = model.sample(min(size, left), rng, method=method)
        left -= len(states)
        spins = states.dtype.kind == "i"  # −1 and +1
        yield (states > 0).astype(np.uint8) if spins else states


def _writer(path: Path, file: BinaryIO, schema: Any, quoted: bool) -> Any:
    if path.suffix.lower() == ".csv":
        from pyarrow import csv

        file.write(csv_bytes([schema.names]))
        style = "needed" if quoted else "none"  # Arrow's "needed" quotes every text
        options = csv.WriteOptions(include_header=False, quoting_style=style)
        return csv.CSVWriter(file, schema, write_options=options)
    import pyarrow.parquet as pq

    return pq.ParquetWriter(file, schema)


def _kind(variable: Variable) -> Any:
    import pyarrow as pa

    return pa.int32() if variable.kind == "number" else pa.string()


def _column(variable: Variable, codes: Any) -> Any:
    """Numbers as numbers, everything else by the name of its level; gaps are empty."""
    import pyarrow as pa

    if variable.kind == "number":
        return pa.array(codes.astype(np.int32), mask=codes == len(variable.answers))
    names = pa.array([*variable.answers, *[None] * variable.has_gap], pa.string())
    return names.take(pa.array(codes))
