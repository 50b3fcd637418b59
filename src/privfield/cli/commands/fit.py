"""`privfield fit`: from a table to a model file. The step that spends."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privfield.cli.arguments import options
from privfield.cli.terminal.console import as_typed, note, say, say_json, say_stamp

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from privfield.cli.spending import Spending
    from privfield.mechanisms.forecasting.forecast import Forecast
    from privfield.mechanisms.forecasting.study import Study
    from privfield.models.base import Model
    from privfield.schema import Schema

HELP = """Learn a model of FILE under differential privacy. Shows the cost, then asks.

Example:  [bold]privfield fit data.csv --schema s.toml --epsilon 1 --delta 1e-6 -o model.pf[/bold]

Without --cliques and --method: what is expected to be best for this schema, budget and number of
rows, as `privfield plan` says. Methods: naive-mle and cgm estimate from noisy tables; moments,
two-stage (rare answers) and pseudolikelihood (all for two levels each), ordinal (scales) and
frank-wolfe relate all pairs. Everything after this command is free: report, query, sample, export.
"""


def fit(
    file: options.DataFile,
    schema: options.SchemaFile,
    output: Annotated[str, options.output("M", "The model file to write.")],
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    rho: options.Rho = None,
    cliques: Annotated[
        str,
        options.text(
            "C", "auto, all-pairs, learn, 'smoker,age; age,region', or a .json list of lists."
        ),
    ] = "auto",
    method: Annotated[
        str,
        options.text(
            "M",
            "auto, naive-mle, cgm, moments, two-stage, frank-wolfe, pseudolikelihood, ordinal.",
        ),
    ] = "auto",
    adjacency: options.Adjacency = "replace-one",
    ledger: options.LedgerFile = None,
    total: options.Total = None,
    job: options.Job = None,
    n: Annotated[
        int | None,
        typer.Option(
            "--n", metavar="N", parser=options.count, help="Rows, or a guess, for forecasts."
        ),
    ] = None,
    max_memory: Annotated[str | None, options.text("8GB", "What exact inference may use.")] = None,
    encoding: options.Encoding = None,
    spark: options.Spark = None,
    insecure_seed: options.Seed = None,
    yes: options.Yes = False,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Check, forecast, ask, spend, estimate, write."""
    from privfield.checks import check_bytes
    from privfield.cli.arguments.budget import read_budget
    from privfield.cli.arguments.cliques import read_cliques
    from privfield.cli.arguments.files import check_output, named_data, open_data, read_schema
    from privfield.cli.commands.learners import check_choices, kind_for, make_learner, ways_for
    from privfield.cli.spending import HOPELESS, Spending, warn_of_seed
    from privfield.cli.terminal.bars import bars
    from privfield.errors import InputError
    from privfield.mechanisms.edges.mechanism import check_number
    from privfield.mechanisms.forecasting.choose import forecasts, ranked
    from privfield.mechanisms.forecasting.study import table_study
    from privfield.planning.verdict import is_hopeless

    # everything that can be refused is refused before anybody is asked to spend
    budget = read_budget(epsilon, delta, rho)
    target = check_output(output, force)
    rules = read_schema(schema)
    if max(rules.shape) < 2:
        raise InputError("--schema: no variable has two levels, so there is nothing to learn.")
    wanted = read_cliques(cliques, rules)
    data = named_data(file, spark, encoding)
    open_data(file, rules, data)
    purse = Spending(ledger, total, job, budget, adjacency, target)
    check_choices(method, rules, wanted)
    size = None if max_memory is None else check_bytes(max_memory, "--max-memory")
    with purse.watch(None), bars("counting rows"):
        study = table_study(
            *(data, rules, budget, adjacency),
            declared_rows=n,
            model=kind_for(method, rules, wanted, budget),
            listed=None if isinstance(wanted, str) else tuple(map(rules.clique, wanted)),
            max_memory=size,
        )
        ways = ranked(forecasts(study, ways_for(method, wanted)), study)
        if wanted in ("auto", "learn") and (ways[0].name == "selection" or not ways[0].available):
            check_number(rules)  # before all pairs of very many variables are listed
    common: dict[str, Any] = {
        "budget": budget,
        "adjacency": adjacency,
        "job": purse.job,
        "insecure_seed": insecure_seed,
    }
    learner = make_learner(ways[0].name, study, method, wanted, size, common)
    doubt = HOPELESS if is_hopeless(ways[0], study) else ""
    with purse.watch(learner):
        warn_of_seed(insecure_seed)
        _show_offer(purse, file, study, ways[0], wanted)
        _show_forecast(ways, study, with_others=method == "auto" and wanted == "auto")
        _show_remarks(rules, study)
        totals = {} if study.guessed else {"counting": study.n}
        with purse.pay(learner, yes, totals=totals, doubt=doubt):
            model = _learn(learner, data, rules, target)
    if json:
        used = str(vars(learner).get("method_", method))
        say_json({"model": str(target), **_for_programs(model, used, learner, purse, ways[0])})
    else:
        _say_result(model, target, purse, hopeless=bool(doubt))


def _learn(learner: Any, data: Any, schema: Schema, target: Path) -> Model:
    """Charge, release, estimate, and write the model whole or not at all."""
    from privfield.cli.commands.learners import labelled
    from privfield.learners.base import attach_card

    learner.fit(data)
    if learner.model_.card is None:
        attach_card(learner)
    model = labelled(learner.model_, schema)
    model.save(target)
    return model


# -- before the charge -----------------------------------------------------------------------------


def _show_offer(purse: Spending, file: str, study: Study, best: Forecast, wanted: Any) -> None:
    """What will be spent, who is protected, and what is measured for it."""
    from privfield.cli.commands.learners import in_words

    own = study.rules.unit
    unit = "one row" if own is None else f"one person ({own.column})"
    note(f"This will spend  {purse.spending()}, for {unit} of {file} ({purse.adjacency})")
    note(f"Ledger           {purse.preview()}")
    note(f"Measured         {in_words(best, study, wanted)}")


def _show_forecast(ways: Sequence[Forecast], study: Study, with_others: bool) -> None:
    """What error, time and memory to expect, and, where there was a choice, of what else."""
    from privfield.planning.verdict import METRICS, passed_over, scales_alone, silence, verdict
    from privfield.words import bytes_text, duration_text

    best = ways[0]
    rows = f"{study.n:,} rows" if study.n > 1 else "at most one row"
    if study.guessed:
        rows = f"if there are about {rows} (say --n: their number is private)"
    if _expected_error(best) is None:
        note(f"Expected error   no forecast: {best.note or 'nothing to compare'}")
        return
    note(f"Expected error   {best.expected_error:.2g}: {METRICS[study.model][0]}, {rows}")
    note(f"                 {verdict(best, study)}")
    if silence(best):
        note(f"                 {silence(best)}")
    if with_others and scales_alone(study):
        for line in textwrap.wrap(scales_alone(study), 90):
            note(f"                 {line}")
    others = [each for each in ways[1:] if each.available and not each.asks][:3]
    if with_others and others:
        note(f"                 {_choice(best, others)}; `privfield plan` says more")
        for reason in passed_over((best, *others), study):
            for line in textwrap.wrap(reason, 90):
                note(f"                 {line}")
    note(
        f"Expected time    {duration_text(best.seconds)} on one core, with "
        f"{bytes_text(best.memory)} of memory"
    )


def _choice(best: Forecast, others: Sequence[Forecast]) -> str:
    """What was chosen, and not, with forecast errors."""
    from privfield.mechanisms.edges.forecast import NO_SEARCH
    from privfield.words import number_text

    listed = ", ".join(f"{each.name} {number_text(each.expected_error)}" for each in others)
    chosen = "single variables alone" if best.note == NO_SEARCH else best.name
    return f"Chosen: {chosen}, not {listed}"


def _expected_error(best: Forecast) -> float | None:
    """Of the way that is taken; None where there is no forecast."""
    return best.expected_error if best.available else None


def _show_remarks(schema: Schema, study: Study) -> None:
    """How odd values are read, and whether δ is too large, where the number of rows is known."""
    from privfield.cli.spending import remark_on_delta

    rules = sorted({v.unknown or "the nearest" for v in schema.variables})
    shown = ", ".join(rules[:4]) + (", …" if len(rules) > 4 else "")
    note(f"Odd values       are read as `unknown` ({shown}): `privfield check` counts them for you")
    if any(v.unknown is None and v.kind == "ordered" for v in schema.variables):
        note("                 Numbers off a scale, such as 99, are read like empty ones")
    if not study.guessed:
        remark_on_delta(study.first_budget, study.n)


# -- after it --------------------------------------------------------------------------------------


def _for_programs(
    model: Model, method: str, learner: Any, purse: Spending, best: Forecast
) -> dict[str, Any]:
    """The result as `--json` prints it."""
    card = model.card
    assert card is not None  # `_learn` attached one
    return {
        "stamp": model.stamp,
        "method": method,
        "variables": len(model.schema),
        "linked_in_model": model.graph().number_of_edges(),
        "solution": None if model.solution is None else model.solution.to_json(),
        "unit": card.unit,
        "adjacency": purse.adjacency,
        "budget": purse.budget.to_json(),
        "cost": None if model.stamp else learner.cost_.to_json(),  # nothing was protected
        "ledger": purse.summary(),
        "expected_error": _expected_error(best),
        "expected_seconds": best.seconds,
    }


def _say_result(model: Model, target: Path, purse: Spending, hopeless: bool) -> None:
    """What was written and promised, what is left, and what to do next."""
    from privfield.cli.arguments.budget import left_in
    from privfield.words import counted

    card = model.card
    assert card is not None
    say_stamp(model.stamp)
    found = f", {counted(model.graph().number_of_edges(), 'pair')} linked in the model"
    if hopeless:
        found = "; what is related is likely lost in noise"
    say(f"Wrote {target}: {counted(len(model.schema), 'variable')}{found}.")
    if not model.stamp:
        say(f"Promise: {card.promise()}.")
    if purse.ledger is not None:
        before = "" if purse.charged() else ", charged before"
        say(f"Ledger: {purse.path}, job {purse.job}{before}; {left_in(purse.ledger)} left.")
    if hopeless:
        note("Do not expect links to stand out: more rows or a larger budget are needed.")
    aim = "what there is" if hopeless else "which links stand out"
    note(f"Next, {aim}, at no further cost: privfield report {as_typed(target)} -o report.html")
