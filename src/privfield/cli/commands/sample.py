"""`privfield sample`: synthetic rows from a model, any number of them."""

from __future__ import annotations

from typing import Annotated

import typer

from privfield.cli.arguments import options
from privfield.cli.terminal.console import note, say, say_json, say_stamp

HELP = """Draw synthetic rows from a model. Costs no privacy.

Example:  [bold]privfield sample model.pf -n 1e6 -o synthetic.parquet[/bold]

Writes CSV or Parquet by the suffix of -o, a piece at a time: 1e7 rows need no more memory than 1e5.
What the schema forbids never appears. Rows are balanced: they keep the model's tables several times
better than independent rows would; --method independent draws those, for simulated people.

--copies M writes M tables (synthetic-1.csv, …), each of independent rows from its own draw of the
models that the released numbers leave possible. Repeat an analysis on all of them and put the
answers together with `pf.combine`: one table alone makes every answer look too sure.
"""


def sample(
    model: options.ModelFile,
    n: Annotated[
        int, typer.Option("-n", "--n", metavar="N", parser=options.count, help="How many rows.")
    ],
    output: Annotated[str, options.output("F", "The file to write: .csv or .parquet.")],
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="K", min=0, help="To get the same rows again; privacy is not at stake."
        ),
    ] = None,
    method: Annotated[
        str,
        options.text("M", "auto, balanced, independent, or gibbs for models too large for both."),
    ] = "auto",
    copies: Annotated[
        int | None,
        typer.Option(metavar="M", parser=options.count, help="So many tables, for pf.combine."),
    ] = None,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Draw and write."""
    import numpy as np

    from privfield.cli.arguments.files import check_output, load_field
    from privfield.cli.commands.rows import SUFFIXES, choose_method, numbered, write_rows
    from privfield.cli.terminal.bars import bars
    from privfield.words import counted

    target = check_output(output, force, SUFFIXES)
    files = [target] if copies is None else numbered(target, copies)
    for file in files:
        check_output(str(file), force)
    found = load_field(model)
    chosen = choose_method(found, method, copies is not None)
    rng = np.random.default_rng(seed)
    with bars("drawing rows", {"drawing rows": n}) as progress:
        drawn = (found,) if copies is None else found.draws(copies, rng)
        for each, file in zip(drawn, files, strict=True):
            write_rows(each, n, file, rng, chosen, progress)
    if json:
        value = {"output": str(target), "rows": n, "method": chosen, "stamp": found.stamp}
        say_json(value if copies is None else {**value, "output": [str(file) for file in files]})
        return
    say_stamp(found.stamp)
    rows, variables = counted(n, "synthetic row"), counted(len(found.schema), "variable")
    if copies is None:
        say(f"Wrote {target}: {rows} of {variables}.")
    else:
        say(f"Wrote {files[0]} to {files[-1].name}: {rows} of {variables} each, for pf.combine.")
    if chosen == "gibbs":
        note("Drawn by Markov chains (gibbs): rows are only nearly independent.")
