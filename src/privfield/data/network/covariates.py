"""Public numbers beside the nodes of a network, as whole multiples of a unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.data.network.public import PublicNetwork, in_units
from privfield.errors import InputError

_BITS = 20


@dataclass(frozen=True, eq=False)
class Covariate:
    """Public numbers x, one per node, as whole multiples of a unit."""

    name: str
    integers: NDArray[np.int64]
    unit: float

    @property
    def values(self) -> NDArray[np.float64]:
        """x."""
        return np.asarray(self.integers * self.unit, dtype=np.float64)


def read_covariates(
    field: bool, covariates: Mapping[str, Any] | None, network: PublicNetwork
) -> tuple[Covariate, ...]:
    """The field (x = 1 everywhere) and covariates: arrays in node order or mappings from nodes."""
    if not isinstance(field, bool):
        raise InputError(f"field must be True or False; got {type(field).__name__}.")
    if covariates is not None and not isinstance(covariates, Mapping):
        raise InputError("covariates must map names to one public number per node.")
    found = [Covariate("field", np.ones(network.nodes, dtype=np.int64), 1.0)] if field else []
    for name, given in (covariates or {}).items():
        if not isinstance(name, str) or name in ("H", "field", "beta", ""):
            raise InputError("covariates: names must be text other than 'H', 'beta' and 'field'.")
        found.append(_read_covariate(name, given, network))
    return tuple(found)


def _read_covariate(name: str, given: Any, network: PublicNetwork) -> Covariate:
    try:
        if isinstance(given, Mapping):
            given = [given[node] for node in network.names]
        values = np.asarray(given, dtype=np.float64)
    except (KeyError, TypeError, ValueError, OverflowError):
        values = np.full(0, np.nan)
    if values.shape != (network.nodes,) or not np.isfinite(values).all():
        raise InputError(
            f"covariates: {name!r} must hold one finite number for each of {network.nodes} nodes."
        )
    if not values.any():
        raise InputError(f"covariates: {name!r} is 0 at every node.")
    return Covariate(name, *in_units(values, float(np.abs(values).max()), _BITS))
