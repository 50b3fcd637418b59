"""`privfield peer`: how strongly neighbours' outcomes go together on a public network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from privfield.cli.arguments import options
from privfield.cli.terminal.console import note, say, say_json

HELP = """Estimate a peer effect: one sensitive outcome per node of a public network.

Example:  [bold]privfield peer edges.csv outcomes.csv --epsilon 1 -o peer.pf[/bold]

Outcomes are protected. The network is not: who is in it and who knows whom is taken as public.
EDGES has two columns of node names (CSV), or is GML, GraphML or Pajek; OUTCOMES has a node and its
outcome per line: 1/0, yes/no, true/false.
"""


def peer(
    edges: Annotated[str, typer.Argument(metavar="EDGES", help="The public network.")],
    outcomes: Annotated[str, typer.Argument(metavar="OUTCOMES", help="One outcome per node.")],
    output: Annotated[str, options.output("M", "The model file to write.")],
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    rho: options.Rho = None,
    field: Annotated[
        bool, typer.Option("--field", help="Estimate a tilt toward positive as well.")
    ] = False,
    method: Annotated[
        str, options.text("M", "auto, sufficient-statistic, local or objective-perturbation.")
    ] = "auto",
    scaling: Annotated[
        str, options.text("S", "laplacian, mean-degree, regular or none.")
    ] = "laplacian",
    missing: Annotated[str, options.text("error|negative", "Nodes without an outcome.")] = "error",
    prevalence: Annotated[
        float | None, options.positive("P", "A public guess of the share.")
    ] = None,
    bounds: Annotated[
        str | None, options.text("LOW,HIGH", "Where β is sought, such as -3,3; 0,5 if not given.")
    ] = None,
    ledger: options.LedgerFile = None,
    total: options.Total = None,
    job: options.Job = None,
    insecure_seed: options.Seed = None,
    yes: options.Yes = False,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Say what is protected, spend, estimate, write."""
    from privfield.cli.arguments.budget import read_budget
    from privfield.cli.arguments.files import check_output
    from privfield.cli.spending import Spending, warn_of_seed
    from privfield.data.network.read import read_network
    from privfield.data.sources.paths import check_data_path
    from privfield.errors import InputError
    from privfield.learners.base import attach_card
    from privfield.learners.peer import PeerEffect
    from privfield.privacy.released import cost_to_json

    budget = read_budget(epsilon, delta, rho)
    target = check_output(output, force)
    for path in (edges, outcomes):
        check_data_path(path)
    network = read_network(edges, scaling)
    purse = Spending(ledger, total, job, budget, "flip-outcome")
    warn_of_seed(insecure_seed)
    if insecure_seed is None:
        note("Protected: each outcome. Not protected: the network, and who is in it.")
    note(f"Spending  {purse.spending()}, for one outcome out of {network.nodes:,} (flip-outcome)")
    note(f"Ledger    {purse.preview()}")
    learner = PeerEffect(
        budget,
        method=method,
        scaling=scaling,
        field=field,
        missing=missing,
        prevalence=prevalence,
        bounds=_pair(bounds),
        job=purse.job,
        insecure_seed=insecure_seed,
    )
    with purse.watch(learner), purse.pay(learner, yes, always=False):
        _in_options(lambda: learner.fit(network, outcomes))
        if learner.model_ is None:
            raise InputError("--method: this method found no β; nothing was written.")
        if learner.model_.card is None:
            attach_card(learner)
        learner.model_.save(target)
    low, high = learner.interval_ or (None, None)
    if json:
        parameters = {} if learner.estimate_ is None else learner.estimate_.parameters
        say_json(
            {
                "beta": learner.beta_,
                "low": low,
                "high": high,
                "outside_the_model": learner.estimate_ is not None and learner.estimate_.outside,
                "level": learner.level,
                "parameters": {name: list(values) for name, values in parameters.items()},
                "model": str(target),
                "stamp": learner.stamp_,
                "protected": "outcomes",
                "not_protected": "edges",
                "adjacency": "flip-outcome",
                "cost": cost_to_json(learner.cost_),
                "ledger": purse.summary(),
            }
        )
        return
    text = learner.summary().replace("field=True", "--field")
    say(text.replace("bounds=(-3, 3)", "--bounds=-3,3"))
    note(f"Wrote {target}. Next, at no further cost: privfield report {target} -o report.html")


def _pair(text: str | None) -> tuple[float, float] | None:
    from privfield.errors import InputError

    if text is None:
        return None
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise InputError(f"--bounds must be two numbers such as -3,3; got {text!r}.") from None
    return low, high


def _in_options(run: Callable[[], object]) -> None:
    """Errors that speak of arguments in Python, as errors that speak of options."""
    from privfield.errors import InputError

    try:
        run()
    except InputError as error:
        text = str(error).replace('pass missing="negative"', "add --missing negative")
        if text.startswith("path: "):
            text = text.replace("path: ", "OUTCOMES: ", 1)
        raise InputError(text) from None
