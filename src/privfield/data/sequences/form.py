"""What sequences are read as, and whose they are: public, and settled before a record is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from privfield.data.batch import code_dtype
from privfield.data.coding.rules import CodeRule, reading_rule
from privfield.data.table import unit_of
from privfield.errors import InputError
from privfield.privacy.adjacency import Unit
from privfield.schema import Schema, Variable, check_schema
from privfield.words import is_number

# of person, sequence and state, and of what orders the states of a sequence, if not the table does
Columns: TypeAlias = tuple[str, str | None, str] | tuple[str, str | None, str, str]

COLUMNS: Columns = ("person", "sequence", "state")


@dataclass(frozen=True)
class StateSet:
    """The public list of states, and what every value is read as.

    Values are compared with the states' names as everywhere in privfield. Where no state is a
    number, the numbers 0, 1, … stand for the states in order. Anything else, missing values
    included, is a gap, or the state that `unknown` names.
    """

    names: tuple[str, ...]
    variable: Variable
    rule: CodeRule

    @classmethod
    def of(cls, states: Any, unknown: object = None) -> StateSet:
        """From a list of names, or a number of states."""
        try:
            variable = Schema({"state": states}).variables[0]
        except InputError as error:
            raise InputError(f"states: {error}".replace("Schema: 'state' ", "")) from None
        names = variable.levels
        _check_size(names)
        gap = len(names) if unknown is None else variable.code(unknown)
        codes = list(range(len(names)))
        numbers = tuple(str(code) for code in codes)
        if not any(map(is_number, names)):
            names, codes = names + numbers, codes * 2
        read_as = Variable("state", names, "levels", names[0], names[0])
        return cls(variable.levels, read_as, CodeRule(codes, gap, gap, gap))

    @classmethod
    def of_schema(cls, schema: Schema) -> StateSet:
        """From a schema with one variable, whose rules say what unlisted values are read as."""
        check_schema(schema)
        if len(schema) != 1 or schema.forbidden:
            raise InputError(
                f"schema must have one variable, the state, and no forbidden combinations; "
                f"got {len(schema)} variables and {len(schema.forbidden)} combinations."
            )
        variable = schema.variables[0]
        _check_size(variable.levels)
        return cls(variable.levels, variable, reading_rule(variable))

    def coder(self) -> Any:
        """What turns columns of values into codes; codes that are no state are gaps."""
        from privfield.data.coding.coder import Coder

        return Coder(self.variable, self.rule)

    def rule_json(self) -> list[Any]:
        """The rule as JSON, for requests."""
        return [list(self.rule.levels), self.rule.missing, self.rule.unknown]

    @property
    def dtype(self) -> Any:
        """The dtype of codes."""
        return code_dtype(self.rule.size)


def _check_size(names: Sequence[str]) -> None:
    from privfield.data.counting.plan import MAX_CELLS

    if len(names) < 2:
        raise InputError(f"states must list at least two states; got {len(names)}.")
    if len(names) ** 2 > MAX_CELLS:
        raise InputError(
            f"states: {len(names):,} states have {len(names) ** 2:,} transitions; {MAX_CELLS:,} "
            "fit. Use coarser states."
        )


@dataclass(frozen=True)
class SequenceForm:
    """How sequences are read, and whose they are: all public.

    The unit is what the id column identifies, by that column's name: `person` unless `columns` say
    otherwise. Entries of a list and rows of an array without ids are taken for a person each.
    """

    states: StateSet
    columns: Columns
    unit: Unit

    @classmethod
    def of(
        cls,
        states: Any,
        unknown: object = None,
        schema: Schema | None = None,
        columns: Columns = COLUMNS,
        unit: str | None = None,
    ) -> SequenceForm:
        """From what users say; a schema names the states, and the id column if it has a unit."""
        check_columns(columns)
        if schema is None:
            if states is None:
                raise InputError("states must be a list of states; got None.")
            return cls(StateSet.of(states, unknown), columns, id_unit(columns, unit))
        if states is not None or unknown is not None:
            raise InputError("states and unknown must be None where a schema says them.")
        found = StateSet.of_schema(schema)
        if schema.unit is None:
            return cls(found, (*columns[:2], schema.names[0], *columns[3:]), id_unit(columns, unit))
        named: Columns = (schema.unit.column, columns[1], schema.names[0], *columns[3:])
        return cls(found, named, unit_of(schema) if unit is None else id_unit(named, unit))


def id_unit(columns: Columns, words: str | None = None) -> Unit:
    """What one id stands for: the column's name, after what `words` say it is, if they do."""
    check_columns(columns)
    column = columns[0]
    if words is None:
        return Unit(column, column)
    if not isinstance(words, str) or not words.strip():
        raise InputError(f"unit must be non-empty text, such as 'person-day'; got {words!r}.")
    return Unit(words, None if column == COLUMNS[0] else column)


def check_columns(columns: object) -> None:
    """Names of the columns of person, sequence (or None), state and order, or an `InputError`."""
    names = list(columns) if isinstance(columns, tuple | list) else []
    if len(names) not in (3, 4) or not all(
        isinstance(name, str) or (name is None and place == 1) for place, name in enumerate(names)
    ):
        raise InputError(
            "columns must name the columns of person, sequence and state, in this order; the "
            "second may be None, and a fourth may name what orders the states. "
            f"Got {columns!r}."
        )
