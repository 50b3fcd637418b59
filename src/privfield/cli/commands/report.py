"""`privfield report`: one HTML file that says what was found and what it cost."""

from __future__ import annotations

from typing import Annotated

from privfield.cli.arguments import options
from privfield.cli.terminal.console import say, say_json, say_stamp

HELP = """Write a report: the network, intervals, what was protected, a methods paragraph.

Example:  [bold]privfield report model.pf -o report.html[/bold]

One file that opens in any browser and asks the network for nothing. Costs no privacy.
"""


def report(
    model: options.ModelFile,
    output: Annotated[str, options.output("F", "The HTML file to write.")],
    level: Annotated[float, options.between("L", "Of the intervals.")] = 0.95,
    title: Annotated[str | None, options.text("T", "Of the page.")] = None,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Load, draw, write."""
    from privfield.cli.arguments.files import PAGES, check_output, load_model
    from privfield.cli.terminal.bars import bars
    from privfield.estimation.uncertainty.strengths import VERDICTS
    from privfield.models.base import Model
    from privfield.models.network import NetworkIsing
    from privfield.reporting import write_report

    target = check_output(output, force, PAGES)
    found = load_model(model)
    with bars("uncertainty") as progress:
        write_report(found, target, level=level, title=title, progress=progress)
    if json:
        size = target.stat().st_size
        counts = {}
        if isinstance(found, Model) and not isinstance(found, NetworkIsing):
            edges = found.edges(level)
            counts = {"edges": {verdict: edges.count(verdict) for verdict in VERDICTS}}
        say_json({"report": str(target), "bytes": size, "stamp": found.stamp, **counts})
        return
    say_stamp(found.stamp)
    say(f"Wrote {target}: open it in a browser.")
