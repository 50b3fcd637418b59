"""`privfield ledger`: what was spent, and what is left."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from privfield.cli.arguments import options
from privfield.cli.terminal.console import say, say_json, say_stamp

HELP = """Show what was charged to a ledger, and what is left.

The head is a hash of all charges and results so far. Write it down: a ledger that shows an earlier
one is an old copy.

Example:  [bold]privfield ledger study.ledger[/bold]
"""


def ledger(
    path: Annotated[str, typer.Argument(metavar="LEDGER", help="The ledger file.")],
    json: options.Json = False,
) -> None:
    """Open and show."""
    from privfield.cli.arguments.budget import in_words, left_in
    from privfield.cli.spending import about_ledger
    from privfield.errors import InputError
    from privfield.privacy.ledger import Ledger

    try:
        found = Ledger(path)
    except InputError as error:
        text = about_ledger(error, path).replace(
            "; to make one, give a total", "; `privfield fit --ledger` makes one"
        )
        raise InputError(f"LEDGER: {text}") from None
    left, charges = found.remaining, found.charges()
    spent = found.spent_epsilon
    if json:
        say_json(
            {
                "ledger": str(path),
                "total": found.total.to_json(),
                "adjacency": str(found.adjacency),
                "unit": found.unit,
                "stamp": found.stamp,
                "spent": found.spent.to_json(),
                "spent_epsilon": spent if math.isfinite(spent) else None,
                "remaining": None if left is None else left.to_json(),
                "remaining_epsilon": found.remaining_epsilons()[0],
                "head": found.head,
                "charges": [
                    {
                        "job": charge.job,
                        "what": charge.what,
                        "cost": charge.cost.to_json(),
                        "unit": charge.unit,
                        "time": charge.time,
                        "version": charge.version,
                    }
                    for charge in charges
                ],
            }
        )
        return
    say_stamp(found.stamp)
    say(f"Total      {in_words(found.total)}, for one {found.unit or 'row'} ({found.adjacency})")
    if math.isfinite(spent):
        delta = getattr(found.total, "delta", 0)
        at = f" at δ = {delta:g}" if delta else ""
        say(f"Spent      ε = {spent:.4g}{at}" if charges else "Spent      nothing")
    else:
        say(f"Spent      {in_words(found.spent)}")
    say(f"Remaining  {left_in(found)}")
    say(f"Head       {found.head}")
    for charge in charges:
        say(f"  {charge.time}  {in_words(charge.cost)}  {charge.what}  job {charge.job}")
