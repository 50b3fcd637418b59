"""Tables and rows of models with the names of variables and levels, as pandas has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.errors import InputError
from privfield.schema import Schema


def labelled_table(table: NDArray[np.float64], schema: Schema, names: Sequence[str]) -> Any:
    """One variable: a Series. Two: a DataFrame. More: a Series with an index of several levels."""
    pd = _pandas()
    levels = [schema[name].levels for name in names]
    if len(levels) == 2:
        index = pd.Index(levels[0], name=names[0])
        return pd.DataFrame(table, index, pd.Index(levels[1], name=names[1]))
    if len(levels) == 1:
        return pd.Series(table, pd.Index(levels[0], name=names[0]), name="share")
    index = pd.MultiIndex.from_product(levels, names=names)
    return pd.Series(table.ravel(), index, name="share")


def labelled_rows(codes: NDArray[Any], schema: Schema) -> Any:
    """A DataFrame with a categorical column for each variable."""
    pd = _pandas()
    columns = {
        variable.name: pd.Categorical.from_codes(
            column.astype(np.int64), variable.levels, ordered=variable.kind in ("ordered", "bins")
        )
        for variable, column in zip(schema.variables, codes.T, strict=True)
    }
    return pd.DataFrame(columns)


def _pandas() -> Any:
    try:
        import pandas as pd
    except ImportError:
        raise InputError(
            "labels=True needs pandas: pip install pandas. Without it, labels=False."
        ) from None
    return pd
