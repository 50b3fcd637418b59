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
matrix as CSV for R, and thresholds in a second file next to it. r: one .R file with weights,
intervals, thresholds and communities, which builds a qgraph plot and a list as bootnet's. jasp:
synthetic people as CSV, which JASP's network module reads. centrality: CSV, a row per variable.
card: what a disclosure board or a registry of releases asks, as JSON and as a page next to it:
card.json and card.html, study.json and study.card.html. In
graphml, json and r edges carry the model's weight and, where it is known, the estimate that is not
shrunk with its interval (low, high; an end that is not there is infinite), and its verdict. Where
three variables interact, these have a note and the pairs' mean weights, and qgraph is refused.
"""
FORMATS = ("graphml", "uai", "qgraph", "json", "r", "jasp", "centrality", "card")
_SUFFIXES = {  # the first is added to a name without any
    **dict.fromkeys(("qgraph", "jasp", "centrality"), (".csv", ".txt")),
    "r": (".R",),
    "card": (".json",),
}
_USUAL = {"graphml": ".graphml", "json": ".json", "uai": ".uai"}  # added, but others are taken too
_PEOPLE = 10_000  # synthetic ones, where their number is not public


def export(
    model: options.ModelFile,
    to: Annotated[str, typer.Option(metavar="|".join(FORMATS), help="The format.")],
    output: Annotated[str, options.output("F", "The file to write.")],
    ledger: options.LedgerRead = None,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Load and write."""
    from privfield.cli.arguments.files import check_output, load_field, load_model
    from privfield.cli.commands.rows import choose_method
    from privfield.estimation.uncertainty.strengths import VERDICTS
    from privfield.files import csv_bytes, write_bytes
    from privfield.models.export import write_graph, write_qgraph, write_uai
    from privfield.models.r_export import write_jasp
    from privfield.stamps import comment

    if to not in FORMATS:
        raise InputError(f"--to must be one of {', '.join(FORMATS)}; got {to!r}.")
    if ledger is not None and to != "card":
        raise InputError("--ledger is for --to card.")
    suffixes = _SUFFIXES.get(to, ())
    bare = output and not Path(output).suffix and not Path(output).is_dir()
    usual = suffixes[0] if suffixes else _USUAL[to]
    target = check_output(f"{output}{usual}" if bare else output, force, suffixes)
    files = [target]
    if to == "card":
        files.append(check_output(str(page_path(target)), force))
    if to == "qgraph":
        files.append(check_output(str(thresholds_path(target)), force))
    found = load_model(model) if to == "card" else load_field(model)
    counts: dict[str, Any] = {}
    if to == "qgraph":
        try:
            write_qgraph(found, *files)
        except InputError as problem:
            raise InputError(f"--to qgraph: {problem} --to r and graphml take it.") from None
    elif to == "uai":
        write_uai(found, target)
    elif to == "r":
        _export_r(found, target)
    elif to == "jasp":
        rows = None if found.card is None else found.card.rows
        write_jasp(found, target, int(rows or _PEOPLE), choose_method(found, "auto"))
    elif to == "card":
        _export_card(found, files, ledger)
    elif to == "centrality":
        rows = csv_bytes(found.centrality().table())
        write_bytes(target, comment(found.stamp) + rows)
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


def _export_card(model: Any, files: list[Path], ledger: str | None) -> None:
    from privfield.privacy.ledger import Ledger
    from privfield.reporting.review import write_card

    if ledger is not None and not Path(ledger).exists():
        raise InputError(f"--ledger: there is no file {ledger!r}.")
    target, page = files
    write_card(model, target, page, None if ledger is None else Ledger(ledger))


def _export_r(model: Model, target: Path) -> None:
    from privfield.models.r_export import write_r

    schema, edges = model.schema, model.edges()
    size = len(schema)
    names = ("weights", "estimate", "low", "high")
    numbers: dict[str, list[list[float | None]]] = {
        name: [[None] * size for _ in range(size)] for name in names
    }
    verdicts: list[list[str | None]] = [[None] * size for _ in range(size)]
    numbers["weights"] = [[0.0] * size for _ in range(size)]
    for edge in edges:
        i, j = schema.index(edge.first), schema.index(edge.second)
        values = (edge.fitted, edge.estimate, edge.low, edge.high)
        for a, b in ((i, j), (j, i)):
            for name, value in zip(names, values, strict=True):
                numbers[name][a][b] = value
            verdicts[a][b] = edge.verdict
    groups: dict[str, list[int]] = {}
    for place, row in enumerate(model.centrality(), 1):
        groups.setdefault(f"community {row.community}", []).append(place)
    signed = all(edge.signed for edge in edges)
    write_r(model, target, numbers, verdicts, groups, signed, _note(model, edges))


def _note(model: Model, edges: Edges) -> str:
    """What is to be known of the weights of pairs; of a model made by hand, too."""
    from privfield.models.export import larger_interactions

    among = "" if edges.note else larger_interactions(model)
    if not among:
        return edges.note
    return (
        f"Three or more variables interact ({among}): how strongly two of them are linked depends "
        "on the others. Their weight is the mean over the levels of those."
    )


def page_path(card: Path) -> Path:
    """Where the page goes that belongs to a card: not where a report of that name would be."""
    stem = card.stem if card.stem.lower().endswith("card") else f"{card.stem}.card"
    return card.with_name(f"{stem}.html")


def thresholds_path(weights: Path) -> Path:
    """Where the thresholds go that belong to a weight matrix."""
    return weights.with_name(f"{weights.stem}-thresholds{weights.suffix}")


def graph_of(model: Model, edges: Edges) -> Any:
    """The dependency graph, with the model's weights, and what is known about each edge."""
    import math

    graph = _weighted(model)
    if note := _note(model, edges):
        graph.graph["note"] = note
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
