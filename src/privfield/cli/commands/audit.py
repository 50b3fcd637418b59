"""`privfield audit`: does this installation keep its privacy claims?"""

from __future__ import annotations

import typer

from privfield.cli.arguments import options
from privfield.cli.terminal.console import note, say, say_json
from privfield.cli.terminal.exit_codes import OUR_BUG, Stopped

HELP = """Check, on this machine, that each mechanism keeps its privacy claim. Needs no data.

Example:  [bold]privfield audit[/bold]

Watches what each mechanism draws on small worlds with all their neighbours, and tests the samplers
against half the noise. It takes a minute or two. Exits with 1 if any check fails. docs/privacy has
the proofs for all sizes.
"""


def audit(json: options.Json = False) -> None:
    """Run all checks, print a line for each."""
    from privfield.audit.run import NOT_AUDITED, audits, run_audit
    from privfield.cli.terminal.bars import bars

    with bars("auditing", {"auditing": len(audits())}) as progress:
        found = run_audit(progress)
    failed = [finding for finding in found if not finding.passed]
    if json:
        say_json(
            {
                "passed": not failed,
                "findings": [finding.to_json() for finding in found],
                "not_audited": NOT_AUDITED,
            }
        )
    else:
        width = max(len(finding.mechanism) for finding in found)
        for finding in found:
            mark = "ok    " if finding.passed else "FAILED"
            colour = typer.colors.GREEN if finding.passed else typer.colors.RED
            say(
                f"{typer.style(mark, fg=colour)}  {finding.mechanism:{width}}  claim: "
                f"{finding.claim}; {finding.observed}"
            )
        say(f"{len(found) - len(failed)} of {len(found)} checks passed.")
        say("What no audit can see: " + "; ".join(NOT_AUDITED) + ".")
    if failed:
        note("privfield: a privacy claim is not kept here. Do not release anything; report this.")
        raise Stopped(OUR_BUG)
