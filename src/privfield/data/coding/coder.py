"""From columns of any type to codes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privfield.data.batch import Codes, code_dtype
from privfield.data.coding.rules import CodeRule, VariableRule, remember
from privfield.data.coding.steps import StepCoder, Steps
from privfield.data.guard import guarded
from privfield.data.sources.objects import Objects, plain
from privfield.schema import Variable

LEGAL_TYPES = "text, whole numbers, decimal numbers, true/false and categories of these"


def is_text(kind: Any) -> bool:
    """Whether an Arrow type holds text or bytes."""
    return any(
        test(kind)
        for test in (
            *(pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
            *(pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view),
            pa.types.is_fixed_size_binary,
        )
    )


def is_legal(kind: Any) -> bool:
    """Whether a column of that Arrow type can be coded."""
    if pa.types.is_dictionary(kind):
        return not pa.types.is_dictionary(kind.value_type) and is_legal(kind.value_type)
    return is_text(kind) or any(
        test(kind)
        for test in (
            *(pa.types.is_null, pa.types.is_boolean, pa.types.is_integer),
            *(pa.types.is_floating, pa.types.is_decimal),
        )
    )


class Coder:
    """Codes the columns of one variable; `positions` for arrays that hold codes already.

    Whatever a value is, it gets a code of the rule: values never raise.
    """

    def __init__(self, variable: Variable, rule: CodeRule, positions: bool = False) -> None:
        self._rule = VariableRule(variable, rule)
        self._positions = positions
        self._missing = rule.missing
        self._size = rule.size
        self._dtype: Any = code_dtype(rule.size)
        self._steps: dict[np.dtype[Any], StepCoder] = {}
        self._seen: tuple[Any, Codes] | None = None
        self._objects: dict[type, dict[Any, int]] = {
            kind: {} for kind in (str, bytes, bool, int, float)
        }
        self._problem = f"data: column {variable.name!r} cannot be read."

    def code(self, column: Any) -> Codes:
        """The codes of an Arrow array, of objects, or of a numpy column of positions."""
        return guarded(lambda: self._code(column), self._problem)

    def _code(self, column: Any) -> Codes:
        if isinstance(column, np.ndarray):
            return self._numbers(column)
        if isinstance(column, Objects):
            codes: Any = np.array([self._object(value) for value in column.values], self._dtype)
            return codes  # type: ignore[no-any-return]
        kind = column.type
        if pa.types.is_null(kind):
            return np.full(len(column), self._missing, self._dtype)
        if is_text(kind):
            column = column.dictionary_encode()
        elif pa.types.is_decimal(kind):
            column = wide_decimals(column).dictionary_encode()
        elif pa.types.is_boolean(kind):
            truth = np.array([self._rule.truth(False), self._rule.truth(True)], self._dtype)
            return self._nulls(column, _pick(truth, _values(column.cast(pa.uint8()))))
        if pa.types.is_dictionary(column.type):
            indices = column.indices
            table = self._dictionary(column.dictionary)
            return self._nulls(indices, _pick(table, _values(indices)))
        return self._nulls(column, self._numbers(_values(column)))

    def _object(self, value: Any) -> int:
        """The code of one Python object, whatever the others are."""
        # of the types that are asked for here, equal objects are equal values
        known = self._objects.get(type(value)) if type(type(value)) is type else None
        if known is None:
            return self._rule.value(plain(value))
        code = known.get(value)
        if code is None:
            code = self._rule.value(plain(value))
            remember(known, value, code)
        return code

    def _numbers(self, values: NDArray[Any]) -> Codes:
        coder = self._steps.get(values.dtype)
        if coder is None:
            steps = self._number_steps(values.dtype)
            coder = StepCoder(steps, values.dtype, self._missing, self._size)
            self._steps[values.dtype] = coder
        return coder.code(values)

    def _number_steps(self, dtype: np.dtype[Any]) -> Steps:
        return self._rule.position_steps() if self._positions else self._rule.steps(dtype)

    def _dictionary(self, values: Any) -> Codes:
        """The codes of a dictionary's values: work per distinct value, not per row."""
        if self._seen is not None and _same_memory(self._seen[0], values):
            return self._seen[1]
        if is_text(values.type):
            texts = values.cast(pa.large_binary()).to_pylist()
            rule = self._rule
            codes = [self._missing if text is None else rule.text(text) for text in texts]
            table: Codes = np.array(codes, self._dtype)
        elif pa.types.is_decimal(values.type):
            table = self._code(Objects(values.to_pylist()))
        else:
            table = self._code(values)
        # The old dictionary is kept alive, so that its memory cannot be used for another one.
        self._seen = values, table
        return table

    def _nulls(self, column: Any, codes: Codes) -> Codes:
        if column.null_count:
            from privfield.data.coding import kernels

            bits = np.frombuffer(column.buffers()[0], np.uint8)
            kernels.put_missing(bits, column.offset, self._dtype(self._missing), codes)
        return codes


def wide_decimals(column: Any) -> Any:
    """Decimals in a type that Arrow can encode."""
    kind = column.type
    return column if kind.bit_width >= 128 else column.cast(pa.decimal128(38, kind.scale))


def _values(column: Any) -> NDArray[Any]:
    """An Arrow column's numbers without copying; what stands at nulls is anything."""
    dtype: np.dtype[Any] = np.dtype(column.type.to_pandas_dtype())
    buffer = column.buffers()[1]
    if buffer is None or not len(column):
        return np.zeros(len(column), dtype)
    values = np.frombuffer(buffer, dtype, len(column), column.offset * dtype.itemsize)
    return values if values.flags.aligned else values.copy()


def _pick(table: Codes, indices: NDArray[Any]) -> Codes:
    """table[indices]; the index at a null may be anything, so it is held within bounds."""
    from privfield.data.coding import kernels

    codes: Codes = np.zeros(indices.size, table.dtype)
    if table.size:
        kind = indices.dtype.type
        last = min(table.size - 1, int(np.iinfo(indices.dtype).max))
        kernels.code_integers(indices, kind(0), kind(last), table, codes)
    return codes


def _same_memory(one: Any, other: Any) -> bool:
    def place(array: Any) -> list[Any]:
        buffers = [b and (b.address, b.size) for b in array.buffers()]
        return [array.type, array.offset, len(array), *buffers]

    return place(one) == place(other)
