"""What every released value shares: one file format, made from the fields of its dataclass."""

from __future__ import annotations

import os
from abc import ABC
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from fractions import Fraction
from itertools import count, takewhile
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, Self, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from privfield._version import __version__
from privfield.errors import InputError
from privfield.files import pack, read_bytes, unpack, write_whole
from privfield.html import text_html
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import NON_PRIVATE, Budget, NonPrivate, budget_from_json
from privfield.privacy.noise import NoiseLaw
from privfield.schema import Schema

Header = dict[str, Any]
Arrays = dict[str, NDArray[Any]]


class Released(ABC):
    """Released numbers that can be written to a file and read again.

    A subclass is a dataclass that names its `KIND`. Its fields are its file: arrays as they are,
    everything else in a JSON header under the field's name, or the one in `NAMES`. A class with
    another layout turns itself into parts and back; `_from_parts` may raise what it likes on
    damaged parts, callers see an `InputError`.
    """

    KIND: ClassVar[str]
    FORMAT: ClassVar[int] = 1
    NAMES: ClassVar[dict[str, str]] = {}
    LISTS: ClassVar[dict[str, tuple[str, ...]]] = {}  # fields that are stored in one list
    LATER: ClassVar[tuple[str, ...]] = ()  # fields that older files lack: they get the default

    def _freeze(self) -> None:
        """No array of it can be written to any more."""
        for value in vars(self).values():
            for array in value if isinstance(value, tuple) else (value,):
                if isinstance(array, np.ndarray):
                    array.flags.writeable = False

    def _parts(self) -> tuple[Header, Arrays]:
        """Everything that this value is."""
        header: Header = {}
        arrays: Arrays = {}
        for name in (each.name for each in fields(self)):  # type: ignore[arg-type]
            value, stored = getattr(self, name), self.NAMES.get(name, name)
            if isinstance(value, np.ndarray):
                arrays[name] = value
            elif isinstance(value, Released):
                arrays[name] = np.frombuffer(value.to_bytes(), np.uint8)
            elif isinstance(value, tuple) and value and isinstance(value[0], np.ndarray):
                arrays |= {f"{stored}{place}": array for place, array in enumerate(value)}
            else:
                header[stored] = encode(value)
        for stored, names in self.LISTS.items():
            header[stored] = [header.pop(name) for name in names]
        return header, arrays

    @classmethod
    def _array_names(cls, header: Header) -> str:
        """A pattern of the arrays that a file of it may have."""
        names = (each.name for each in fields(cls))  # type: ignore[arg-type]
        return "|".join(rf"{name}|{cls.NAMES.get(name, name)}\d+" for name in names)

    @classmethod
    def _from_parts(cls, header: Header, arrays: Arrays) -> Self:
        """Undo `_parts`."""
        found: dict[str, Any] = {}
        hints = get_type_hints(cls)
        for stored, names in cls.LISTS.items():
            header = {**header, **dict(zip(names, header[stored], strict=True))}
        for name in (each.name for each in fields(cls)):  # type: ignore[arg-type]
            stored = cls.NAMES.get(name, name)
            kinds = _kinds(hints[name])
            if name in arrays:
                inner = next((k for k in kinds if _is(k, Released)), None)
                found[name] = (
                    _typed(arrays[name], kinds[0])
                    if inner is None
                    else inner.from_bytes(arrays[name].tobytes())
                )
            elif f"{stored}0" in arrays:
                places = takewhile(arrays.__contains__, (f"{stored}{n}" for n in count()))
                found[name] = tuple(arrays[place] for place in places)
            elif stored in header:
                found[name] = decode(hints[name], header[stored])
            elif NoneType in kinds and any(_is(kind, Released) for kind in kinds):
                found[name] = None
            elif name not in cls.LATER:  # a file without its stamp must not pass for a private one
                raise KeyError(name)
        return cls(**found)

    def _repr_html_(self) -> str:
        return text_html(repr(self))

    def _shown(self, text: str, rest: str = "") -> str:
        """What a `repr` says: first that it protects nobody, if so; what it costs, about whom."""
        stamp, cost, adjacency = (getattr(self, name) for name in ("stamp", "cost", "adjacency"))
        return f"<{f'{stamp}. ' if stamp else ''}{text}, cost {cost}, {adjacency}{rest}>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file that appears whole or not at all."""
        data = self.to_bytes()
        with write_whole(path) as file:
            file.write(data)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote; anything else is an `InputError`."""
        return cls.from_bytes(read_bytes(path), repr(str(path)))

    def to_bytes(self) -> bytes:
        """The bytes of a saved file: a zip of JSON and arrays."""
        header, arrays = self._parts()
        return pack(self.KIND, {"format": self.FORMAT, "version": __version__, **header}, arrays)

    @classmethod
    def from_bytes(cls, data: bytes, source: str = "this") -> Self:
        """Undo `to_bytes`; `source` names the origin in errors."""
        header, arrays = unpack(cls.KIND, data, source, cls._array_names)
        if header.get("format") != cls.FORMAT:
            raise InputError(f"{source} has format {header.get('format')!r}; this is {cls.FORMAT}.")
        try:
            return cls._from_parts(header, arrays)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError):  # InputError too
            raise InputError(f"{source} is damaged: its parts do not fit together.") from None


def cost_to_json(cost: Budget | NonPrivate | None) -> Any:
    """What a release cost, exactly, as JSON."""
    if isinstance(cost, NonPrivate):
        return "non-private"
    return None if cost is None else cost.to_json()


def cost_from_json(data: Any) -> Budget | NonPrivate | None:
    """Undo `cost_to_json`."""
    if data == "non-private":
        return NON_PRIVATE
    return None if data is None else budget_from_json(data)


def encode(value: Any) -> Any:
    """A field's value as JSON."""
    if isinstance(value, Budget | NonPrivate):
        return cost_to_json(value)
    if isinstance(value, Schema):
        return value.to_toml()
    if isinstance(value, NoiseLaw):
        return [value.name, value.scale, value.grid]
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, Adjacency):
        return str(value)
    if isinstance(value, tuple | list):
        return [encode(item) for item in value]
    if is_dataclass(value):
        return [encode(getattr(value, each.name)) for each in fields(value)]
    return value.item() if isinstance(value, np.generic) else value


def decode(hint: Any, data: Any) -> Any:
    """Undo `encode` for a field of that type; raises what it likes on anything else."""
    kinds = _kinds(hint)
    if data is None and NoneType in kinds:
        return None
    if any(_is(kind, Budget | NonPrivate) for kind in kinds):
        return _decode_cost(kinds, data)
    kind = next(each for each in kinds if each is not NoneType)
    if kind in _VALUES:
        return _VALUES[kind](data)
    if get_origin(kind) is tuple:
        return _decode_tuple(get_args(kind), data)
    if isinstance(kind, type) and is_dataclass(kind):
        hints = get_type_hints(kind)
        pairs = zip(fields(kind), data, strict=True)
        return kind(*(decode(hints[each.name], item) for each, item in pairs))
    return _plain(kinds, data)


def _decode_cost(kinds: tuple[Any, ...], data: Any) -> Budget | NonPrivate:
    """A cost of one of these kinds: a file may not put one kind in the place of another."""
    if data is None and NonPrivate in kinds:  # how older files say it
        return NON_PRIVATE
    inner = data["cost"] if isinstance(data, dict) and "cost" in data else data  # older files, too
    cost = cost_from_json(inner)
    if cost is None or not isinstance(cost, tuple(k for k in kinds if isinstance(k, type))):
        raise ValueError
    return cost


def _decode_tuple(inner: tuple[Any, ...], data: Any) -> tuple[Any, ...]:
    """Any number of items of one type, or one item of each type."""
    if len(inner) == 2 and inner[1] is Ellipsis:
        return tuple(decode(inner[0], item) for item in data)
    return tuple(decode(each, item) for each, item in zip(inner, data, strict=True))


def _inside(data: Any, name: str) -> Any:
    """A value that older files wrap in a mapping by that name."""
    return data[name] if isinstance(data, dict) else data


_VALUES: dict[Any, Callable[[Any], Any]] = {  # types whose values are one piece of JSON
    Schema: Schema.from_toml,
    Adjacency: Adjacency.parse,
    NoiseLaw: lambda data: NoiseLaw(*_inside(data, "law")),
    Fraction: lambda data: Fraction(_inside(data, "fraction")),
}


def _plain(kinds: tuple[Any, ...], data: Any) -> Any:
    """A number, text, truth value or mapping, of one of these types."""
    for kind in kinds:
        if get_origin(kind) is Literal and data in get_args(kind):
            return data
        if kind is float and isinstance(data, int | float) and not isinstance(data, bool):
            return float(data) if int not in kinds else data
        plain = get_origin(kind) or kind
        if isinstance(plain, type) and type(data) is plain:
            return data
    raise TypeError


def _kinds(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _is(kind: Any, wanted: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, wanted)


def _typed(array: NDArray[Any], hint: Any) -> NDArray[Any]:
    """An array of the type that its field declares, if that loses nothing."""
    inner = get_args(get_args(hint)[1])[0] if len(get_args(hint)) == 2 else Any
    return array if inner is Any else array.astype(inner, casting="safe")
