"""Models as files: a zip of JSON and arrays with a version, checked on load, never pickle."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield._version import __version__
from privfield.errors import InputError
from privfield.files import pack, read_bytes, unpack, write_whole
from privfield.models.base import Model
from privfield.models.card import Card, attach, release_class, release_from_bytes
from privfield.models.chain import ChainModel
from privfield.models.ising import IsingModel
from privfield.models.mrf import MarkovRandomField
from privfield.models.network import NetworkIsing
from privfield.models.polynomial import PolynomialMRF
from privfield.schema import Schema

FORMAT = 1

Header = dict[str, Any]
Arrays = dict[str, NDArray[Any]]


def save_model(model: Model | ChainModel, path: str | os.PathLike[str]) -> None:
    """Write a model to a file that appears whole or not at all."""
    data = model_bytes(model)
    with write_whole(path) as file:
        file.write(data)


def load(path: str | os.PathLike[str]) -> Model | ChainModel:
    """Read a model that `save` wrote; anything else is an `InputError`."""
    return model_from_bytes(read_bytes(path), repr(str(path)))


def model_bytes(model: Model | ChainModel) -> bytes:
    """The bytes of a saved model."""
    kind, header, arrays = model._parts()
    common = {"format": FORMAT, "version": __version__, "model": kind, "stamp": model.stamp}
    origin, nested = _origin(model)
    return pack("model", {**common, **header, **origin}, {**arrays, **nested})


def _origin(model: Model | ChainModel) -> tuple[Header, Arrays]:
    """Card and measurements of a model that has them."""
    header: Header = {}
    arrays: Arrays = {}
    card, measurements = getattr(model, "card", None), getattr(model, "measurements", None)
    if card is not None:
        header["card"] = card.to_json()
    if measurements is not None:
        header["measurements"] = release_class(measurements)
        arrays["measurements"] = np.frombuffer(measurements.to_bytes(), np.uint8)
    return header, arrays


def _restore(model: Model | ChainModel, header: Header, arrays: Arrays, source: str) -> None:
    """Give a loaded model its card and measurements; both are optional."""
    card = header.get("card")
    found = None
    if "measurements" in header or "measurements" in arrays:
        data = arrays["measurements"]
        if data.dtype != np.uint8 or data.ndim != 1:
            raise InputError("measurements must be stored as bytes.")
        found = release_from_bytes(header["measurements"], data.tobytes(), source)
    attach(model, None if card is None else Card.from_json(card), found)


def model_from_bytes(data: bytes, source: str = "this") -> Model | ChainModel:
    """Undo `model_bytes`; `source` names the origin in errors."""
    header, arrays = unpack("model", data, source)
    if header.get("format") != FORMAT:
        raise InputError(f"{source} has model format {header.get('format')!r}; this is {FORMAT}.")
    build = _BUILDERS.get(str(header.get("model")))
    if build is None:
        raise InputError(f"{source} holds an unknown model, {header.get('model')!r}.")
    try:
        model = build(header, arrays)
        _restore(model, header, arrays, source)
        return model
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):  # InputError too
        raise InputError(f"{source} is damaged: its parts do not fit together.") from None


def _mrf(header: Header, arrays: Arrays) -> Model:
    cliques = header["cliques"]
    tables = [_floats(arrays[f"table{i}"]) for i in range(len(cliques))]
    schema = Schema.from_toml(header["schema"])
    return MarkovRandomField(schema, cliques, tables, stamp=_stamp(header))


def _ising(header: Header, arrays: Arrays) -> Model:
    weights, field = _floats(arrays["weights"]), _floats(arrays["field"])
    return IsingModel(weights, field, _names(header), stamp=_stamp(header))


def _polynomial(header: Header, arrays: Arrays) -> Model:
    monomials = [tuple(monomial) for monomial in header["monomials"]]
    values = _floats(arrays["coefficients"]).tolist()
    terms = dict(zip(monomials, values, strict=True))
    if len(terms) < len(monomials):
        raise InputError("a monomial is listed twice.")
    return PolynomialMRF(terms, header["size"], _names(header), stamp=_stamp(header))


def _network(header: Header, arrays: Arrays) -> Model:
    from scipy.sparse import csr_array

    names = _names(header)
    if any(arrays[name].dtype.kind != "i" for name in ("indices", "indptr")):
        raise InputError("positions in a network must be whole numbers.")
    parts = (_floats(arrays["data"]), arrays["indices"], arrays["indptr"])
    matrix = csr_array(parts, shape=(len(names), len(names)))
    matrix.check_format(full_check=True)
    return NetworkIsing(matrix, header["beta"], header["field"], names, stamp=_stamp(header))


def _chain(header: Header, arrays: Arrays) -> ChainModel:
    initial, transition = _floats(arrays["initial"]), _floats(arrays["transition"])
    return ChainModel(_texts(header, "states"), initial, transition, stamp=_stamp(header))


_BUILDERS: dict[str, Callable[[Header, Arrays], Model | ChainModel]] = {
    "mrf": _mrf,
    "ising": _ising,
    "polynomial": _polynomial,
    "network": _network,
    "chain": _chain,
}


def _floats(array: NDArray[Any]) -> NDArray[np.float64]:
    if array.dtype != np.float64:
        raise InputError("an array of a model must hold 64-bit floats.")
    return array


def _names(header: Header) -> list[str]:
    return _texts(header, "names")


def _texts(header: Header, key: str) -> list[str]:
    texts = header[key]
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise InputError(f"{key} must be a list of texts.")
    return texts


def _stamp(header: Header) -> str | None:
    stamp = header["stamp"]
    if stamp is not None and not isinstance(stamp, str):
        raise InputError("stamp must be text.")
    return stamp
