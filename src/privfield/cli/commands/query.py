"""`privfield query`: one probability, with its interval."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from privfield.cli.arguments import options
from privfield.cli.terminal.console import note, say, say_json, say_stamp
from privfield.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.random import Generator

    from privfield.estimation.uncertainty.bootstrap import Bootstrap
    from privfield.models.base import Model
    from privfield.models.question import Question
    from privfield.progress import ProgressCallback

HELP = """Answer a question about a model. Costs no privacy.

Example:  [bold]privfield query model.pf "P(low mood=yes | age=40-65, worry=no)"[/bold]

The interval covers sampling and privacy noise together; there is none where the model file holds no
measurements that could tell.
"""
SIMULATED = 20_000  # rows, for models too large for exact answers
_ENOUGH = 500  # of them for a condition
_MOST_CLIQUES = 3000  # beyond, no model with a small treewidth is met in practice
REPLICATES = 40  # simulated studies, where the delta method is ruled out


def query(
    model: options.ModelFile,
    question: Annotated[
        str, typer.Argument(metavar="Q", help='Such as "P(low mood=yes | age=40-65)".')
    ],
    level: Annotated[float, options.positive("L", "Of the interval.")] = 0.95,
    json: options.Json = False,
) -> None:
    """Ask, compute, answer."""
    from privfield.cli.arguments.files import load_field
    from privfield.cli.terminal.bars import bars
    from privfield.models.question import read_question

    if not 0 < level < 1:
        raise InputError(f"--level must lie between 0 and 1; got {level:g}.")
    found = load_field(model)
    asked = read_question(question, found.schema)
    with bars("computing", {"simulated studies": REPLICATES}) as progress:
        if is_small(found):
            estimate, low, high = answer(found, asked, level, progress)
        else:
            estimate, low, high = simulated(found, asked), None, None
    if json:
        value: dict[str, Any] = {"estimate": estimate, "low": low, "high": high}
        if found.stamp:
            value["stamp"] = found.stamp
        say_json(value)
        return
    say_stamp(found.stamp)
    if low is None or high is None:
        say(f"{asked} = {estimate:.4g}")
        if is_small(found):
            note("No interval: the model file holds no measurements that would tell.")
        else:
            note(
                f"From {SIMULATED:,} simulated rows, so good to about two digits, and without an "
                "interval:\nthe model is too large for exact answers."
            )
    else:
        say(f"{asked} = {estimate:.4g} ({low:.4g} to {high:.4g}, {level:.0%})")


def is_small(model: Model) -> bool:
    """Whether exact answers fit in memory."""
    from privfield.inference.contraction.plan import DEFAULT_MAX_BYTES

    if len(model._structure()[1]) > _MOST_CLIQUES:
        return False
    return model.inference_size().bytes <= DEFAULT_MAX_BYTES


def simulated(model: Model, question: Question) -> float:
    """The share among simulated rows, for models too large for anything else."""
    import numpy as np

    from privfield.models.network import NetworkIsing

    method = "auto" if isinstance(model, NetworkIsing) else "gibbs"
    states = model.sample(SIMULATED, np.random.default_rng(0), method=method)
    codes = (states > 0).astype(np.uint8) if states.dtype.kind == "i" else states

    def where(levels: Mapping[str, str]) -> Any:
        schema, found = model.schema, np.ones(len(codes), bool)
        for name, level in levels.items():
            found &= codes[:, schema.index(name)] == schema[name].code(level)
        return found

    given = where(question.given)
    if given.sum() < _ENOUGH:
        raise InputError(
            f"query: the condition of {question} is too rare to be simulated, and the model is too "
            "large for exact answers."
        )
    return float(where(question.event)[given].mean())


def answer(
    model: Model,
    question: Question,
    level: float = 0.95,
    progress: ProgressCallback | None = None,
) -> tuple[float, float | None, float | None]:
    """The probability and, where the model's measurements tell, the ends of its interval."""
    import numpy as np

    from privfield.estimation.uncertainty.bootstrap import probability_from

    if question.given and probability_from(model, question.given, {}) == 0:
        raise InputError(f"query: the condition of {question} has probability zero.")
    estimate = probability_from(model, question.event, question.given)
    measurements = getattr(model, "measurements", None)
    if measurements is None:
        return estimate, None, None
    from privfield.estimation.uncertainty.delta_method import uncertainty

    found = uncertainty(model, measurements)
    if found is not None and not question.given and len(question.event) == 1:
        ((name, wanted),) = question.event.items()  # the report's interval of that level
        share = found.marginals(level)[model.schema.index(name)]
        if share.low is not None and share.high is not None:
            code = model.schema[name].code(wanted)
            return estimate, min(estimate, share.low[code]), max(estimate, share.high[code])
    rng = np.random.default_rng(0)  # the same question has the same answer
    if found is not None:
        interval = found.probability(question.event, question.given, level, rng)
    else:
        draws = _simulated_studies(measurements, rng, progress)
        if draws is None:
            return estimate, None, None
        interval = draws.probability(question.event, question.given, level)
    return estimate, min(estimate, float(interval.low)), max(estimate, float(interval.high))


def _simulated_studies(
    measurements: Any, rng: Generator, progress: ProgressCallback | None
) -> Bootstrap | None:
    """Models as they would come out again, where the delta method is ruled out."""
    from privfield.estimation.uncertainty.bootstrap import bootstrap
    from privfield.mechanisms.tables.measurements import Measurements

    if not isinstance(measurements, Measurements):
        return None
    try:
        return bootstrap(measurements, replicates=REPLICATES, rng=rng, progress=progress)
    except InputError:  # too large for exact inference
        return None
