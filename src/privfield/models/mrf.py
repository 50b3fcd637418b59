"""The general model: any cliques, any levels, structural zeros."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from privfield.checks import LARGEST
from privfield.errors import InputError
from privfield.inference.factors import Factors, Table, structural_zeros
from privfield.models.base import ForbidsEverything, Model, set_fields
from privfield.models.saving import Arrays, Header, stored_floats, stored_stamp
from privfield.schema import Schema, check_schema
from privfield.words import counted

ROUNDING = 16 * np.finfo(np.float64).eps  # what sums and differences of a table's entries lose


@dataclass(frozen=True, eq=False, init=False, repr=False)
class MarkovRandomField(Model):
    """P(x) ∝ exp(Σ log_potentials[c][x on cliques[c]]); −inf forbids a combination.

    A variable in no clique is uniform and counts in log Z. The schema's forbidden combinations
    have probability zero whatever the potentials say.

    >>> schema = Schema({"rain": ["no", "yes"], "wet": ["no", "yes"]})
    >>> model = MarkovRandomField(schema, [("rain", "wet")], [np.log([[6, 1], [0.5, 2.5]])])
    >>> model.marginal(["rain"]).round(2).tolist()
    [0.7, 0.3]
    """

    schema: Schema
    cliques: tuple[tuple[str, ...], ...]
    log_potentials: tuple[Table, ...]
    stamp: str | None

    def __init__(
        self,
        schema: Schema,
        cliques: Sequence[Sequence[str]],
        log_potentials: Sequence[Any],
        *,
        stamp: str | None = None,
    ) -> None:
        check_schema(schema)
        for name, value in (("cliques", cliques), ("log_potentials", log_potentials)):
            if isinstance(value, str) or not isinstance(value, Sequence | np.ndarray):
                raise InputError(f"{name} must be a list; got {type(value).__name__}.")
        if len(cliques) != len(log_potentials):
            raise InputError(
                f"log_potentials must hold one table for each of {len(cliques)} cliques; "
                f"got {len(log_potentials)}."
            )
        tables = tuple(
            _potential(schema, clique, table)
            for clique, table in zip(cliques, log_potentials, strict=True)
        )
        scopes = tuple(tuple(clique) for clique in cliques)
        set_fields(self, schema=schema, cliques=scopes, log_potentials=tables, stamp=stamp)

    @cached_property
    def factors(self) -> Factors:
        """The log-potentials and the schema's structural zeros, as inference engines read them."""
        cliques = [self.schema.clique(clique) for clique in self.cliques]
        tables = list(self.log_potentials)
        zeros = structural_zeros(self.schema)
        cliques += zeros.cliques
        tables += zeros.tables
        return Factors(self.schema.shape, tuple(cliques), tuple(tables))

    def condition(self, evidence: Mapping[str, object]) -> MarkovRandomField:
        """The distribution of the other variables, given the levels of these."""
        if not isinstance(evidence, Mapping):
            raise InputError("evidence must map variables to levels.")
        schema = self.schema.given(evidence)
        known = {name: self.schema[name].code(level) for name, level in evidence.items()}
        cliques, tables = [], []
        for clique, table in zip(self.cliques, self.log_potentials, strict=True):
            part = table[tuple(known.get(name, slice(None)) for name in clique)]
            if np.isneginf(part).all():
                raise InputError(f"evidence {dict(evidence)!r} has probability zero.")
            cliques.append(tuple(name for name in clique if name not in known))
            tables.append(part)
        model = MarkovRandomField(schema, cliques, tables, stamp=self.stamp)
        if schema.forbidden or any(np.isneginf(table).any() for table in tables):
            try:
                model.log_partition()
            except ForbidsEverything:
                raise InputError(f"evidence {dict(evidence)!r} has probability zero.") from None
            except InputError:
                pass  # too large to know; every later answer will say so
        return model

    def centred(self) -> MarkovRandomField:
        """The same pairwise model with one table per variable and centred tables per edge.

        Rows and columns of each edge table sum to zero, and so does each variable's table: the
        form in which parameters can be compared (Zhang et al. 2020, footnote 2).
        """
        if self.schema.forbidden:
            raise InputError("centred needs finite potentials; structural zeros have none.")
        names = self.schema.names
        single = {name: np.zeros(size) for name, size in zip(names, self.schema.shape, strict=True)}
        pairs: dict[tuple[str, str], Table] = {}
        for clique, table in zip(self.cliques, self.log_potentials, strict=True):
            if len(clique) > 2:
                raise InputError(f"centred needs pairwise cliques; {clique!r} has {len(clique)}.")
            if not np.isfinite(table).all():
                raise InputError("centred needs finite potentials; structural zeros have none.")
            if len(clique) == 1:
                single[clique[0]] += table
            if len(clique) == 2:
                ordered = sorted(clique, key=names.index)
                turned = table if ordered == list(clique) else table.T
                key = (ordered[0], ordered[1])
                pairs[key] = pairs.get(key, 0) + turned
        for (a, b), table in pairs.items():
            single[a] += table.mean(axis=1)
            single[b] += table.mean(axis=0)
            pairs[a, b] = table - table.mean(0) - table.mean(1, keepdims=True) + table.mean()
        singles = [(name,) for name in names]
        return MarkovRandomField(
            self.schema,
            [*singles, *pairs],
            [*(single[name] - single[name].mean() for name in names), *pairs.values()],
            stamp=self.stamp,
        )

    @property
    def width(self) -> float:
        """λ of the centred pairwise model: max over (i, a) of Σⱼ max_b |W_ij(a,b)| + |θ_i(a)|."""
        centred = self.centred()
        load = {name: np.zeros(len(self.schema[name].levels)) for name in self.schema.names}
        for clique, table in zip(centred.cliques, centred.log_potentials, strict=True):
            size = np.abs(table)
            load[clique[0]] += size.max(axis=1) if len(clique) == 2 else size
            if len(clique) == 2:
                load[clique[1]] += size.max(axis=0)
        return float(max(values.max() for values in load.values()))

    @property
    def min_weight(self) -> float:
        """η of the centred pairwise model: the least over edges of max |W_ij|; inf without edges.

        An edge whose centred table is zero, up to rounding of its own entries, is none.
        """
        raw: dict[frozenset[str], float] = {}
        for clique, table in zip(self.cliques, self.log_potentials, strict=True):
            key = frozenset(clique)
            raw[key] = raw.get(key, 0.0) + float(np.abs(table).max())
        centred = self.centred()
        found = []
        for clique, table in zip(centred.cliques, centred.log_potentials, strict=True):
            peak = float(np.abs(table).max())
            if len(clique) == 2 and peak > ROUNDING * raw[frozenset(clique)]:
                found.append(peak)
        return min(found, default=float("inf"))

    def _parts(self) -> tuple[str, Header, Arrays]:
        header = {
            "schema": self.schema.to_toml(),
            "cliques": [list(clique) for clique in self.cliques],
        }
        arrays = {f"table{i}": table for i, table in enumerate(self.log_potentials)}
        return "mrf", header, arrays

    @classmethod
    def _from_parts(cls, header: Header, arrays: Arrays) -> MarkovRandomField:
        cliques = header["cliques"]
        tables = [stored_floats(arrays[f"table{i}"]) for i in range(len(cliques))]
        schema = Schema.from_toml(header["schema"])
        return cls(schema, cliques, tables, stamp=stored_stamp(header))

    def __repr__(self) -> str:
        stamp = f"{self.stamp}. " if self.stamp else ""
        size = f"{counted(len(self.schema), 'variable')}, {counted(len(self.cliques), 'clique')}"
        return f"<{stamp}MarkovRandomField: {size}>"


def _potential(schema: Schema, clique: Sequence[str], table: Any) -> Table:
    shape = tuple(schema.shape[position] for position in schema.clique(clique))
    try:
        if np.iscomplexobj(table):
            raise TypeError
        array = np.array(table, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"the potential of {tuple(clique)!r} must hold numbers only.") from None
    if array.shape != shape:
        raise InputError(
            f"the potential of {tuple(clique)!r} must have shape {shape}; got {array.shape}."
        )
    if not ((np.abs(array) <= LARGEST) | np.isneginf(array)).all():
        raise InputError(
            f"the potential of {tuple(clique)!r} must not hold NaN or +inf, and be −inf or within "
            f"±{LARGEST:g}."
        )
    if np.isneginf(array).all():
        raise InputError(f"the potential of {tuple(clique)!r} forbids every state.")
    array.flags.writeable = False
    return array
