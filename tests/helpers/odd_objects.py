"""Python objects of all kinds, as columns may hold them: some raise whatever one does to them."""

import datetime
import enum
import fractions
import math
import uuid
import warnings
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from hypothesis import strategies as st

NAMES = [
    *["?", "no", "yes", "true", "false", "0", "1", "2", "-3", "01", "1.0", "1.5", "0.1", "0.57"],
    *["10", "1e+16", "10000000000000000", "9007199254740993", str(10**30), "", "NA", "a", "é"],
    *["inf", "nan", "2020-01-01", "None", "[1]"],
]


class Colour(enum.Enum):
    RED = "yes"


class Word(enum.StrEnum):
    YES = "yes"


class Size(enum.IntEnum):
    ONE = 1


class Text(str):
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        raise ValueError("CANARY")

    def __hash__(self) -> int:
        raise ValueError("CANARY")

    def encode(self, *args: Any) -> bytes:
        raise ValueError("CANARY")

    __repr__ = __str__ = encode  # type: ignore[assignment]


class Broken:
    """Everything about it raises."""

    def __getattribute__(self, name: str) -> Any:
        raise ValueError("CANARY")

    def __repr__(self) -> str:
        raise ValueError("CANARY")

    __str__ = __float__ = __int__ = __bool__ = __len__ = __repr__  # type: ignore[assignment]
    __eq__ = __hash__ = __iter__ = __index__ = __array__ = __repr__  # type: ignore[assignment]


class Loud:
    def __repr__(self) -> str:
        warnings.warn("CANARY", stacklevel=1)
        return "Loud()"


class OddType(type):
    def __hash__(cls) -> int:
        raise ValueError("CANARY")

    def __eq__(cls, other: object) -> bool:
        raise ValueError("CANARY")

    def __getattribute__(cls, name: str) -> Any:
        raise ValueError("CANARY")


class Odd(metaclass=OddType):
    pass


loop: list[Any] = []
loop.append(loop)
deep: list[Any] = []
for _ in range(100_000):
    deep = [deep]

KNOWN: list[Any] = [
    *[None, True, False, np.True_, np.bool_(False), "yes", b"yes", Text("yes"), np.str_("no")],
    *[np.bytes_(b"no"), bytearray(b"yes"), "\ud800", b"\xff", "", " yes ", "CANARY", Word.YES],
    *[0, 1, -3, 10**16, 2**53 + 1, 2**53 + 3, 2**64, 10**30, 10**5000, -(10**5000), Size.ONE],
    *[np.int8(1), np.uint64(2**64 - 1), np.int64(-3)],
    *[
        0.1,
        -0.0,
        1e16,
        1.5,
        math.inf,
        -math.inf,
        math.nan,
        1e300,
        np.float64(0.1),
        np.float64("nan"),
    ],
    *[np.float32(0.1), np.float32(0.57), np.float32("inf"), np.float16(0.1), np.float16("nan")],
    *[np.longdouble("0.1"), np.longdouble("1e4000"), np.longdouble("nan")],
    *[Decimal(1), Decimal("1.50"), Decimal("0.57"), Decimal("0.1"), Decimal(2**53 + 1)],
    *[Decimal("nan"), Decimal("sNaN"), Decimal("inf"), Decimal("-inf"), Decimal("1e999999")],
    *[Decimal("-1e-999999"), pd.NA, pd.NaT, np.datetime64("NaT"), np.timedelta64("NaT")],
    np.ma.masked,
]
UNLISTED: list[Any] = [
    *[datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1), datetime.timedelta(1)],
    *[pd.Timestamp("2020-01-01"), pd.Timedelta(1), pd.Interval(0, 1), pd.Period("2020")],
    *[np.datetime64("2020-01-01"), np.timedelta64(1, "s"), np.complex128(1), 1j, np.void(b"a")],
    *[[1], [], (1,), {"CANARY": 1}, {1}, np.array([1]), np.array(1), pd.Series([1]), pa.scalar(1)],
    *[uuid.UUID(int=1), fractions.Fraction(1, 2), Colour.RED, object(), Broken(), Loud(), Odd()],
    *[loop, deep, len, int, memoryview(b"yes"), Exception("CANARY"), range(3)],
]


class Box:
    """Keeps a value from hypothesis, which would ask it this and that."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "Box(Odd)" if type(self.value) is Odd else f"Box({type(self.value).__name__})"


PLAIN = st.one_of(
    st.integers(),
    st.integers(-5, 15),
    st.integers(-(2**80), 2**80),
    st.floats(),
    st.floats(width=32).map(np.float32),
    st.floats(width=16).map(np.float16),
    st.decimals(),
    st.decimals(-20, 20, places=2),
    st.dates(),
    st.datetimes(),
    st.binary(max_size=3),
    st.text(max_size=3),
    st.sampled_from(NAMES),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
)
VALUES = st.one_of(st.sampled_from([Box(value) for value in (*KNOWN, *UNLISTED)]), PLAIN.map(Box))


def array(values: list[Any]) -> Any:
    column = np.empty(len(values), object)
    for place, value in enumerate(values):
        column[place] = value
    return column


def series(values: list[Any]) -> Any:
    return pd.Series(array(values), dtype=object)
