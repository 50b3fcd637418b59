"""`privfield pool`: one model from what several sites released about their own people."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from privfield.cli.arguments import options
from privfield.cli.terminal.console import as_typed, note, say, say_json, say_stamp
from privfield.errors import InputError
from privfield.words import counted

HELP = """Make one model from those of several sites. Costs no privacy.

Example:  [bold]privfield pool north.pf south.pf west.pf -o all.pf[/bold]

Each site fits its own people at home; only noisy numbers travel. Each person must be in one site.
"""


def pool(
    models: Annotated[list[str], typer.Argument(metavar="M...", help="The sites’ model files.")],
    output: Annotated[str, options.output("M", "The model file to write.")],
    overlap: Annotated[
        bool, typer.Option("--overlap", help="People may be in several sites: costs add up.")
    ] = False,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Load all, pool, write."""
    from privfield.cli.arguments.files import check_output, load_field, short_names
    from privfield.cli.terminal.bars import bars
    from privfield.estimation.pooling import pool as pool_models

    target = check_output(output, force)
    sites = [load_field(path) for path in models]
    try:
        with bars("pooling"):
            found = pool_models(sites, names=short_names(models), overlap=overlap)
    except InputError as error:
        raise InputError(_by_file(str(error), models)) from None
    found.save(target)
    if json:
        cost = None if found.card.cost is None or found.stamp else found.card.cost.to_json()
        say_json({"model": str(target), "sites": len(sites), "cost": cost, "stamp": found.stamp})
        return
    say_stamp(found.stamp)
    say(f"Wrote {target}: {len(sites)} sites, {counted(len(found.schema), 'variable')}.")
    if not found.stamp:
        say(f"Promise: {found.card.promise()}. {found.card.notes[0]}")
    note(f"Next, at no further cost: privfield report {as_typed(target)} -o report.html")


def _by_file(text: str, models: list[str]) -> str:
    """An error about the site of some number, by the file that was typed."""
    named = re.sub(
        r"'[^']*'|\bnumber (\d+)",  # what is quoted is a name of its own
        lambda part: part[0] if part[1] is None else repr(models[int(part[1]) - 1]),
        text,
    )
    return named.removeprefix("sites: ")
