"""Model files back to models, checked part by part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from privfield.errors import InputError
from privfield.files import unpack
from privfield.models.base import Model
from privfield.models.card import Card, attach
from privfield.models.chain import ChainModel
from privfield.models.ising import IsingModel
from privfield.models.mrf import MarkovRandomField
from privfield.models.network import NetworkIsing
from privfield.models.ordinal import OrdinalModel
from privfield.models.polynomial import PolynomialMRF
from privfield.models.saving import FORMAT, Arrays, Header, stored_floats
from privfield.models.solution import Solution

ReadRelease = Callable[[Any, bytes, str], Any]  # kind, bytes, where they come from

KINDS: dict[str, tuple[Any, str]] = {  # with a pattern of the arrays that such a file has
    "mrf": (MarkovRandomField, r"table\d+"),
    "ising": (IsingModel, "weights|field"),
    "ordinal": (OrdinalModel, "weights|thresholds|scores"),
    "polynomial": (PolynomialMRF, "coefficients"),
    "network": (NetworkIsing, "data|indices|indptr"),
    "chain": (ChainModel, "initial|transition"),
}


def model_from_bytes(
    data: bytes, source: str = "this", read: ReadRelease | None = None
) -> Model | ChainModel:
    """Undo `model_bytes`; `source` names the origin in errors.

    `read` makes sense of what was released for the model; without it that is left out.
    """
    header, arrays = unpack("model", data, source, _array_names)
    if header.get("format") != FORMAT:
        raise InputError(f"{source} has model format {header.get('format')!r}; this is {FORMAT}.")
    kind, _ = KINDS.get(str(header.get("model")), (None, ""))
    if kind is None:
        raise InputError(f"{source} holds an unknown model, {header.get('model')!r}.")
    try:
        model: Model | ChainModel = kind._from_parts(header, arrays)
        card, solution = header.get("card"), header.get("solution")
        released = None if read is None else _released(header, arrays, source, read)
        return attach(
            model,
            None if card is None else Card.from_json(card),
            released,
            None if solution is None else Solution.from_json(solution),
            _ended(arrays),
        )
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):  # InputError too
        raise InputError(f"{source} is damaged: its parts do not fit together.") from None


def _array_names(header: Header) -> str:
    _, arrays = KINDS.get(str(header.get("model")), (None, ""))
    return f"measurements|ended|{arrays}"


def _ended(arrays: Arrays) -> Any:
    """Finite numbers, if there are any."""
    found = arrays.get("ended")
    if found is not None and (found.ndim != 1 or not np.isfinite(stored_floats(found)).all()):
        raise InputError("where a search ended must be finite numbers.")
    return found


def _released(header: Header, arrays: Arrays, source: str, read: ReadRelease) -> Any:
    if "measurements" not in header and "measurements" not in arrays:
        return None
    data = arrays["measurements"]
    if data.dtype != np.uint8 or data.ndim != 1:
        raise InputError("measurements must be stored as bytes.")
    return read(header["measurements"], data.tobytes(), source)
