"""What a table may hold, said before anyone looks: variables, levels, rules, the privacy unit.

A schema is public knowledge. Nothing in it may be learned from the records it describes.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from privfield.errors import InputError
from privfield.files import check_path, write_bytes
from privfield.html import table_html
from privfield.schema.codebook import Column, read_codebook
from privfield.schema.toml import parse, render
from privfield.schema.variables import Bins, Ordered, Person, Rule, Variable, listing, make_variable
from privfield.words import counted


@dataclass(frozen=True, init=False, repr=False)
class Schema:
    """Named variables with their levels, rules for what does not fit, and the privacy unit.

    >>> schema = Schema({"smoker": ["no", "yes"], "age": Bins([0, 18, 40, 65, 120]), "region": 12})
    >>> schema.names, schema.shape
    (('smoker', 'age', 'region'), (2, 4, 12))

    `missing` and `unknown` map a variable to the level that missing or unlisted values are read
    as; the first level when nothing is said (for numbers, bins and ordered numbers, unlisted values
    go to the nearest level). `gaps` maps a variable to the name of a further level, the last, for
    missing values: learners then speak of those who answered. `missing_codes` maps one to values
    that mean "missing", such as ``["99"]``. `questions` maps one to its wording, for readers only.
    `forbidden` lists combinations that cannot occur, such as ``{"age": "0-18", "married": "yes"}``;
    a list of levels forbids each of them. `unit` is whose
    data is protected: None for one row, or a `Person`. `levels_are_public` says that the levels
    were read off the records because their owner declared them public; model cards repeat it. It
    is about where the schema comes from, not about what it says: schemas are equal without it.
    """

    variables: tuple[Variable, ...]
    forbidden: tuple[Rule, ...]
    unit: Person | None
    levels_are_public: bool = field(compare=False)

    def __init__(
        self,
        variables: Mapping[str, Sequence[object] | Ordered | Bins | int],
        *,
        missing: Mapping[str, object] | None = None,
        unknown: Mapping[str, object] | None = None,
        gaps: Mapping[str, object] | None = None,
        missing_codes: Mapping[str, Sequence[object]] | None = None,
        questions: Mapping[str, str] | None = None,
        forbidden: Sequence[Mapping[str, object]] = (),
        unit: Person | None = None,
        levels_are_public: bool = False,
    ) -> None:
        if not isinstance(variables, Mapping) or not variables:
            raise InputError(
                "Schema: variables must be a mapping from at least one name to its levels."
            )
        stated: dict[str, Any] = {
            "missing": missing,
            "unknown": unknown,
            "questions": questions,
            "gaps": gaps,
            "missing_codes": missing_codes,
        }
        for label, rules in stated.items():
            _check_rules(label, rules, variables)
        stated = {label: rules or {} for label, rules in stated.items()}
        built = tuple(make_variable(name, given, **stated) for name, given in variables.items())
        object.__setattr__(self, "variables", built)
        if unit is not None and not isinstance(unit, Person):
            raise InputError(
                f"Schema: unit must be None or a pf.Person; got {type(unit).__name__}."
            )
        if unit is not None and unit.column in self.names:
            raise InputError(f"Schema: the person id {unit.column!r} cannot also be a variable.")
        object.__setattr__(self, "unit", unit)
        if not isinstance(levels_are_public, bool):
            raise InputError(
                f"Schema: levels_are_public must be True or False; got {levels_are_public!r}."
            )
        object.__setattr__(self, "levels_are_public", levels_are_public)
        if isinstance(forbidden, str | Mapping) or not isinstance(forbidden, Sequence):
            raise InputError("Schema: forbidden must be a list of combinations.")
        object.__setattr__(self, "forbidden", tuple(self._rule(rule) for rule in forbidden))

    def __repr__(self) -> str:
        names = ", ".join(self.names[:4]) + ", …" * (len(self) > 4)
        unit = "" if self.unit is None else f", unit {self.unit.column!r}"
        return f"<Schema: {counted(len(self), 'variable')} ({names}){unit}>"

    def _repr_html_(self) -> str:
        more = [", ".join(v.levels[:8]) + ", …" * (len(v.levels) > 8) for v in self.variables]
        rows = [
            (v.name, v.kind, levels, v.missing, v.unknown or "the nearest", v.question)
            for v, levels in zip(self.variables, more, strict=True)
        ]
        head = ("variable", "kind", "levels", "missing is", "unknown is", "wording")
        return table_html(repr(self), head, rows)

    def stated(self) -> dict[str, Any]:
        """What decides how rows are read, as plain values; requests of jobs hold it."""
        return asdict(self) | {"variables": [each.stated() for each in self.variables]}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The variables' names, in column order."""
        return tuple(variable.name for variable in self.variables)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The number of levels of each variable, in column order."""
        return tuple(len(variable.levels) for variable in self.variables)

    def __len__(self) -> int:
        return len(self.variables)

    def __getitem__(self, name: str) -> Variable:
        return self.variables[self.index(name)]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}

    def index(self, name: str) -> int:
        """The column position of a variable; a typo is an error that lists what is legal."""
        try:
            return self._places[name]
        except (KeyError, TypeError):
            raise InputError(
                f"there is no variable {name!r}; the schema has {listing(self.names)}."
            ) from None

    def clique(self, names: Sequence[str]) -> tuple[int, ...]:
        """Column positions of a set of variables; unknown or repeated names are errors."""
        if isinstance(names, str) or not isinstance(names, Sequence):
            raise InputError(f"a clique must be a tuple of variable names; got {names!r}.")
        positions = tuple(self.index(name) for name in names)
        if len(set(positions)) < len(positions):
            raise InputError(f"clique {tuple(names)!r} names a variable twice.")
        return positions

    def cells(self, names: Sequence[str]) -> int:
        """The number of cells of the contingency table of these variables."""
        return math.prod(self.shape[position] for position in self.clique(names))

    def given(self, evidence: Mapping[str, object]) -> Schema:
        """The schema of the other variables once these have the stated levels.

        Forbidden combinations that the evidence decides are settled; evidence that is itself
        forbidden is an error.
        """
        if not isinstance(evidence, Mapping):
            raise InputError("evidence must map variables to levels.")
        known = {
            name: self[name].levels[self[name].code(level)] for name, level in evidence.items()
        }
        rules = []
        for rule in self.forbidden:
            if any(name in known and known[name] not in levels for name, levels in rule):
                continue  # cannot happen any more
            rest = tuple((name, levels) for name, levels in rule if name not in known)
            if not rest:
                raise InputError(f"evidence {known!r} is a forbidden combination of the schema.")
            rules.append(rest)
        left = tuple(variable for variable in self.variables if variable.name not in known)
        if not left:
            raise InputError("evidence names every variable; at least one must be left.")
        return Schema._of(left, tuple(rules), self.unit, self.levels_are_public)

    def of_rows(self) -> Schema:
        """The same variables for rows that belong to nobody, such as synthetic ones."""
        return Schema._of(self.variables, self.forbidden, None, self.levels_are_public)

    def only(self, names: Sequence[str]) -> Schema:
        """The schema of these variables alone, in this order; other columns are not read.

        Combinations that are forbidden among others are left out.
        """
        if isinstance(names, str) or not isinstance(names, Sequence) or not names:
            raise InputError("only: names must be a list of at least one variable.")
        chosen = tuple(self.variables[self.index(name)] for name in names)
        if len(set(names)) < len(names):
            raise InputError("only: names must not repeat a variable.")
        rules = tuple(rule for rule in self.forbidden if {name for name, _ in rule} <= set(names))
        return Schema._of(chosen, rules, self.unit, self.levels_are_public)

    def answered(self) -> Schema:
        """The schema among those who answered: without the levels of gaps."""
        if not self.has_gaps:
            return self
        variables = tuple(variable.answered() for variable in self.variables)
        rules = []
        for rule in self.forbidden:
            left = [(name, tuple(x for x in own if x in self[name].answers)) for name, own in rule]
            if all(own for _, own in left):
                rules.append(tuple(left))
        return Schema._of(variables, tuple(rules), self.unit, self.levels_are_public)

    @property
    def has_gaps(self) -> bool:
        """Whether gaps are a level of their own, for any variable."""
        return any(variable.has_gap for variable in self.variables)

    @classmethod
    def _of(
        cls,
        variables: tuple[Variable, ...],
        forbidden: tuple[Rule, ...],
        unit: Person | None,
        levels_are_public: bool,
    ) -> Schema:
        """A schema from parts that are known to be right."""
        schema = cls.__new__(cls)
        object.__setattr__(schema, "variables", variables)
        object.__setattr__(schema, "forbidden", forbidden)
        object.__setattr__(schema, "unit", unit)
        object.__setattr__(schema, "levels_are_public", levels_are_public)
        return schema

    @classmethod
    def from_codebook(cls, path: str | os.PathLike[str]) -> Schema:
        """What a codebook says: an SPSS or Stata file, SDV metadata, a Frictionless Table Schema.

        No record is read. Columns are left out of which it does not say what they may hold.
        """
        columns, _ = read_codebook(str(check_path(path)))
        known = [column for column in columns if column.levels]
        if not known:
            raise InputError(f"path: {str(path)!r} says of no column what it may hold.")
        return cls.of_columns(known)

    @classmethod
    def of_columns(cls, columns: Sequence[Column], levels_are_public: bool = False) -> Schema:
        """The schema of a codebook's columns."""
        return cls(
            {c.name: Ordered(c.levels) if c.ordered else c.levels for c in columns},
            missing={c.name: c.missing for c in columns if c.missing is not None},
            gaps={c.name: c.gap for c in columns if c.gap is not None},
            missing_codes={c.name: c.missing_codes for c in columns},
            questions={c.name: c.question for c in columns},
            levels_are_public=levels_are_public,
        )

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Schema:
        """Read a schema from a TOML file."""
        check_path(path)
        try:
            text = Path(path).read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            raise InputError(f"path: there is no schema file {str(path)!r}.") from None
        except (OSError, ValueError):  # a path with a NUL, or what is no text
            raise InputError(f"path: cannot read {str(path)!r} as UTF-8 text.") from None
        return cls.from_toml(text, str(path))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the schema as TOML, with comments that explain each key."""
        write_bytes(path, self.to_toml().encode())

    @classmethod
    def from_toml(cls, text: str, source: str = "the schema") -> Schema:
        """A schema from the text of its file; `source` names the file in errors."""
        parts = parse(text, source)
        try:
            return cls(**parts)
        except InputError as error:
            raise InputError(f"{source}: {error}") from None

    def to_toml(self) -> str:
        """The text of a schema file; `from_toml` gives the same schema back."""
        return render(self.variables, self.forbidden, self.unit, self.levels_are_public)

    def _rule(self, rule: Mapping[str, object]) -> Rule:
        if not isinstance(rule, Mapping) or not rule:
            raise InputError("Schema: each forbidden combination must map variables to levels.")
        parts = []
        for name, given in rule.items():
            variable = self[name]
            chosen = given if isinstance(given, list | tuple) else [given]
            levels = tuple(variable.levels[variable.code(level)] for level in chosen)
            if not levels:
                raise InputError(f"Schema: forbidden: {name!r} needs at least one level.")
            parts.append((name, levels))
        if all(set(levels) == set(self[name].levels) for name, levels in parts):
            raise InputError(f"Schema: forbidden: {dict(rule)!r} leaves nothing possible.")
        return tuple(parts)


def check_schema(schema: object) -> Schema:
    """A schema, or an `InputError`."""
    if not isinstance(schema, Schema):
        raise InputError(f"schema must be a pf.Schema; got {type(schema).__name__}.")
    return schema


def _check_rules(
    label: str, rules: Mapping[str, object] | None, variables: Mapping[str, Any]
) -> None:
    if rules is not None and not isinstance(rules, Mapping):
        raise InputError(f"Schema: {label} must map names of variables to one text or level each.")
    for name in rules or {}:
        if name not in variables:
            raise InputError(f"Schema: {label} names {name!r}, which is not a variable.")
