"""`privfield demo`: a whole study on made-up people, in under a minute."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

from privfield.cli.arguments import options
from privfield.cli.terminal.console import as_typed, note, say, say_json

if TYPE_CHECKING:
    from pathlib import Path

    from privfield.models.ising import IsingModel

HELP = """Make 5,000 people up, plan, fit at ε = 1, report, and compare with the truth.

Example:  [bold]privfield demo[/bold]

Writes symptoms.csv, symptoms.toml, study.ledger, model.pf and report.html to a folder of its own.
"""
PEOPLE = 5000
_JOB = "demo"
SYMPTOMS = (
    *("low mood", "no interest", "poor sleep", "fatigue", "appetite", "guilt", "focus"),
    *("slowness", "worry", "restless"),
)
EDGES = {  # Ising weights of the truth; all other pairs are unrelated given the rest
    ("low mood", "no interest"): 0.45,
    ("low mood", "guilt"): 0.35,
    ("low mood", "worry"): 0.25,
    ("no interest", "slowness"): 0.25,
    ("poor sleep", "fatigue"): 0.5,
    ("poor sleep", "appetite"): 0.2,
    ("fatigue", "focus"): 0.35,
    ("fatigue", "slowness"): 0.3,
    ("guilt", "worry"): 0.3,
    ("worry", "restless"): 0.45,
    ("focus", "restless"): 0.2,
    ("slowness", "restless"): -0.3,
}


def demo(
    output: Annotated[
        str, options.output("FOLDER", "Where to write; made if it is not there.")
    ] = "privfield-demo",
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Everything once, on made-up people."""
    import numpy as np

    from privfield.cli.arguments.budget import in_words, left_in
    from privfield.cli.commands.learners import labelled, make_learner
    from privfield.cli.terminal.bars import bars
    from privfield.mechanisms.forecasting.choose import choose
    from privfield.mechanisms.forecasting.study import table_study
    from privfield.planning.plan import plan
    from privfield.privacy.budgets import ApproxDP
    from privfield.privacy.ledger import Ledger
    from privfield.reporting import write_report
    from privfield.schema import Schema

    folder = _folder(output, force)
    data, report = folder / "symptoms.csv", folder / "report.html"
    truth, schema = true_model(), Schema({name: ["no", "yes"] for name in SYMPTOMS})
    with bars("making people up") as progress:
        make_people(data, truth, np.random.default_rng())
        schema.write(folder / "symptoms.toml")
        budget = ApproxDP(1, 1e-6)
        forecast = plan(schema, PEOPLE, budget)
        ledger = Ledger(folder / "study.ledger", total=budget)
        common = {"budget": budget, "ledger": ledger, "job": _JOB, "progress": progress}
        study = table_study(data, schema, budget)
        learner = make_learner(choose(study).name, study, "auto", "auto", None, common)
        model = labelled(learner.fit(data).model_, schema)
        model.save(folder / "model.pf")
        write_report(model, report, progress=progress)
        compared = compare(model, truth)
    if json:
        say_json({"folder": str(folder), "report": str(report), **compared})
        return
    inside, edges, clear = compared["inside"], compared["pairs"], compared["clear"]
    say(f"Data     {data}: {PEOPLE:,} made-up people, {len(SYMPTOMS)} symptoms")
    say(f"Plan     {forecast.verdict}")
    say(f"Fit      {in_words(budget)} for one person; the ledger says: {left_in(ledger)} left")
    say(
        f"Truth    typical error of a link {compared['error']:.3f}; {inside} of {edges} intervals "
        f"hold the true one"
    )
    say(
        f"Links    {clear} called clear at 95%: {compared['clear_true']} of the {len(EDGES)} true "
        f"ones, and {clear - compared['clear_true']} of the {edges - len(EDGES)} absent ones"
    )
    say(f"Report   {report.absolute()}")
    question = "P(fatigue=yes | poor sleep=yes)"
    asked = f'privfield query {as_typed(folder / "model.pf")} "{question}"'
    note(f"Next: open the report, or ask: {asked}")


def _folder(output: str, force: bool) -> Path:
    from pathlib import Path

    from privfield.errors import InputError

    folder = Path(output)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--output: {output!r} is a file; a folder is needed.")
    if folder.is_dir() and any(folder.iterdir()) and not force:
        raise InputError(f"--output: the folder {output!r} is not empty. Add --force to use it.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--output: cannot make {output!r}: {error.strerror}.") from None
    forget_demo(folder / "study.ledger")  # every demo is a new study
    return folder


def forget_demo(path: Path) -> None:
    """Remove the ledger of an earlier demo; one that knows of anything else stays."""
    from privfield.errors import InputError
    from privfield.privacy.ledger import Ledger, NoLedger

    if not path.exists():
        return
    jobs: list[str] = []
    try:
        with suppress(NoLedger):
            jobs = [charge.job for charge in Ledger(path).charges()]
    except InputError:
        raise InputError(
            f"--output: {str(path)!r} is no ledger of a demo. Choose another folder."
        ) from None
    if jobs not in ([], [_JOB]):
        raise InputError(
            f"--output: {str(path)!r} is the ledger of a study, which remembers what was spent. "
            "Choose another folder."
        )
    path.unlink()


def true_model() -> IsingModel:
    """The model that the made-up people come from."""
    import numpy as np

    from privfield.models.ising import IsingModel

    weights = np.zeros((len(SYMPTOMS), len(SYMPTOMS)))
    for (first, second), weight in EDGES.items():
        i, j = SYMPTOMS.index(first), SYMPTOMS.index(second)
        weights[i, j] = weights[j, i] = weight
    return IsingModel(weights, np.full(len(SYMPTOMS), -0.25), SYMPTOMS)


def make_people(path: Path, truth: IsingModel, rng: Any) -> None:
    """A CSV file of people who have these symptoms or not."""
    from privfield.files import csv_bytes, write_bytes

    states = truth.sample(PEOPLE, rng, "independent")
    rows = [["yes" if value > 0 else "no" for value in row] for row in states]
    write_bytes(path, csv_bytes([SYMPTOMS, *rows]))


def compare(model: Any, truth: IsingModel) -> dict[str, Any]:
    """How far the links are from the true ones, and how often intervals hold them."""
    import numpy as np

    errors, inside, clear, right = [], 0, 0, 0
    edges = model.edges()
    for edge in edges:
        i, j = SYMPTOMS.index(edge.first), SYMPTOMS.index(edge.second)
        true = float(truth.weights[i, j])
        errors.append(edge.fitted - true)
        if edge.low is not None and edge.high is not None:
            inside += edge.low <= true <= edge.high
        if edge.verdict == "clear":
            clear += 1
            right += true * edge.estimate > 0
    return {
        "error": float(np.sqrt(np.mean(np.square(errors)))),
        "pairs": len(edges),
        "inside": int(inside),
        "clear": clear,
        "clear_true": int(right),
    }
