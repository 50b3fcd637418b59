"""`privfield compare`: whether two groups, sites or waves differ, from what was released."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from privfield.cli.arguments import options
from privfield.cli.terminal.console import say, say_json, say_stamp
from privfield.errors import InputError

HELP = """Compare two models: do links differ between groups, and which?

Example:  [bold]privfield compare women.pf men.pf -o compare.html[/bold]

One test of all links together, differences of every link and answer with intervals. Costs no
privacy: everything comes from what was released. Two cards of `privfield export --to card` (.json)
are compared entry by entry.
"""


def compare(
    first: options.ModelFile,
    second: options.ModelFile,
    output: Annotated[str | None, options.output("F", "The HTML file to write.")] = None,
    level: Annotated[float, options.between("L", "Of the intervals and the test.")] = 0.95,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Load both, compare, write."""
    from privfield.cli.arguments.files import PAGES, check_output, load_field, short_names
    from privfield.estimation.uncertainty.strengths import VERDICTS
    from privfield.reporting.comparing import compare as compare_models

    target = None if output is None else check_output(output, force, PAGES)
    one, two = short_names([first, second])
    cards = first.endswith(".json"), second.endswith(".json")
    if all(cards):
        _compare_cards((first, second), (one, two), target, json)
        return
    if any(cards):
        raise InputError(f"a card is compared with a card: {first!r} and {second!r} are not alike.")
    models = load_field(first), load_field(second)
    try:
        found = compare_models(*models, names=(one, two), level=level)
    except InputError as error:
        raise InputError(_by_file(str(error), first, second)) from None
    if target is not None:
        found.write(target)
    if json:
        counts = {verdict: found.edges().count(verdict) for verdict in VERDICTS}
        say_json(
            {
                "p": found.p,
                "links": found.links,
                "edges": counts,
                "report": None if target is None else str(target),
                "stamp": found.stamp,
            }
        )
        return
    say_stamp(found.stamp)
    say(repr(found) if target is None else found.verdict())
    if target is not None:
        say(f"Wrote {target}: open it in a browser.")


def _by_file(text: str, first: str, second: str) -> str:
    """An error about the first and the second model, by the files that were typed."""
    files = {"first": repr(first), "second": repr(second)}  # what is quoted is a name of its own
    return re.sub(r"'[^']*'|\b(first|second)\b", lambda part: files.get(part[0], part[0]), text)


def _compare_cards(
    files: tuple[str, str], names: tuple[str, str], target: Path | None, json: bool
) -> None:
    from privfield.files import write_bytes
    from privfield.reporting.review import common_stamp, compare_cards, comparison_page, read_card

    cards = read_card(files[0]), read_card(files[1])
    if target is not None:
        write_bytes(target, comparison_page(names, cards).encode())
    differences = compare_cards(*cards)
    stamp = common_stamp(names, cards)
    if json:
        report = None if target is None else str(target)
        say_json({"differences": differences, "report": report, "stamp": stamp})
        return
    say_stamp(stamp)
    for entry, one, two in differences:
        say(f"{entry}: {one} | {two}")
    if not differences:
        say("The cards say the same.")
    if target is not None:
        say(f"Wrote {target}: open it in a browser.")
