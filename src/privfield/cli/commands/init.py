"""`privfield init`: begin a schema from the header of a file, or from a codebook."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from privfield.cli.arguments import options
from privfield.cli.terminal.console import as_typed, is_terminal, note, say, say_json
from privfield.errors import InputError

if TYPE_CHECKING:
    from privfield.schema.codebook import Column

HELP = """Begin a schema file from the header of FILE. No record is read.

Example:  [bold]privfield init symptoms.csv --levels 0,1 -o symptoms.toml[/bold]

or, with a codebook:  [bold]privfield init survey.sav -o survey.toml[/bold]

What a column may hold is public knowledge, so it comes from you: with --levels for all columns, or
in the file afterwards. Levels are what stands in the file: 0,1 where it holds 0 and 1, no,yes where
it holds these words; `privfield check` tells you whether they fit. The file explains its keys,
among them `unknown`: the level that values outside the schema are read as. Files of SPSS and Stata
(.sav, .dta) hold a codebook: its wording, value labels, order and missing codes are taken over. So
are those of SDV metadata and Frictionless Table Schemas (.json).

Gaps: --gaps level makes them a level of their own, and models speak of those who answered;
--gaps middle reads them as the middle of a scale, --gaps no as the level "no". --missing 99,-1
lists codes that mean "no answer"; they are read like empty values.
"""


def init(
    file: options.DataFile,
    output: Annotated[str, options.output("S", "The schema file to write.")] = "schema.toml",
    levels: Annotated[
        str | None, options.text("0,1", "What every column may hold; 1-6 is six.")
    ] = None,
    ordered: Annotated[
        bool, typer.Option("--ordered", help="Levels run from least to most, as on a scale.")
    ] = False,
    gaps: Annotated[
        str | None,
        options.text("level", "Empty values are read as: level, middle, or one of the levels."),
    ] = None,
    missing: Annotated[
        str | None, options.text("99,-1", "Codes that mean no answer; read like empty values.")
    ] = None,
    levels_are_public: Annotated[
        bool,
        typer.Option(
            "--levels-are-public",
            help="Read the levels from the records; the model card will say so.",
        ),
    ] = False,
    encoding: options.Encoding = None,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Read the names of the columns; write a schema."""
    from privfield.cli.arguments.files import check_output, in_options, typed
    from privfield.files import write_bytes
    from privfield.schema.codebook import is_codebook
    from privfield.schema.draft import draft, split_levels
    from privfield.words import counted

    if levels is not None and levels_are_public:
        raise InputError("--levels and --levels-are-public exclude each other.")
    if ordered and levels is None and not levels_are_public and not is_codebook(file):
        raise InputError("--ordered needs the levels: --levels 1-6, from least to most.")
    given = split_levels(levels) if levels is not None else None
    target = check_output(output, force)
    with typed(file), in_options():
        codes = _split_codes(missing)
        columns, remarks = _columns(file, given, ordered, codes, levels_are_public, encoding)
        columns = _with_codes(columns, codes)
    columns = _with_gaps(columns, _asked(columns) if gaps is None and not json else gaps)
    write_bytes(target, draft(columns, public=levels_are_public).encode())
    names = [column.name for column in columns]
    waiting = [column.name for column in columns if not column.levels]
    read = "the codebook only" if is_codebook(file) else "the header only"
    if levels_are_public:
        read = "the records, because you called the levels public"
    if json:
        say_json(
            {
                "schema": str(target),
                "columns": names,
                "fill_in": waiting,
                "levels_are_public": levels_are_public,
            }
        )
        return
    say(f"Wrote {target}: {counted(len(names), 'column')}, from {read}.")
    for remark in remarks:
        note(f"Note: {remark}.")
    more = "" if encoding is None else f" --encoding {encoding}"
    _next_steps(file, str(target), columns, waiting, more)


def _columns(
    file: str,
    given: list[str] | None,
    ordered: bool,
    no_answers: Sequence[str],
    levels_are_public: bool,
    encoding: str | None,
) -> tuple[list[Column], list[str]]:
    """What is known of the columns, and remarks on them."""
    from dataclasses import replace

    from privfield.data.levels import levels_in
    from privfield.data.sources.files import column_names, folder_columns
    from privfield.schema.codebook import SURVEYS, Column, is_codebook, read_codebook, with_gap

    folders: list[str] = []
    is_survey = file.lower().endswith(SURVEYS)
    if is_codebook(file):
        columns, remarks = read_codebook(file, ordered, no_answers)
        if is_survey and (given is not None or levels_are_public):
            remarks = []  # nothing is left open
        remarks += _missing_codes(columns)
        if file.lower().endswith(".dta") and not ordered:
            remarks.append("Stata does not say which variables are scales; --ordered takes all so")
    else:
        names, remarks = column_names(file, encoding, given or ())
        columns, folders = [Column(name) for name in names], folder_columns(file)
    if levels_are_public:
        found = levels_in(file, [column.name for column in columns], encoding)
    elif given is not None:
        # a folder's name is not what stands in the cells, and how others are called is private
        found = {each.name: [] if each.name in folders else given for each in columns}
        if folders:
            remarks.append(f"--levels is not about what folders name: {_listed(folders)}")
    elif ordered:
        found = {column.name: list(column.levels) for column in columns}  # as the codebook has them
        remarks += _words_as_scales(file, columns)
    else:
        return columns, remarks
    new = []
    for column in columns:
        own_levels = tuple(found[column.name])
        own = replace(column, levels=own_levels, ordered=ordered and bool(own_levels), gap=None)
        new.append(with_gap(own) if own.ordered else own)
    return new, remarks


def _words_as_scales(file: str, columns: Sequence[Column]) -> list[str]:
    """On columns that are scales by `--ordered` alone, and whose levels do not look like one."""
    from privfield.schema import level_numbers
    from privfield.schema.codebook import read_codebook

    said = {column.name for column in read_codebook(file)[0] if column.ordered}
    words = [
        column.name
        for column in columns
        if len(column.levels) > 2
        and column.name not in said
        and level_numbers(column.levels) is None
    ]
    if not words:
        return []
    return [
        "--ordered takes answers in words as scales, in the order of their codes: "
        f"{_listed(words)}. Delete `ordered = true` where they are none, such as towns"
    ]


def _asked(columns: Sequence[Column]) -> str | None:
    """What somebody at a terminal says about gaps; None where nobody can be asked."""
    first = next((column for column in columns if column.levels), None)
    if first is None or not is_terminal():
        return None
    return str(
        typer.prompt(
            "Empty values are (level) a level of their own, so that models speak of those who "
            "answered,\n(middle) the middle of a scale, or the answer with the name that you type",
            default="level" if first.gap else first.levels[0],
            err=True,
        )
    )


def _with_gaps(columns: Sequence[Column], gaps: str | None) -> list[Column]:
    """Columns that read empty values as somebody said; None is what suits each."""
    from dataclasses import replace

    from privfield.schema.codebook import middle, with_gap

    if gaps is None:
        return list(columns)
    if gaps == "level":
        return [with_gap(column) for column in columns]
    if gaps == "middle":
        return [
            replace(each, gap=None, missing=middle(each.levels)) if _has_middle(each) else each
            for each in columns
        ]
    if not any(gaps in column.levels for column in columns):
        raise InputError(f"--gaps must be level, middle or one of the levels; got {gaps!r}.")
    return [
        replace(each, gap=None, missing=gaps) if gaps in each.levels else each for each in columns
    ]


def _has_middle(column: Column) -> bool:
    """A scale has one; three towns have none, and two answers have nothing between them."""
    from privfield.schema import level_numbers

    is_scale = column.ordered or level_numbers(column.levels) is not None
    return is_scale and len(column.levels) > 2


def _split_codes(missing: str | None) -> list[str]:
    codes = [] if missing is None else [code.strip() for code in missing.split(",")]
    if not all(codes):
        raise InputError(f"--missing must list codes, such as 99,-1; got {missing!r}.")
    return codes


def _with_codes(columns: Sequence[Column], codes: Sequence[str]) -> list[Column]:
    """Columns with these codes besides those that they have; all are read like empty values."""
    from dataclasses import replace

    from privfield.schema.codebook import with_gap

    if not codes:
        return list(columns)
    both = [(code, each.name) for code in codes for each in columns if code in each.levels]
    if both:
        code, name = both[0]
        raise InputError(
            f"--missing: {code!r} is a level of {name!r}, so it cannot mean no answer."
        )
    found = []
    for column in columns:
        if column.levels:
            every = dict.fromkeys((*column.missing_codes, *codes))
            column = with_gap(replace(column, missing_codes=tuple(every)))
        found.append(column)
    return found


def _missing_codes(columns: Sequence[Column]) -> list[str]:
    from privfield.words import counted

    having = [column for column in columns if column.declared_missing]
    codes = list(dict.fromkeys(code for column in having for code in column.declared_missing))
    return [
        f"{counted(len(having), 'column')} with codes for no answer ({_listed(codes)}); they are "
        "read like empty values"
    ] * bool(having)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:6]) + ", …" * (len(names) > 6)


def _say_first_levels(columns: Sequence[Column]) -> None:
    """Which columns have no gap of their own, and what that means, where it is not the rule."""
    own = [each.name for each in columns if each.levels and each.gap is each.missing is None]
    if own:
        note(
            f"Empty values of these columns are read as their first level: {_listed(own)}.\n"
            "With --gaps level they would be no answer."
        )


def _next_steps(
    file: str, target: str, columns: Sequence[Column], waiting: Sequence[str], more: str
) -> None:
    from privfield.schema import level_numbers

    if waiting:
        note(
            f"Fill in what {'this column' if len(waiting) == 1 else f'{len(waiting)} columns'} may "
            "hold, and delete the sections of columns you do not need (names, ids):\n  "
            f"{_listed(waiting)}"
        )
    else:
        first = columns[0]
        nearest = first.ordered and level_numbers(first.levels) is not None
        what = "Values outside the schema, and empty ones,"
        if nearest:
            what = "Empty values, and numbers off the scale such as 99,"
        where = "the first level" if first.missing is None else "a level of the scale"
        if first.gap is not None:
            where = "a level of their own"
        shown = first.gap or first.missing or first.levels[0]
        note(
            f"{what} will be read as {where} (here {shown!r});\n"
            f"change `unknown` and `{'gap' if first.gap else 'missing'}` in the file if another "
            "suits better. Delete the sections of\ncolumns you do not need (names, ids). "
            "Where the file has 0 and 1, the levels are 0,1."
        )
        if not any(column.missing_codes for column in columns):
            note("Codes for no answer, such as 99, are listed with --missing 99.")
    if any(column.gap for column in columns) or waiting:
        _say_first_levels(columns)
    table = "<table>" if file.lower().endswith(".json") else as_typed(file)
    target = as_typed(target)
    note(
        f"Then: privfield check {table} --schema {target}{more}   (for you only: counts what does "
        "not fit)"
    )
    note(f"      privfield plan {target} --n <rows> --epsilon 1 --delta 1e-6")
