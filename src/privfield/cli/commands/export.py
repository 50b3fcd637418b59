"""`privfield export`: a model for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privfield.cli.arguments import options
from privfield.cli.terminal.console import say, say_json, say_stamp
from privfield.errors import InputError

if TYPE_CHECKING:
    from privfield.estimation.uncertainty.strengths import Edges
    from privfield.models.base import Model

HELP = """Write a model for other programs. Costs no privacy.

Example:  [bold]privfield export model.pf --to qgraph -o weights.csv[/bold]

graphml: Cytoscape, Gephi, igraph. json: networkx node-link. uai: inference programs. qgraph: weight
matrix as CSV for R, and thresholds in a second file next to it. In graphml and json edges carry the
model's weight and, where it is known, the estimate that is not shrunk with its interval (low, high;
an end that is not there is infinite), its p-value and its verdict.
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
    from privfield.estimation.uncertainty.strengths import VERDICTS
    from privfield.models.export import write_graph, write_qgraph, write_uai

    if to not in FORMATS:
        raise InputError(f"--to must be one of {', '.join(FORMATS)}; got {to!r}.")
    target = check_output(output, force)
    files = [target]
    if to == "qgraph":
        files.append(check_output(str(thresholds_path(target)), force))
    found = load_field(model)
    counts: dict[str, Any] = {}
    if to == "qgraph":
        write_qgraph(found, *files)
    elif to == "uai":
        write_uai(found, target)
    else:
        write_graph(graph_of(found, edges := found.edges()), target, to)
        counts = {"edges": {verdict: edges.count(verdict) for verdict in VERDICTS}}
    if json:
        say_json(
            {"files": [str(file) for file in files], "format": to, "stamp": found.stamp, **counts}
        )
        return
    say_stamp(found.stamp)
    say(f"Wrote {' and '.join(str(file) for file in files)}.")


def thresholds_path(weights: Path) -> Path:
    """Where the thresholds go that belong to a weight matrix."""
    return weights.with_name(f"{weights.stem}-thresholds{weights.suffix}")


def graph_of(model: Model, edges: Edges) -> Any:
    """The dependency graph, with the model's weights, and what is known about each edge."""
    import math

    graph = _weighted(model)
    if model.stamp:
        graph.graph["stamp"] = model.stamp
    for edge in edges if edges.known else ():
        if graph.has_edge(edge.first, edge.second):
            numbers = {"weight": edge.fitted, "estimate": edge.estimate, "p": edge.p}
            numbers |= {"low": edge.low, "high": edge.high}
            graph.edges[edge.first, edge.second].update(
                {name: x for name, x in numbers.items() if x is not None and math.isfinite(x)},
                verdict=edge.verdict,
            )
    return graph


def _weighted(model: Model) -> Any:
    try:
        return model.to_ising().graph()
    except InputError:
        return model.graph()
