"""`privfield init`: begin a schema from the header of a file."""

from __future__ import annotations

from typing import Annotated

import typer

from privfield.cli.arguments import options
from privfield.cli.terminal.console import note, say, say_json
from privfield.errors import InputError

HELP = """Begin a schema file from the header of FILE. No record is read.

Example:  [bold]privfield init symptoms.csv --levels no,yes -o symptoms.toml[/bold]

What a column may hold is public knowledge, so it comes from you: with --levels for all columns, or
in the file afterwards. The file explains its keys, among them `unknown`: the level that values
outside the schema are read as.
"""


def init(
    file: options.DataFile,
    output: Annotated[str, options.output("S", "The schema file to write.")] = "schema.toml",
    levels: Annotated[
        str | None, options.text("no,yes", "What every column may hold; 1-6 is six.")
    ] = None,
    ordered: Annotated[
        bool, typer.Option("--ordered", help="Levels run from least to most, as on a scale.")
    ] = False,
    levels_are_public: Annotated[
        bool,
        typer.Option(
            "--levels-are-public",
            help="Read the levels from the records; the model card will say so.",
        ),
    ] = False,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Read the names of the columns; write a schema."""
    from privfield.cli.arguments.files import check_output, typed
    from privfield.data.levels import levels_in
    from privfield.data.sources.files import column_names
    from privfield.files import write_bytes
    from privfield.schema.draft import draft, split_levels
    from privfield.words import counted

    if levels is not None and levels_are_public:
        raise InputError("--levels and --levels-are-public exclude each other.")
    if ordered and levels is None and not levels_are_public:
        raise InputError("--ordered needs the levels: --levels 1-6, from least to most.")
    given = split_levels(levels) if levels is not None else []
    target = check_output(output, force)
    with typed(file):
        names, remarks = column_names(file)
    found = levels_in(file, names) if levels_are_public else dict.fromkeys(names, given)
    text = draft(found, public=levels_are_public, ordered=ordered)
    write_bytes(target, text.encode())
    waiting = [name for name in names if not found[name]]
    read = "the records, because you called the levels public" if levels_are_public else None
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
    say(f"Wrote {target}: {counted(len(names), 'column')}, from {read or 'the header only'}.")
    for remark in remarks:
        note(f"Note: {remark}.")
    _next_steps(file, str(target), found, waiting, ordered)


def _next_steps(
    file: str, target: str, found: dict[str, list[str]], waiting: list[str], ordered: bool
) -> None:
    from privfield.schema import level_numbers

    if waiting:
        note(
            f"Fill in what {'this column' if len(waiting) == 1 else f'{len(waiting)} columns'} may "
            f"hold, and delete the sections of columns you do not need (names, ids):\n  "
            + ", ".join(waiting[:6])
            + (", …" if len(waiting) > 6 else "")
        )
    else:
        levels = next(iter(found.values()))
        nearest = ordered and level_numbers(levels) is not None
        what = "Empty values" if nearest else "Values outside the schema, and empty ones,"
        note(
            f"{what} will be read as the first level (here {levels[0]!r});\n"
            "change `unknown` and `missing` in the file if another suits better. "
            "Delete the sections of\ncolumns you do not need (names, ids)."
        )
    note(
        f"Then: privfield check {file} --schema {target}   (for you only: counts what does not fit)"
    )
    note(f"      privfield plan {target} --n <rows> --epsilon 1 --delta 1e-6")
