"""Files that appear whole or not at all; saved values as a zip of JSON and arrays."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import re
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from privfield.checks import shown
from privfield.errors import InputError

_EPOCH = (1980, 1, 1, 0, 0, 0)  # a fixed time stamp: equal values give equal bytes
_HEADER = "privfield.json"
MOST_BYTES = 2**30  # that a file may unpack to
_MOST_ENTRIES = 100_000
LEDGER_MARK = b"PFLD"  # in the header of SQLite, at byte 68: how a ledger is recognised
KEPT = "is a ledger, which remembers what was spent: choose another name."
_TEMPORARY = ".privfield-part"  # how a file in the making is called
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # no room for what is written
_OLD = 3600.0  # seconds, after which nobody is making it any more


@contextmanager
def write_whole(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a temporary file next to `path` that takes its place once the block ends well.

    On any error, Ctrl-C included, `path` stays as it was and nothing is left behind. What a
    `kill -9` left of an earlier attempt is removed when it is an hour old.
    """
    target = check_target(path)
    _sweep(target)
    # named before it exists: a signal at any moment from now on finds it
    temporary = target.parent / f".{target.name}.{os.urandom(8).hex()}{_TEMPORARY}"
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        if error.filename == str(temporary):
            where = str(target.parent)
            raise InputError(f"path: cannot write in {where!r}: {error.strerror}.") from None
        if error.filename is None and error.errno in _FULL:
            raise InputError(f"path: cannot write {str(target)!r}: {error.strerror}.") from None
        raise
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """A file with these bytes, whole or not at all."""
    with write_whole(path) as file:
        file.write(data)


def csv_bytes(rows: Iterable[Iterable[object]]) -> bytes:
    """Rows as CSV text: commas, line feeds, quotes where they are needed."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def check_path(path: object) -> Path:
    """What names a file, or an `InputError`."""
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"path must be a file name; got {type(path).__name__}.")
    return Path(path)


def check_target(path: object) -> Path:
    """A path at which a file can be made, or an `InputError`."""
    target = check_path(path)
    if "\0" in str(target):
        raise InputError(f"path: {str(target)!r} is no file name.")
    try:
        has_folder, is_folder = target.parent.is_dir(), target.is_dir()
    except OSError:  # the name is too long
        raise InputError(f"path: {shown(str(target))} is no file name.") from None
    if not has_folder:
        raise InputError(f"path: the folder {str(target.parent)!r} does not exist.")
    if is_folder:
        raise InputError(f"path: {str(target)!r} is a folder; a file name is needed.")
    if is_ledger(target):
        raise InputError(f"path: {str(target)!r} {KEPT}")
    return target


def is_ledger(path: Path) -> bool:
    """Whether nothing may be written there: what was spent would be forgotten."""
    with suppress(OSError):
        if path.is_file():  # a pipe would wait for somebody to write
            with path.open("rb") as file:
                return file.read(72)[68:] == LEDGER_MARK
    return False


def _sweep(target: Path) -> None:
    """Remove what was left of earlier attempts at this file, if it is ours and old."""
    pattern = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{16}}{re.escape(_TEMPORARY)}")
    with suppress(OSError):
        for name in os.listdir(target.parent):
            left = target.parent / name
            if pattern.fullmatch(name) and time.time() - left.stat().st_mtime > _OLD:
                left.unlink(missing_ok=True)


def pack(kind: str, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The bytes of a saved value: a zip with a JSON header and plain .npy arrays, never pickle."""
    buffer = io.BytesIO()
    text = json.dumps({"kind": kind, **header}, indent=1, ensure_ascii=False, allow_nan=False)
    archive = zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED)
    try:
        with archive:
            archive.writestr(zipfile.ZipInfo(_HEADER, _EPOCH), text, zipfile.ZIP_DEFLATED)
            for name, array in arrays.items():
                data = io.BytesIO()
                np.save(data, np.asarray(array, order="C"), allow_pickle=False)
                entry = zipfile.ZipInfo(f"{name}.npy", _EPOCH)
                archive.writestr(entry, data.getvalue(), zipfile.ZIP_DEFLATED)
    except ValueError as error:  # a zip that is closed within a part hides why: a Ctrl-C
        archive.fp = None  # nothing is left to close
        raise error.__context__ or error from None
    return buffer.getvalue()


def unpack(
    kind: str,
    data: bytes,
    source: str,
    named: Callable[[dict[str, Any]], str] = lambda header: ".*",
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Undo `pack`; all but a whole file of that kind is an `InputError` that names `source`.

    Only arrays whose names fit the pattern that `named` gives for a header are unpacked.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
            if _HEADER not in names:
                raise InputError(f"{source} is not a privfield file, or it is damaged.")
            size = sum(entry.file_size for entry in archive.infolist())
            if size > MOST_BYTES or len(names) > _MOST_ENTRIES:  # before anything is unpacked
                raise InputError(
                    f"{source} would unpack to {size:,} bytes in {len(names):,} parts; "
                    f"{MOST_BYTES:,} bytes in {_MOST_ENTRIES:,} parts are read at most."
                )
            header = json.loads(_read(archive, _HEADER))
            if not isinstance(header, dict) or header.get("kind") != kind:
                found = header.get("kind") if isinstance(header, dict) else None
                raise InputError(f"{source} holds {found!r}; {kind!r} is needed.")
            wanted = re.compile(rf"({named(header)})\.npy")
            arrays = {
                name.removesuffix(".npy"): np.load(
                    io.BytesIO(_read(archive, name)), allow_pickle=False
                )
                for name in names
                if wanted.fullmatch(name)
            }
    except InputError:
        raise
    except Exception:  # zipfile, zlib, json and numpy raise many kinds on damaged bytes
        raise InputError(f"{source} is not a privfield file, or it is damaged.") from None
    return header, arrays


def _read(archive: zipfile.ZipFile, name: str) -> bytes:
    """A part, no longer than it declares to be."""
    declared = archive.getinfo(name).file_size
    with archive.open(name) as file:
        data = file.read(declared + 1)
    if len(data) > declared:
        raise ValueError
    return data


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a file, or an `InputError` that says why there are none."""
    check_path(path)
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise InputError(f"path: there is no file {str(path)!r}.") from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error  # a NUL in the path
        raise InputError(f"path: cannot read {str(path)!r}: {why}.") from None
