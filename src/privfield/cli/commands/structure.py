"""`privfield structure`: which variables are related, released only if it is stable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from privfield.cli.arguments import options
from privfield.cli.terminal.console import note, say, say_json, say_stamp
from privfield.cli.terminal.exit_codes import NOTHING_STABLE, Stopped
from privfield.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from privfield.cli.spending import Spending
    from privfield.learners.structure import StructureLearner
    from privfield.mechanisms.forecasting.study import Study

HELP = """Learn which variables of FILE are related; released only if it is stable.

Example:  [bold]privfield structure data.csv --schema s.toml --epsilon 1 --delta 1e-6
-o graph.csv[/bold]

Writes GraphML, JSON (networkx node-link) or CSV (one edge per line), by the suffix of -o. Where
nothing is stable enough, nothing is written, the exit code is 4, and the budget is spent.
"""
SUFFIXES = (".graphml", ".json", ".csv")


def structure(
    file: options.DataFile,
    schema: options.SchemaFile,
    output: Annotated[str, options.output("G", "The graph to write: .graphml, .json or .csv.")],
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    min_weight: Annotated[float, options.positive("W", "The weakest edge that matters.")] = 0.2,
    width: Annotated[float, options.positive("W", "Bound on Σ|weights| of a variable.")] = 2.0,
    method: Annotated[
        str, options.text("M", "regression, correlation or chow-liu.")
    ] = "regression",
    release: Annotated[
        str, options.text("R", "auto, edge-majority or mode: how blocks are counted.")
    ] = "auto",
    adjacency: options.Adjacency = "replace-one",
    ledger: options.LedgerFile = None,
    total: options.Total = None,
    job: options.Job = None,
    encoding: options.Encoding = None,
    insecure_seed: options.Seed = None,
    yes: options.Yes = False,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Check, announce, spend, write or say that there is nothing."""
    from privfield.cli.arguments.budget import read_budget
    from privfield.cli.arguments.files import check_output, named_data, open_data, read_schema
    from privfield.cli.spending import Spending, remark_on_delta, warn_of_seed
    from privfield.cli.terminal.bars import bars
    from privfield.learners.structure import StructureLearner
    from privfield.mechanisms.forecasting.study import table_study
    from privfield.models.export import write_graph

    budget = read_budget(epsilon, delta, None)
    if not delta:
        raise InputError(
            "--delta is missing: a stable release fails to protect with a small probability δ, "
            "such as 1e-6."
        )
    target = check_output(output, force, SUFFIXES)
    rules = read_schema(schema)
    data = named_data(file, encoding=encoding)
    open_data(file, rules, data)  # refuses what cannot be read
    purse = Spending(ledger, total, job, budget, adjacency, target)
    learner = StructureLearner(
        budget,
        width=width,
        min_weight=min_weight,
        method=method,
        schema=rules,
        adjacency=adjacency,
        job=purse.job,
        insecure_seed=insecure_seed,
        release=release,
    )
    warn_of_seed(insecure_seed)
    note(f"Spending  {purse.spending()} on the graph of {file} ({adjacency})")
    note(f"Ledger    {purse.preview()}")
    with purse.watch(learner):
        if method == "regression":
            with bars("counting rows"):
                study = table_study(
                    *(data, rules, budget, adjacency),
                    model="structure",
                    min_weight=min_weight,
                    width=width,
                )
            note(f"Expected  {_forecast(study, release)}")
            if not study.guessed:
                remark_on_delta(budget, study.n)
        with purse.pay(learner, yes, always=False):
            learner.fit(data)
            graph = learner.graph_
            if graph is not None:
                write_graph(graph, target, target.suffix.lower()[1:])
    if json:
        say_json(_for_programs(learner, target, purse))
    else:
        _say_result(learner, target)
    if graph is None:
        raise Stopped(NOTHING_STABLE)


def _for_programs(learner: StructureLearner, target: Path, purse: Spending) -> dict[str, Any]:
    """The result as `--json` prints it."""
    from privfield.privacy.released import cost_to_json

    graph, stamp = learner.graph_, learner.release_.stamp
    return {
        "graph": None if graph is None else str(target),
        "stamp": stamp,
        "edges": None if graph is None else [list(edge) for edge in graph.edges],
        "cost": None if stamp else cost_to_json(learner.cost_),  # nothing was protected
        "ledger": purse.summary(),
        "advice": _in_options(learner.advice_),
    }


def _say_result(learner: StructureLearner, target: Path) -> None:
    """What was written, or that nothing was; and what an empty graph does not mean."""
    from privfield.cli.arguments.budget import in_words
    from privfield.words import counted

    graph, stamp = learner.graph_, learner.release_.stamp
    if graph is None:
        advice = _in_options(learner.advice_)
        note(f"privfield: {advice} The budget is spent, and no file was written.")
        return
    say_stamp(stamp)
    say(
        f"Wrote {target}: {counted(graph.number_of_nodes(), 'variable')}, "
        f"{counted(graph.number_of_edges(), 'edge')}."
    )
    if not stamp:
        say(f"Spent: {in_words(learner.cost_)}.")
    if not graph.number_of_edges():
        note(
            "No edge does not mean that nothing is related: where rows are too few, or "
            f"relations weaker\nthan --min-weight {learner.min_weight:g}, the answer is the same. "
            "`privfield plan --model structure` says how many rows are enough."
        )


def _forecast(study: Study, release: str) -> str:
    """What `privfield plan` says about this way of release, and about a better one."""
    from privfield.mechanisms.forecasting.choose import choose
    from privfield.mechanisms.graphs.block_plan import RULES
    from privfield.words import share_text

    if study.guessed:
        return "no forecast here; `privfield plan --model structure` has one for a guess of --n"
    own = choose(study, RULES if release == "auto" else (release,))
    if own.success is None:
        return f"no forecast: {own.note}"
    chance = share_text(own.success)
    text = f"the whole graph, all right, with a chance of {chance} ({study.n:,} rows)"
    best = choose(study)
    if best.success is not None and best.success > own.success + 0.1:
        text += f"; {share_text(best.success)} with {best.name}: see `privfield plan`"
    return text


def _in_options(advice: str | None) -> str | None:
    """Advice for Python as advice for the command line."""
    if advice is None:
        return None
    call = "pf.MarginalLearner(budget, cliques='learn')"
    advice = advice.replace(call, "privfield fit --cliques learn")
    return advice.replace("min_weight = ", "min_weight ").replace("min_weight", "--min-weight")
