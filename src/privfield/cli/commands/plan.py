"""`privfield plan`: what a study will cost and how good it will be, before any data is read."""

from __future__ import annotations

from typing import Annotated

import typer

from privfield.cli.arguments import options
from privfield.cli.terminal.console import say, say_json

HELP = """Predict error, memory and the better method. Reads the schema only, never data.

Example:  [bold]privfield plan symptoms.toml --n 5000 --epsilon 1 --delta 1e-6[/bold]

With --accuracy it also says how many rows, or how much budget, that accuracy would need.
"""


def plan(
    schema: Annotated[str, typer.Argument(metavar="SCHEMA", help="The schema file.")],
    n: Annotated[
        int, typer.Option("--n", "-n", metavar="N", parser=options.count, help="Rows, or a guess.")
    ],
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    rho: options.Rho = None,
    accuracy: Annotated[float | None, options.positive("A", "The error you can live with.")] = None,
    max_memory: Annotated[str | None, options.text("8GB", "What this machine may use.")] = None,
    model: Annotated[
        str, options.text("KIND", "auto, ising, pairwise, polynomial or structure.")
    ] = "auto",
    cliques: Annotated[
        str, options.text("C", "auto, all-pairs, learn, or as for `privfield fit`.")
    ] = "auto",
    min_weight: Annotated[
        float | None, options.positive("W", "The weakest edge that matters.")
    ] = None,
    adjacency: options.Adjacency = "replace-one",
    sites: Annotated[
        int | None,
        typer.Option(
            metavar="K", parser=options.count, help="Places that hold N people together, to pool."
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Predict."""
    from privfield.cli.arguments.budget import read_budget
    from privfield.cli.arguments.cliques import read_cliques
    from privfield.cli.arguments.files import read_schema
    from privfield.planning.plan import plan as predict

    budget = read_budget(epsilon, delta, rho)
    rules = read_schema(schema, "SCHEMA")
    found = predict(
        rules,
        n,
        budget,
        model=model,
        accuracy=accuracy,
        min_weight=min_weight,
        adjacency=adjacency,
        cliques=read_cliques(cliques, rules),
        max_memory=max_memory,
        sites=1 if sites is None else sites,
    )
    if json:
        say_json(found.to_json())
    else:
        say(str(found))
