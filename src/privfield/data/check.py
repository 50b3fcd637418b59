"""How well a table fits its schema, for the data's owner only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.data.coding.coder import Coder
from privfield.data.coding.rules import (
    FAR,
    FITS,
    MISSING,
    UNKNOWN,
    VariableRule,
    checking_rule,
    reading_rule,
)
from privfield.data.people import People
from privfield.data.sources.base import RawBatch
from privfield.data.sources.csv import QuotedLines
from privfield.data.table import open_table
from privfield.schema import Person, Schema, Variable
from privfield.words import counted

MOST_OUTSIDE = 0.05  # of a column, before an alarm


@dataclass(frozen=True)
class VariableCheck:
    """How many values of a variable are missing or outside the schema, and what becomes of them.

    Among those outside, `far` are numbers far from all levels, and are read as `far_as`;
    `zeros_and_ones` are 0 or 1 where the levels are two words.
    """

    name: str
    missing: int
    missing_as: str
    unknown: int
    unknown_as: str
    far: int = 0
    far_as: str = ""
    far_is_gap: bool = False  # which is what numbers such as 99 are meant to be
    zeros_and_ones: int = 0


@dataclass(frozen=True)
class RuleCheck:
    """How many rows, as they are read, break a rule that the schema calls impossible."""

    rule: str
    rows: int


@dataclass(frozen=True)
class GuessCheck:
    """A column whose type is not that of its levels: a program may have guessed it.

    `levels` are the first of those that no value of this type is read as.
    """

    name: str
    holds: str
    levels: tuple[str, ...]


@dataclass(frozen=True)
class PeopleCheck:
    """How the rows spread over people; `over_limit` is None where there is no limit."""

    people: int
    rows_without_id: int
    over_limit: int | None
    rows_left_out: int  # beyond the limit


@dataclass(frozen=True, repr=False)
class CheckReport:
    """PRIVATE: exact counts of the records. For the data's owner, never to publish or store."""

    rows: int
    ragged_rows: int  # rows of a CSV file with the wrong number of fields: all values missing
    variables: tuple[VariableCheck, ...]
    forbidden: tuple[RuleCheck, ...]
    people: PeopleCheck | None
    guessed: tuple[GuessCheck, ...] = ()
    quoted: tuple[QuotedLines, ...] = ()  # CSV files in which quotes hold line ends

    @property
    def alarms(self) -> tuple[str, ...]:
        """What is so wrong that a fit would be wasted, in sentences."""
        outside = _outside(self.variables, self.rows)
        found = [*outside, *_far(self.variables), *map(_open_quote, self.quoted)]
        return tuple(filter(None, found))

    def __repr__(self) -> str:  # what a notebook shows says PRIVATE too
        lines = [
            "PRIVATE – for the data's owner only: exact counts, never publish or store them.",
            "",
            *(f"ATTENTION: {alarm}\n" for alarm in self.alarms),
            counted(self.rows, "row")
            + (
                f", {self.ragged_rows:,} of them with the wrong number of fields "
                "(all their values are read as missing)"
                if self.ragged_rows
                else ""
            ),
            "",
            *_columns(
                ("variable", "missing", "read as", "outside the schema", "read as"),
                [
                    (
                        *(each.name, f"{each.missing:,}", each.missing_as),
                        *(f"{each.unknown:,}", _read_as(each)),
                    )
                    for each in self.variables
                ],
            ),
        ]
        if self.forbidden:
            rules = [(each.rule, f"{each.rows:,}") for each in self.forbidden]
            lines += ["", *_columns(("forbidden", "rows that break it"), rules)]
        if self.people is not None:
            lines += ["", *_people_lines(self.people)]
        for file in self.quoted:
            lines += ["", _quoted_line(file)]
        for guess in self.guessed:
            lines += ["", _guess_line(guess)]
        return "\n".join(lines)


def check(data: Any, schema: Schema) -> CheckReport:
    """Count what does not fit the schema: PRIVATE, for the data's owner only.

    Reads every record once. Nothing is charged, because nothing may leave: the result is not
    protected by any noise.
    """
    table = open_table(data, schema)
    task = CheckSums(schema, table.source.holds_codes)
    numbers = table.scan(task).tolist()
    rows, ragged = numbers[:2]
    found = iter(numbers[2:])
    variables = [_variable_check(each, *islice(found, 4)) for each in schema.variables]
    forbidden = [RuleCheck(_rule_text(rule), next(found)) for rule in schema.forbidden]
    people, without, over, left_out = found
    limited = schema.unit is not None and schema.unit.rows is not None
    return CheckReport(
        rows,
        ragged,
        tuple(variables),
        tuple(forbidden),
        None
        if schema.unit is None
        else PeopleCheck(people, without, over if limited else None, left_out),
        _guesses(schema, table.source.kinds),
        tuple(file for file in _quotes(table.source) if file.lines or file.is_open),
    )


@dataclass(frozen=True)
class CheckSums:
    """All numbers of a report, in its order: an `Aggregate` of rows as they came."""

    schema: Schema
    codes: bool

    @property
    def cells(self) -> int:
        """Of rows, variables, rules and people."""
        return 2 + 4 * len(self.schema) + len(self.schema.forbidden) + 4

    def partial(self, batches: Iterator[RawBatch]) -> NDArray[np.int64]:
        """Over rows among which are all of each person, or none."""
        schema, variables = self.schema, self.schema.variables
        checkers = [Coder(each, checking_rule(each), self.codes) for each in variables]
        readers = {
            name: Coder(schema[name], reading_rule(schema[name]), self.codes)
            for rule in schema.forbidden
            for name, _ in rule
        }
        spellings = {
            position: Coder(_as_digits(each), checking_rule(_as_digits(each)), self.codes)
            for position, each in enumerate(variables)
            if not self.codes and _is_two_words(each)
        }
        found = np.zeros((len(variables), 4), np.int64)
        digits = np.zeros(len(variables), np.int64)
        broken = np.zeros(len(schema.forbidden), np.int64)
        people = _PeopleCounter(schema.unit)
        rows = ragged = 0
        for raw in batches:
            rows += raw.rows
            ragged += raw.rows if raw.ragged else 0
            for position, checker in enumerate(checkers):
                found[position] += np.bincount(checker.code(raw.columns[position]), minlength=4)
            for position, speller in spellings.items():
                digits[position] += int((speller.code(raw.columns[position]) == FITS).sum())
            broken += _broken(schema, readers, raw)
            people.add(raw)
        found[:, UNKNOWN] += found[:, FAR]
        values = np.column_stack([found[:, [MISSING, UNKNOWN, FAR]], digits]).ravel()
        return np.concatenate([[rows, ragged], values, broken, people.result()]).astype(np.int64)


def _guesses(schema: Schema, kinds: Sequence[str]) -> tuple[GuessCheck, ...]:
    """Columns of numbers whose levels are texts, by declared types alone."""
    found = []
    for variable, kind in zip(schema.variables, kinds, strict=False):
        levels = VariableRule(variable, reading_rule(variable)).not_as_written(kind)
        if levels:
            found.append(GuessCheck(variable.name, _HOLDS[kind], tuple(levels[:3])))
    return tuple(found)


def _broken(schema: Schema, readers: dict[str, Coder], raw: RawBatch) -> NDArray[np.int64]:
    """The rows of a batch that break each forbidden rule."""
    codes = {name: reader.code(raw.columns[schema.index(name)]) for name, reader in readers.items()}
    counts = np.zeros(len(schema.forbidden), np.int64)
    for position, rule in enumerate(schema.forbidden):
        breaks = np.ones(raw.rows, np.bool_)
        for name, levels in rule:
            breaks &= np.isin(codes[name], [schema[name].code(level) for level in levels])
        counts[position] = breaks.sum()
    return counts


class _PeopleCounter:
    def __init__(self, unit: Person | None) -> None:
        self._unit = unit
        self._people = People()
        self._rows = 0

    def add(self, raw: RawBatch) -> None:
        if self._unit is not None:
            self._rows += raw.rows
            self._people.count(raw.columns[-1])

    def result(self) -> list[int]:
        """People, rows without an id, people over the limit, rows beyond it."""
        rows = self._people.rows
        limit = None if self._unit is None else self._unit.rows
        over = np.maximum(rows - limit, 0) if limit is not None else np.zeros(0, np.int64)
        return [rows.size, self._rows - int(rows.sum()), int((over > 0).sum()), int(over.sum())]


def _quotes(source: Any) -> tuple[QuotedLines, ...]:
    look = getattr(source, "quoted_lines", None)
    return () if look is None else look()


def _outside(variables: Sequence[VariableCheck], rows: int) -> list[str]:
    """The alarm about columns that the schema does not describe."""
    wrong = [each for each in variables if each.unknown > MOST_OUTSIDE * rows]
    if not wrong:
        return []
    worst = max(wrong, key=lambda each: each.unknown)
    names = ", ".join(repr(each.name) for each in wrong[:4]) + ", …" * (len(wrong) > 4)
    level = _NEAREST_LEVEL if worst.unknown_as == _NEAREST else repr(worst.unknown_as)
    digits = worst.zeros_and_ones > worst.unknown / 2
    return [
        f"{counted(len(wrong), 'column')} ({names}) with more than {MOST_OUTSIDE:.0%} of values "
        f"outside the schema: of {worst.name!r} {worst.unknown / rows:.0%}, all read as {level}. "
        f"Write levels as the file has them{': 0 and 1 are not no and yes' * digits}."
    ]


def _far(variables: Sequence[VariableCheck]) -> list[str]:
    """The alarm about numbers that stand for no answer, and are read as one."""
    wrong = [each for each in variables if each.far and not each.far_is_gap]
    if not wrong:
        return []
    worst = max(wrong, key=lambda each: each.far)
    names = ", ".join(repr(each.name) for each in wrong[:4]) + ", …" * (len(wrong) > 4)
    return [
        f"{counted(len(wrong), 'column')} ({names}) with numbers far outside the scale: "
        f"{worst.far:,} in {worst.name!r}, read as {worst.far_as}. Are they codes for no answer, "
        'such as 99? Then write missing_codes = ["99"] in the schema, and gap = "no answer" '
        "for a level of their own."
    ]


def _read_as(each: VariableCheck) -> str:
    """What becomes of values outside the schema."""
    apart = each.far and each.far_as != _NEAREST_LEVEL
    return f"{each.unknown_as}; {each.far:,} far off as {each.far_as}" if apart else each.unknown_as


def _open_quote(file: QuotedLines) -> str | None:
    if not file.is_open:
        return None
    return (
        f"the quote that opens at line {file.line} of {file.path!r} or below is never closed: "
        f"everything after it ({counted(file.lines, 'line')}) is one row. Take it out."
    )


def _quoted_line(file: QuotedLines) -> str:
    return (
        f"{file.path}: {counted(file.lines, 'line')} inside quotes belong to rows begun above, "
        f"most of them to the row of line {file.line}. Where no text has line breaks, a stray "
        "quote swallowed them."
    )


_NEAREST = "nearest"
_NEAREST_LEVEL = "the nearest level"
_HOLDS = {
    "integer": "whole numbers",
    "float": "decimal numbers",
    "decimal": "decimal numbers",
    "boolean": "true and false",
}


def _guess_line(guess: GuessCheck) -> str:
    levels = ", ".join(map(repr, guess.levels))
    return (
        f"{guess.name}: the column holds {guess.holds}, of which none is read as {levels}. Was its "
        "type guessed, and 01 became 1? Pass the file itself, or read the column as text "
        f"(pandas: dtype={{{guess.name!r}: str}})."
    )


def _people_lines(people: PeopleCheck) -> list[str]:
    lines = [
        f"{_persons(people.people)}; rows without an id, which count nothing: "
        f"{people.rows_without_id:,}"
    ]
    if people.over_limit is not None:
        lines.append(
            f"{_persons(people.over_limit)} with more rows than the limit; rows left out: "
            f"{people.rows_left_out:,}"
        )
    return lines


def _persons(count: int) -> str:
    return "1 person" if count == 1 else f"{count:,} people"


def _variable_check(
    variable: Variable, missing: int, unknown: int, far: int, digits: int
) -> VariableCheck:
    as_missing = variable.kind == "ordered"
    far_as = repr(variable.missing) if as_missing else _NEAREST_LEVEL
    return VariableCheck(
        *(variable.name, missing, variable.missing, unknown, _unknown_as(variable)),
        far,
        far_as if far else "",
        as_missing and variable.has_gap and far > 0,
        digits,
    )


def _is_two_words(variable: Variable) -> bool:
    """Whether a file of 0 and 1 may be meant: two levels, none of them a digit."""
    return (
        len(variable.answers) == 2
        and variable.kind in ("levels", "ordered")
        and not {"0", "1"} & set(variable.answers)
    )


def _as_digits(variable: Variable) -> Variable:
    """The variable as if its levels were 0 and 1."""
    return replace(
        variable,
        levels=("0", "1"),
        kind="levels",
        missing="0",
        unknown="0",
        has_gap=False,
        missing_codes=(),
    )


def _unknown_as(variable: Variable) -> str:
    return _NEAREST if variable.unknown is None else variable.unknown


def _rule_text(rule: Sequence[tuple[str, Sequence[str]]]) -> str:
    return ", ".join(f"{name} = {' or '.join(levels)}" for name, levels in rule)


def _columns(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table with columns wide enough for their entries."""
    table = [head, *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(head))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]
