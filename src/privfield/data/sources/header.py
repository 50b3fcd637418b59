"""The column names of a file, and nothing below them: `init` reads no record."""

from __future__ import annotations

import csv
import glob
import io
import os
from typing import BinaryIO

from privfield.data.sources.paths import check_data_path, nearby
from privfield.errors import InputError

_LONGEST = 2**20  # bytes of a header
_DELIMITERS = (",", ";", "\t")
_LEGAL = ".csv, .csv.gz, .tsv, .tsv.gz, .parquet, .pq"


def column_names(path: str) -> tuple[list[str], list[str]]:
    """The names of the columns, and remarks on those that were left out."""
    first = _first_file(path)
    check = first.lower()
    if check.endswith((".parquet", ".pq")):
        return _checked(_parquet_names(first), path)
    if not check.endswith((".csv", ".csv.gz", ".tsv", ".tsv.gz")):
        check_data_path(first)
        raise InputError(f"FILE: {path!r} must end in one of {_LEGAL}.")
    return _checked(_csv_names(first), path)


def _first_file(path: str) -> str:
    """The file itself, or the first of a folder or glob: all must have the same columns."""
    if os.path.isdir(path):
        found = sorted(n for n in os.listdir(path) if not n.startswith((".", "_")))
        files = [os.path.join(path, n) for n in found if n.lower().endswith(_suffixes())]
        if not files:
            raise InputError(f"FILE: the folder {path!r} holds no {_LEGAL} files.")
        return files[0]
    if not os.path.exists(path) and glob.has_magic(path):
        files = sorted(glob.glob(path, recursive=True))
        if not files:
            raise InputError(f"FILE: no file matches {path!r}.")
        return files[0]
    if not os.path.exists(path):
        raise InputError(f"FILE: there is no file {path!r}.{nearby(path)}")
    return path


def _suffixes() -> tuple[str, ...]:
    return tuple(_LEGAL.split(", "))


def _parquet_names(path: str) -> list[str]:
    """From the footer; no page of data is read."""
    import pyarrow.parquet as pq

    try:
        return list(pq.read_schema(path).names)
    except Exception:
        raise InputError(f"FILE: {path!r} is not a Parquet file, or it is damaged.") from None


def _csv_names(path: str) -> list[str]:
    """From the first record, read byte by byte: what follows stays unread, even in a pipe."""
    try:
        with open(path, "rb", buffering=0) as raw:
            if path.lower().endswith(".gz"):
                import gzip

                with gzip.open(raw) as unpacked:
                    text = _first_record(unpacked)  # type: ignore[arg-type]
            else:
                text = _first_record(raw)
    except OSError as error:  # damaged compression too
        raise InputError(f"FILE: {path!r} cannot be read: {error.strerror or 'damaged'}.") from None
    except EOFError:
        raise InputError(f"FILE: {path!r} cannot be read: its compression is cut off.") from None
    if not text.strip():
        raise InputError(f"FILE: {path!r} is empty: its first line must hold the column names.")
    if text.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        raise InputError(
            f"FILE: {path!r} is a spreadsheet with another name. Export the table as CSV (UTF-8)."
        )
    if text.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in text:
        raise InputError(f"FILE: {path!r} is UTF-16 text; save it as UTF-8.")
    try:
        line = text.decode("utf-8-sig")
        rows = [next(csv.reader(io.StringIO(line, newline=""), delimiter=d)) for d in _DELIMITERS]
    except UnicodeDecodeError:
        raise InputError(f"FILE: the first line of {path!r} is not UTF-8 text.") from None
    except (csv.Error, StopIteration):
        raise InputError(
            f"FILE: the first line of {path!r} cannot be read as a list of column names."
        ) from None
    cells = max(rows, key=len)
    if len(cells) == 1 and any(mark in cells[0] for mark in "|:^~"):
        raise InputError(
            f"FILE: the first line of {path!r} holds one cell only. Cells must be separated by "
            "commas, semicolons or tabs."
        )
    return [cell.strip() for cell in cells]


def _first_record(file: BinaryIO) -> bytes:
    """Bytes up to the first line end outside quotes; blank lines above are passed over."""
    found = bytearray()
    while len(found) < _LONGEST:
        byte = file.read(1)
        if byte == b"\n" and found.count(b'"') % 2 == 0:
            if found.removeprefix(b"\xef\xbb\xbf").strip():
                break
            found.clear()
            continue
        if not byte:
            break
        found += byte
    else:
        raise InputError("FILE: the first line is longer than a megabyte: is it a header?")
    return bytes(found)


def _checked(names: list[str], path: str) -> tuple[list[str], list[str]]:
    """Names that a schema can hold. What was found is not told: it may be a record."""
    kept, remarks = [name for name in names if name], []
    if len(kept) < len(names):
        unnamed = len(names) - len(kept)
        remarks.append(f"{unnamed} column{'s' * (unnamed > 1)} without a name left out")
    if not kept:
        raise InputError(f"FILE: {path!r} has no column names in its first line.")
    doubts = "is it a header? The first line must hold the column names."
    if all(_is_number(name) for name in kept):
        raise InputError(f"FILE: the first line of {path!r} holds numbers only; {doubts}")
    if len(set(kept)) < len(kept):
        raise InputError(f"FILE: the first line of {path!r} names a column twice; {doubts}")
    return kept, remarks


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
