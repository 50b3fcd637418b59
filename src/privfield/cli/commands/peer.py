"""`privfield peer`: how strongly neighbours' outcomes go together on a public network."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privfield.cli.arguments import options
from privfield.cli.terminal.console import as_typed, note, say, say_json

if TYPE_CHECKING:
    from privfield.cli.spending import Spending
    from privfield.data.network.public import PublicNetwork
    from privfield.learners.peer import PeerEffect
    from privfield.privacy.budgets import Budget

HELP = """Estimate a peer effect: one sensitive outcome per node of a public network.

Example:  [bold]privfield peer edges.csv outcomes.csv --epsilon 1 -o peer.pf[/bold]

Outcomes are protected. The network is not: who is in it and who knows whom is taken as public.
EDGES has two columns of node names (CSV), or is GML, GraphML or Pajek; OUTCOMES has a node and its
outcome per line. Numbers above 0 and the words yes, true, y and t count as positive, everything
else as negative, an empty cell too; with --positive ja the values it names count as positive, and
nothing else. A node that is not listed stops the command, unless --missing negative reads it as
negative: right for a list of positives. Outcomes of people who are not in the network are ignored:
without contacts they say nothing about the effect.
"""
METHODS = ("auto", "sufficient-statistic", "local", "objective-perturbation")
_FILES = {"graph": "EDGES", "outcomes": "OUTCOMES"}  # what Python calls them, and the help
_MISSING = {"ignore": "ignore", "negative": "negative", "refuse": "error"}  # as in Python


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
        str, options.text("M", f"{', '.join(METHODS[:-1])} or {METHODS[-1]}.")
    ] = "auto",
    scaling: Annotated[
        str, options.text("S", "laplacian, mean-degree, regular or none.")
    ] = "laplacian",
    missing: Annotated[
        str,
        options.text(
            "ignore|negative|refuse",
            "ignore: outcomes of people outside the network; negative: nodes that are not listed "
            "are read so as well; refuse: stop at either.",
        ),
    ] = "ignore",
    positive: Annotated[
        list[str] | None,
        options.text("V", "The values that count as positive, such as ja or 2, or ja,positiv."),
    ] = None,
    prevalence: Annotated[
        float | None, options.between("P", "A public guess of the share.")
    ] = None,
    bounds: Annotated[
        str | None, options.text("LOW,HIGH", "Where β is sought, such as -3,3; 0,5 if not given.")
    ] = None,
    encoding: options.Encoding = None,
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
    from privfield.cli.arguments.files import check_output, in_options
    from privfield.cli.arguments.options import as_options
    from privfield.cli.spending import HOPELESS, Spending, remark_on_delta, warn_of_seed
    from privfield.data.network.edge_files import read_edge_file
    from privfield.data.network.outcomes import open_outcomes, read_outcome_file
    from privfield.data.network.read import read_network
    from privfield.data.sources.encodings import check_encoding
    from privfield.data.sources.paths import check_data_path, nearby
    from privfield.errors import InputError
    from privfield.learners.base import attach_card
    from privfield.learners.peer import PeerEffect

    budget = read_budget(epsilon, delta, rho)
    if method not in METHODS:
        raise InputError(f"--method must be one of {', '.join(METHODS)}; got {method!r}.")
    if missing not in _MISSING:
        raise InputError(f"--missing must be one of {', '.join(_MISSING)}; got {missing!r}.")
    target = check_output(output, force)
    for path in (edges, outcomes):
        check_data_path(path)
    with in_options():
        letters = check_encoding("utf-8" if encoding is None else encoding)
    with _in_options("EDGES"):
        network = read_network(read_edge_file(edges, encoding=letters), scaling)
    if not Path(outcomes).exists():  # said before what would be spent
        raise InputError(f"OUTCOMES: there is no file {outcomes!r}.{nearby(outcomes)}")
    purse = Spending(ledger, total, job, budget, "flip-outcome", target)
    warn_of_seed(insecure_seed)
    if insecure_seed is None:
        note("Protected: each outcome. Not protected: the network, and who is in it.")
    note(f"Spending  {purse.spending()}, for one outcome out of {network.nodes:,} (flip-outcome)")
    note(f"Ledger    {purse.preview()}")
    counting = _positive(positive)
    note(f"Outcomes  {_outcome_rule(counting)}")
    remark_on_delta(budget, network.nodes)
    learner = PeerEffect(
        budget,
        method=method,
        scaling=scaling,
        field=field,
        missing=_MISSING[missing],
        positive=counting,
        prevalence=prevalence,
        bounds=_pair(bounds),
        job=purse.job,
        insecure_seed=insecure_seed,
    )
    with purse.watch(learner), _in_options():
        listed = read_outcome_file(outcomes, network.names, letters)
        if not purse.is_known:  # names are public: they are looked at before anybody is asked
            open_outcomes(listed, network.names, _MISSING[missing])
        if missing == "ignore":
            _tell_strangers(len(listed.keys() - set(network.names)))
        doubt = HOPELESS if _is_hopeless(network, budget) else ""
        with purse.pay(learner, yes, doubt=doubt):
            learner.fit(network, listed)
            if learner.model_ is None:
                raise InputError("--method: this method found no β; nothing was written.")
            if learner.model_.card is None:
                attach_card(learner)
            learner.model_.save(target)
    if json:
        say_json(_for_programs(learner, target, purse))
        return
    say(as_options(learner.summary().replace("bounds=(-3, 3)", "--bounds=-3,3")))
    command = f"privfield report {as_typed(target)} -o report.html"
    note(f"Wrote {target}. Next, at no further cost: {command}")


def _for_programs(learner: PeerEffect, target: Path, purse: Spending) -> dict[str, Any]:
    """The result as `--json` prints it."""
    from privfield.privacy.released import cost_to_json

    low, high = learner.interval_ or (None, None)
    found = learner.estimate_
    parameters = {} if found is None else found.parameters
    return {
        "beta": learner.beta_,
        "low": low,
        "high": high,
        "outside_the_model": found is not None and found.outside,
        "nothing_learned": found is not None and found.unlimited,
        "ranges": [] if found is None else [list(ends) for ends in found.pieces],
        "notes": [] if found is None else list(found.messages),
        "level": learner.level,
        "parameters": {name: list(values) for name, values in parameters.items()},
        "model": str(target),
        "stamp": learner.stamp_,
        "protected": "outcomes",
        "not_protected": "edges",
        "adjacency": "flip-outcome",
        "cost": None if learner.stamp_ else cost_to_json(learner.cost_),
        "ledger": purse.summary(),
    }


def _is_hopeless(network: PublicNetwork, budget: Budget) -> bool:
    """Whether even the best method would say next to nothing."""
    from privfield.errors import InputError
    from privfield.mechanisms.forecasting.choose import choose
    from privfield.mechanisms.forecasting.networks import facts_of
    from privfield.mechanisms.forecasting.study import Study
    from privfield.planning.verdict import is_hopeless
    from privfield.privacy.adjacency import Adjacency

    try:
        facts = facts_of(network)
    except InputError:  # no edges
        return True
    study = Study("peer", network.nodes, budget, Adjacency.FLIP_OUTCOME, network=facts)
    return is_hopeless(choose(study), study)


def _positive(given: list[str] | None) -> list[str] | None:
    from privfield.errors import InputError

    if not given:
        return None
    values = [value.strip() for text in given for value in text.split(",")]
    if not all(values):
        raise InputError("--positive must name values, such as --positive ja or ja,positiv.")
    return values


def _outcome_rule(positive: list[str] | None) -> str:
    """Which values count as positive: a rule for each outcome that everybody may know."""
    if positive is None:
        return (
            "numbers above 0, yes, true, y and t count as positive, everything else as negative; "
            "--positive says otherwise"
        )
    *more, last = map(repr, positive)
    listed = f"{', '.join(more)} and {last} count" if more else f"{last} counts"
    return f"{listed} as positive, all else as negative"


def _pair(text: str | None) -> tuple[float, float] | None:
    from privfield.errors import InputError

    if text is None:
        return None
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise InputError(f"--bounds must be two numbers such as -3,3; got {text!r}.") from None
    return low, high


def _tell_strangers(count: int) -> None:
    from privfield.words import counted

    if count:
        note(
            f"Ignored   {counted(count, 'outcome')} of people outside the network: without "
            "contacts they say nothing about β"
        )


@contextmanager
def _in_options(file: str = "OUTCOMES") -> Iterator[None]:
    """Errors that speak of arguments in Python, as errors that speak of options."""
    from privfield.errors import InputError

    try:
        yield
    except InputError as error:
        text = str(error).replace("(-3, 3)", "-3,3").replace("pass missing", "add missing")
        text = text.replace("' (a str)", "'").replace("read them as −1", "read them as negative")
        text = re.sub("^path: ", f"{file}: ", text)
        text = re.sub(r"^(graph|outcomes)(?=:| is| has)", lambda word: _FILES[word[1]], text)
        raise InputError(text) from None
