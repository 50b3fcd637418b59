"""`privfield fit`: from a table to a model file. The step that spends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from privfield.cli.arguments import options
from privfield.cli.commands.learners import TABLES
from privfield.cli.terminal.console import note, say, say_json, say_stamp
from privfield.errors import InputError

if TYPE_CHECKING:
    from privfield.cli.spending import Spending
    from privfield.planning.forecast import Plan
    from privfield.privacy.budgets import Budget
    from privfield.schema import Schema

HELP = """Learn a model of FILE under differential privacy. Shows the cost, then asks.

Example:  [bold]privfield fit data.csv --schema s.toml --epsilon 1 --delta 1e-6 -o model.pf[/bold]

Without --cliques: all pairs of variables where exact inference fits in memory, otherwise pairs
selected privately within the same budget. Methods: auto, naive-mle and cgm estimate from noisy
tables; moments and pseudolikelihood (two levels each) and frank-wolfe are for sparse or large
networks. Everything after this command is free: report, query, sample, export.
"""


def add_to(app: typer.Typer) -> None:
    """Make this a command of the application."""
    app.command("fit", help=options.flow(HELP))(fit)


def fit(
    file: options.DataFile,
    schema: options.SchemaFile,
    output: Annotated[str, options.output("M", "The model file to write.")],
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    rho: options.Rho = None,
    cliques: Annotated[
        str,
        typer.Option(
            metavar="C",
            help="auto, all-pairs, learn, 'smoker,age; age,region', or a .json list of lists.",
        ),
    ] = "auto",
    method: Annotated[
        str,
        typer.Option(
            metavar="M", help="auto, naive-mle, cgm, moments, frank-wolfe, pseudolikelihood."
        ),
    ] = "auto",
    adjacency: options.Adjacency = "replace-one",
    ledger: options.LedgerFile = None,
    total: options.Total = None,
    job: options.Job = None,
    n: Annotated[
        int | None,
        typer.Option(
            "--n", metavar="N", parser=options.count, help="Rows, or a guess, for the forecast."
        ),
    ] = None,
    max_memory: Annotated[
        str | None, typer.Option(metavar="8GB", help="What exact inference may use.")
    ] = None,
    insecure_seed: options.Seed = None,
    yes: options.Yes = False,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Check, forecast, ask, spend, estimate, write."""
    from privfield.cli.arguments.budget import in_words, read_budget
    from privfield.cli.arguments.cliques import read_cliques
    from privfield.cli.arguments.files import check_output, open_data, read_schema
    from privfield.cli.arguments.sizes import public_rows, read_bytes_count
    from privfield.cli.commands.learners import in_words as in_words_of
    from privfield.cli.commands.learners import labelled, make_learner, selects
    from privfield.cli.spending import Spending, ask
    from privfield.cli.terminal.bars import bars
    from privfield.learners.base import attach_card
    from privfield.words import counted

    budget = read_budget(epsilon, delta, rho)
    target = check_output(output, force)
    rules = read_schema(schema)
    wanted = read_cliques(cliques, rules)
    table = open_data(file, rules)
    purse = Spending(ledger, total, job, budget, adjacency)
    common: dict[str, Any] = {
        "budget": budget,
        "adjacency": adjacency,
        "job": purse.job,
        "insecure_seed": insecure_seed,
    }
    learner = make_learner(method, rules, wanted, read_bytes_count(max_memory), common)
    with purse.watch(learner):
        if n is None:
            with bars("counting rows"):
                n = public_rows(table, adjacency)
        forecast = _forecast(rules, n, budget, adjacency, wanted, max_memory)
        if selects(learner, rules):
            forecast = None  # it depends on how sparse the data are
        expected = None if forecast is None else expected_error(forecast, method)
        _announce(file, rules, adjacency, purse, insecure_seed)
        note(f"Measured         {in_words_of(learner, rules)}")
        _promise_error(forecast, expected)
        _remind(rules)
        purse.check()
        ask(yes or purse.is_known)
        with bars("reading", {} if n is None else {"counting": n}) as progress:
            learner.set_params(ledger=purse.open(), progress=progress)
            learner.fit(file)
            if learner.model_.card is None:
                attach_card(learner)
            model = labelled(learner.model_, rules)
            card = model.card
            assert card is not None
            model.save(target)
    cost = learner.cost_
    edges = model.graph().number_of_edges()
    if json:
        say_json(
            {
                "model": str(target),
                "stamp": model.stamp,
                "method": str(vars(learner).get("method_", method)),
                "variables": len(rules),
                "edges": edges,
                "unit": card.unit,
                "adjacency": adjacency,
                "budget": budget.to_json(),
                "cost": cost.to_json(),
                "ledger": purse.summary(),
                "expected_error": expected,
            }
        )
        return
    say_stamp(model.stamp)
    say(f"Wrote {target}: {counted(len(rules), 'variable')}, {counted(edges, 'related pair')}.")
    if not model.stamp:
        say(f"Promise: {card.promise()}.")
    after = purse.summary()
    if after is not None and purse.ledger is not None:
        before = "" if after["jobs"] else ", charged before"
        left = in_words(purse.ledger.remaining)
        say(f"Ledger: {ledger}, job {purse.job}{before}; {left} left.")
    note(f"Next, at no further cost: privfield report {target} -o report.html")


def _forecast(
    schema: Schema,
    rows: int | None,
    budget: Budget,
    adjacency: str,
    cliques: Any,
    max_memory: str | None,
) -> Plan | None:
    """What `privfield plan` says; None without a public number of rows, or for odd schemas."""
    from privfield.planning.plan import plan

    if not rows:
        return None
    known = "auto" if isinstance(cliques, str) else cliques
    try:
        return plan(schema, rows, budget, adjacency=adjacency, cliques=known, max_memory=max_memory)
    except InputError:  # too odd to plan; whether it can be fitted is for the learner to say
        return None


def expected_error(forecast: Plan, method: str) -> float | None:
    """The forecast of the method that will be used, which need not be the recommended one."""
    wanted = "tables" if method in TABLES else method
    found = [each for each in forecast.methods if each.name == wanted and each.available]
    return found[0].expected_error if found else None


def _announce(file: str, schema: Schema, adjacency: str, purse: Spending, seed: int | None) -> None:
    from privfield.cli.spending import warn_of_seed

    unit = "one row" if schema.unit is None else f"one person ({schema.unit.column})"
    warn_of_seed(seed)
    note(f"This will spend  {purse.spending()}, for {unit} of {file} ({adjacency})")
    note(f"Ledger           {purse.preview()}")


def _promise_error(forecast: Plan | None, expected: float | None) -> None:
    if forecast is None or expected is None:
        note("Expected error   no forecast here; `privfield plan` with --n compares the methods")
        return
    note(f"Expected error   {expected:.2g}: {forecast.metric}, {forecast.n:,} rows")
    best = forecast.recommended
    if best.expected_error is not None and best.expected_error < 0.8 * expected:
        note(f"                 {best.expected_error:.2g} is expected of the method {best.name}")
    else:
        note(f"                 {forecast.verdict}")


def _remind(schema: Schema) -> None:
    rules = sorted({v.unknown or "the nearest" for v in schema.variables})
    shown = ", ".join(rules[:4]) + (", …" if len(rules) > 4 else "")
    note(
        f"Odd values       are read as the schema's `unknown` level ({shown}), never refused;\n"
        f"                 `privfield check` shows you how many there are"
    )
