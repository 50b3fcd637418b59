"""`privfield utility`: what synthetic rows keep, without spending anything."""

from __future__ import annotations

from typing import Annotated

import typer

from privfield.cli.arguments import options
from privfield.cli.terminal.console import say, say_json, say_stamp, warn

HELP = """Compare synthetic rows with the model and the numbers it was made from. Costs no privacy.

Example:  [bold]privfield utility model.pf synthetic.csv -o utility.html[/bold]

Distances of single variables and pairs, beside what privacy noise alone would make. Rows are
counted exactly: give synthetic rows only, never the records themselves.
"""


def utility(
    model: options.ModelFile,
    synthetic: Annotated[
        str, typer.Argument(metavar="FILE", help="Synthetic rows: CSV or Parquet.")
    ],
    output: Annotated[str, options.output("F", "The HTML file to write.")],
    level: Annotated[float, options.between("L", "Of the margins.")] = 0.95,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Load, count, write."""
    from privfield.cli.arguments.files import PAGES, check_output, load_field, typed
    from privfield.reporting.utility import utility as compare_rows

    target = check_output(output, force, PAGES)
    found = load_field(model)
    with typed(synthetic):
        kept = compare_rows(found, synthetic, level)
    kept.write(target)
    if json:
        say_json({"page": str(target), **kept.summary()})
        return
    say_stamp(found.stamp)
    if kept.alarm:
        warn(kept.alarm)
    say(f"Wrote {target}: open it in a browser.")
