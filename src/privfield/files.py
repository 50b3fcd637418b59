"""Files that appear whole or not at all; saved values as a zip of JSON and arrays."""

from __future__ import annotations

import io
import json
import os
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from privfield.errors import InputError

_EPOCH = (1980, 1, 1, 0, 0, 0)  # a fixed time stamp: equal values give equal bytes
_HEADER = "privfield.json"


@contextmanager
def write_whole(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a temporary file next to `path` that takes its place once the block ends well.

    On any error, Ctrl-C included, `path` stays as it was.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise InputError(f"path: the folder {str(target.parent)!r} does not exist.")
    if target.is_dir():
        raise InputError(f"path: {str(target)!r} is a folder; a file name is needed.")
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise InputError(
            f"path: cannot write in {str(target.parent)!r}: {error.strerror}."
        ) from None
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def pack(kind: str, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The bytes of a saved value: a zip with a JSON header and plain .npy arrays, never pickle."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        text = json.dumps({"kind": kind, **header}, indent=1, ensure_ascii=False, allow_nan=False)
        archive.writestr(zipfile.ZipInfo(_HEADER, _EPOCH), text, zipfile.ZIP_DEFLATED)
        for name, array in arrays.items():
            data = io.BytesIO()
            np.save(data, np.asarray(array, order="C"), allow_pickle=False)
            entry = zipfile.ZipInfo(f"{name}.npy", _EPOCH)
            archive.writestr(entry, data.getvalue(), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def unpack(kind: str, data: bytes, source: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Undo `pack`; all but a whole file of that kind is an `InputError` that names `source`."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
            if _HEADER not in names or archive.testzip() is not None:
                raise InputError(f"{source} is not a privfield file, or it is damaged.")
            header = json.loads(archive.read(_HEADER))
            arrays = {
                name.removesuffix(".npy"): np.load(
                    io.BytesIO(archive.read(name)), allow_pickle=False
                )
                for name in names
                if name.endswith(".npy")
            }
    except InputError:
        raise
    except Exception:  # zipfile, zlib, json and numpy raise many kinds on damaged bytes
        raise InputError(f"{source} is not a privfield file, or it is damaged.") from None
    if not isinstance(header, dict) or header.get("kind") != kind:
        found = header.get("kind") if isinstance(header, dict) else None
        raise InputError(f"{source} holds {found!r}; {kind!r} is needed.")
    return header, arrays


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a file, or an `InputError` that says why there are none."""
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise InputError(f"path: there is no file {str(path)!r}.") from None
    except OSError as error:
        raise InputError(f"path: cannot read {str(path)!r}: {error.strerror}.") from None
