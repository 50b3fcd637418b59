"""`privfield query`: one probability, with its interval."""

from __future__ import annotations

from typing import Annotated

import typer

from privfield.cli.arguments import options
from privfield.cli.terminal.console import note, say, say_json, say_stamp

HELP = """Answer a question about a model. Costs no privacy.

Example:  [bold]privfield query model.pf "P(low mood=yes | age=40-65, worry=no)"[/bold]

The interval covers sampling and privacy noise together. There is none for variables that were not
counted together (two items on a scale have one), nor where the model file holds no measurements
that could tell. What noise hides altogether is "not measured".
"""


def query(
    model: options.ModelFile,
    question: Annotated[
        str, typer.Argument(metavar="QUESTION", help='Such as "P(low mood=yes | age=40-65)".')
    ],
    level: Annotated[float, options.between("L", "Of the interval.")] = 0.95,
    json: options.Json = False,
) -> None:
    """Ask, compute, answer."""
    from privfield.cli.arguments.files import load_field
    from privfield.cli.terminal.bars import bars
    from privfield.models.question import read_question

    found = load_field(model)
    asked = read_question(question, found.schema)
    with bars("computing"):
        answer = found.ask(question, level)
    if json:
        say_json(vars(answer))
        return
    say_stamp(found.stamp)
    if not answer.measured:
        say(f"{asked} is {answer.text}")
    elif answer.low is None or answer.high is None:
        say(f"{asked} = {answer.estimate:.4g}")
        note(f"{answer.note[:1].upper()}{answer.note[1:]}.")
    else:
        say(f"{asked} = {answer.text}")
