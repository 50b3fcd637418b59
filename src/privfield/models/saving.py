"""Models as files: a zip of JSON and arrays with a version, never pickle."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield._version import __version__
from privfield.errors import InputError
from privfield.files import pack, write_bytes

FORMAT = 1

Header = dict[str, Any]
Arrays = dict[str, NDArray[Any]]


def save_model(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a model to a file that appears whole or not at all."""
    write_bytes(path, model_bytes(model))


def model_bytes(model: Any) -> bytes:
    """The bytes of a saved model: its parts, its card, and what was released for it."""
    kind, header, arrays = model._parts()
    common = {"format": FORMAT, "version": __version__, "model": kind, "stamp": model.stamp}
    if model.card is not None:
        common["card"] = model.card.to_json()
    if model.solution is not None:
        common["solution"] = model.solution.to_json()
    if model.measurements is not None:
        common["measurements"] = model.measurements.KIND
        arrays = {**arrays, "measurements": np.frombuffer(model.measurements.to_bytes(), np.uint8)}
    if model.ended is not None:
        arrays = {**arrays, "ended": model.ended}
    return pack("model", {**common, **header}, arrays)


# -- parts of a file, as models read them: damaged ones raise --------------------------------------


def stored_floats(array: NDArray[Any]) -> NDArray[np.float64]:
    """An array of a model."""
    if array.dtype != np.float64:
        raise InputError("an array of a model must hold 64-bit floats.")
    return array


def stored_texts(header: Header, key: str) -> list[str]:
    """Names."""
    texts = header[key]
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        raise InputError(f"{key} must be a list of texts.")
    return list(texts)


def stored_stamp(header: Header) -> str | None:
    """Why a model protects nobody, if so."""
    stamp = header["stamp"]
    if stamp is not None and not isinstance(stamp, str):
        raise InputError("stamp must be text.")
    return stamp
