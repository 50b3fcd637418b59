"""`privfield export`: a model for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privfield.cli.arguments import options
from privfield.cli.terminal.console import say, say_json, say_stamp
from privfield.errors import InputError

if TYPE_CHECKING:
    from privfield.models.base import Model

HELP = """Write a model for other programs. Costs no privacy.

Example:  [bold]privfield export model.pf --to qgraph -o weights.csv[/bold]

graphml: Cytoscape, Gephi, igraph. json: networkx node-link. uai: inference programs. qgraph: weight
matrix as CSV for R, and thresholds in a second file next to it. Edges carry their interval (low,
high) where it is known.
"""
FORMATS = ("graphml", "uai", "qgraph", "json")


def export(
    model: options.ModelFile,
    to: Annotated[str, typer.Option(metavar="|".join(FORMATS), help="The format.")],
    output: Annotated[str, options.output("F", "The file to write.")],
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Load and write."""
    from privfield.cli.arguments.files import check_output, load_field
    from privfield.models.export import write_graph, write_qgraph, write_uai

    if to not in FORMATS:
        raise InputError(f"--to must be one of {', '.join(FORMATS)}; got {to!r}.")
    target = check_output(output, force)
    files = [target]
    if to == "qgraph":
        files.append(check_output(str(thresholds_path(target)), force))
    found = load_field(model)
    if to == "qgraph":
        write_qgraph(found, *files)
    elif to == "uai":
        write_uai(found, target)
    else:
        write_graph(graph_of(found), target, to)
    if json:
        say_json({"files": [str(file) for file in files], "format": to, "stamp": found.stamp})
        return
    say_stamp(found.stamp)
    say(f"Wrote {' and '.join(str(file) for file in files)}.")


def thresholds_path(weights: Path) -> Path:
    """Where the thresholds go that belong to a weight matrix."""
    return weights.with_name(f"{weights.stem}-thresholds{weights.suffix}")


def graph_of(model: Model) -> Any:
    """The dependency graph, with weights and intervals where they are known."""
    from privfield.estimation.uncertainty.delta_method import uncertainty

    graph = _weighted(model)
    if model.stamp:
        graph.graph["stamp"] = model.stamp
    measurements = getattr(model, "measurements", None)
    known = None if measurements is None else uncertainty(model, measurements)
    for edge in () if known is None else known.edges():
        if graph.has_edge(edge.first, edge.second):
            numbers = {"weight": edge.estimate, "low": edge.low, "high": edge.high}
            found = {name: float(value) for name, value in numbers.items() if value is not None}
            graph.edges[edge.first, edge.second].update(found, status=edge.status())
    return graph


def _weighted(model: Model) -> Any:
    try:
        return model.to_ising().graph()
    except InputError:
        return model.graph()
