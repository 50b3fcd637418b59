"""Read one ±1 outcome per node. Who is listed is public; what is listed is not."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.checks import is_word
from privfield.data.sources.base import dtype_text
from privfield.errors import InputError
from privfield.schema import Schema, check_schema
from privfield.words import counted

Signs = NDArray[np.int8]
_Test = Callable[[Any], bool]
YES = ("true", "yes", "y", "t")  # text that is +1, in any case, besides numbers above 0
MISSING = ("error", "ignore", "negative")


def check_missing(missing: object) -> str:
    """The rule for nodes without an outcome, or an `InputError`."""
    if not is_word(missing, MISSING):
        raise InputError(f"missing must be 'error', 'ignore' or 'negative'; got {missing!r}.")
    return str(missing)


def open_outcomes(
    outcomes: Any,
    names: Sequence[Hashable],
    missing: str = "error",
    schema: Schema | None = None,
    positive: Any = None,
) -> Callable[[], Signs]:
    """Check everything public about the outcomes; the function returned reads them.

    `outcomes` maps node names to values, or is a pandas Series with the names as index, or a
    one-dimensional array in node order, or the path of a CSV file with lines "node,outcome". By one
    public rule a number above 0, also as text, and the words true, yes, y and t in any case are +1;
    anything else (missing, NaN, other text) is −1. `positive` lists what is +1 instead: numbers by
    value, words in any case. With a `schema` of one variable with two levels the second level is.

    Names are public: with missing="error" a node without an entry, or an entry for an unknown
    node, is an `InputError`; with missing="ignore" entries for unknown nodes are passed over. With
    missing="negative" nodes without an entry are −1 besides, silently, so that the list of names
    stays private too.
    """
    test = _rule(schema, positive)
    if isinstance(outcomes, str | os.PathLike):
        outcomes = read_outcome_file(outcomes, names)
    elif type(outcomes).__module__.split(".")[0] == "pandas" and hasattr(outcomes, "index"):
        outcomes = _read_series(outcomes, len(names))
    if isinstance(outcomes, Mapping):
        return _from_mapping(outcomes, names, missing, test)
    array = _as_array(outcomes, len(names))
    return lambda: _signs(array, test)


def positive_values(schema: Schema | None, positive: Any = None) -> str | list[str] | None:
    """The level that is read as +1, or the values that are; None where the ordinary rule holds."""
    if positive is not None:
        if schema is not None:
            raise InputError("positive: the schema says already what is positive; leave one out.")
        listed = positive if isinstance(positive, list | tuple | set | frozenset) else [positive]
        try:
            found = sorted({_comparable(value) for value in listed} - {""})
        except (ValueError, ArithmeticError):
            found = []
        if not found:
            raise InputError('positive must name values that are positive, such as ["yes"].')
        return found
    if schema is None:
        return None
    check_schema(schema)
    if len(schema.names) != 1 or schema.shape != (2,):
        raise InputError("schema: outcomes need one variable with two levels.")
    return schema[schema.names[0]].levels[1]


def _read_series(series: Any, nodes: int) -> dict[Hashable, Any]:
    """A pandas Series by its index."""
    if np.ndim(series) != 1:
        raise _wrong_shape(nodes, np.shape(series))
    labels = series.index.tolist()
    found = dict(zip(labels, series.to_numpy(dtype=object), strict=True))
    if len(found) != len(labels):
        raise InputError("outcomes: the index of the Series names some nodes more than once.")
    return found


def _wrong_shape(nodes: int, shape: tuple[int, ...]) -> InputError:
    return InputError(f"outcomes must hold one value for each of {nodes} nodes; got shape {shape}.")


def read_outcome_file(
    path: str | os.PathLike[str], names: Sequence[Hashable], encoding: str = "utf-8"
) -> dict[Hashable, str]:
    """Names in files are text; they are matched with the text of the nodes' names.

    Every line is read on its own, so that no record changes how another one is read. A node that
    is listed twice has its last value.
    """
    from privfield.files import read_bytes

    text = read_bytes(path).decode(encoding, errors="replace").removeprefix("\ufeff")
    known = {str(name): name for name in names}
    found: dict[Hashable, str] = {}
    for number, line in enumerate(text.split("\n")):
        name, value = _split_line(line.rstrip("\r"))
        if not name:
            continue
        if number == 0 and name not in known:
            _check_header(line)
            continue
        found[known.get(name, name)] = value
    return found


def _check_header(line: str) -> None:
    """A first line that names no node is a header, and must have two cells."""
    mark = next((mark for mark in "\t;," if mark in line), " ")
    with suppress(csv.Error):  # a carriage return alone ends no line
        cells = next(csv.reader([line.strip()], delimiter=mark, skipinitialspace=True))
        if len(cells) == 2:
            return
    raise InputError(
        "outcomes: the first line of the file names no node, and is no header of two cells such as "
        '"node,outcome".'
    )


def _split_line(line: str) -> tuple[str, str]:
    """Name and value, apart by the first comma, tab, semicolon or space; names may be quoted."""
    line = line.strip()
    if line.startswith('"') and '"' in line[1:]:
        end = line.index('"', 1)
        return line[1:end], line[end + 1 :].lstrip("\t;, ").strip('" ')
    for place, mark in enumerate(line):
        if mark in "\t;,":
            return line[:place].strip(), line[place + 1 :].strip(' "')
    name, _, value = line.partition(" ")
    return name, value.strip(' "')


def _from_mapping(
    outcomes: Mapping[Any, Any], names: Sequence[Hashable], missing: str, test: _Test
) -> Callable[[], Signs]:
    if missing != "negative":
        absent = [name for name in names if name not in outcomes]
        unknown = len(outcomes) - (len(names) - len(absent))
        if absent:
            raise InputError(
                f"outcomes: {len(absent)} of {counted(len(names), 'node')} "
                f"{'has' if len(absent) == 1 else 'have'} none, such as {absent[0]!r} "
                f'(a {type(absent[0]).__name__}). List them, or pass missing="negative" to read '
                "them as −1."
            )
        if unknown and missing == "error":
            raise InputError(
                f"outcomes: {unknown} of them {'names' if unknown == 1 else 'name'} no node of the "
                'graph. Leave them out, or pass missing="ignore" to ignore them.'
            )

    def read() -> Signs:
        values = np.empty(len(names), dtype=object)
        for i, name in enumerate(names):
            values[i] = outcomes.get(name)
        return _signs(values, test)

    return read


def _as_array(outcomes: Any, nodes: int) -> NDArray[Any]:
    if isinstance(outcomes, np.ndarray):
        array = outcomes
    elif getattr(outcomes, "ndim", 1) != 1:
        raise _wrong_shape(nodes, np.shape(outcomes))
    elif hasattr(outcomes, "__array__") or isinstance(outcomes, Sequence):
        array = np.empty(len(outcomes), dtype=object)
        for i, value in enumerate(outcomes):
            array[i] = value
        if len(array) and all(map(_is_row, array)):  # a table, not odd values here and there
            raise _wrong_shape(nodes, (len(array), len(array[0])))
    else:
        raise InputError(
            "outcomes must be a mapping from nodes, an array in node order, or the path of a CSV "
            f"file; got {type(outcomes).__name__}."
        )
    if array.ndim != 1 or len(array) != nodes:
        raise _wrong_shape(nodes, array.shape)
    if array.dtype.kind not in "biufOUS":
        raise InputError(f"outcomes must be numbers; got dtype {dtype_text(array)}.")
    return array


def _is_row(value: Any) -> bool:
    """Whether it is several values; an array without axes is one."""
    return isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim > 0)


def _rule(schema: Schema | None, positive: Any) -> _Test:
    """Whether one value is +1."""
    found = positive_values(schema, positive)
    if found is None:
        return _is_above_zero
    if isinstance(found, str):
        return lambda value: _is_level(value, found)
    among = frozenset(found)
    return lambda value: _is_among(value, among)


def _signs(values: NDArray[Any], test: _Test) -> Signs:
    if test is _is_above_zero and values.dtype.kind in "biuf":
        return np.where(values > 0, np.int8(1), np.int8(-1))
    return np.array([1 if test(value) else -1 for value in values.tolist()], dtype=np.int8)


def _is_above_zero(value: Any) -> bool:
    """Never raises: an odd value is −1."""
    try:
        if isinstance(value, str | bytes):
            text = value if isinstance(value, str) else value.decode()
            return text.strip().lower() in YES or float(text) > 0
        number: Any = value
        if isinstance(value, bool | int | float | np.generic | Decimal | Fraction):
            return bool(number > 0)
    except Exception:  # odd numbers may raise anything, and nothing may show
        return False
    return False


def _is_level(value: Any, positive: str) -> bool:
    from privfield.schema import level_text

    try:
        return level_text(value) == positive
    except Exception:
        return False


def _is_among(value: Any, positive: frozenset[str]) -> bool:
    try:
        return _comparable(value) in positive
    except Exception:
        return False


def _comparable(value: Any) -> str:
    """Numbers by value, words in any case."""
    from privfield.schema import level_text

    if isinstance(value, Decimal | Fraction):
        value = float(value)
    text = level_text(value.decode() if isinstance(value, bytes) else value).strip().lower()
    with suppress(ValueError):
        number = float(text)
        return level_text(number) if np.isfinite(number) else text
    return text
