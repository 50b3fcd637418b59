"""What a model says of itself: verdicts, answers, draws, centrality, figures, as in the report.

`Model.edges`, `Model.ask`, `Model.draws`, `Model.centrality` and `Model.plot` lead here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from privfield.checks import check_level
from privfield.errors import InputError
from privfield.estimation.items.edges import ItemUncertainty
from privfield.estimation.items.questions import two_items
from privfield.estimation.uncertainty.centrality import MOST_VARIABLES, centrality_of
from privfield.estimation.uncertainty.centrality_rows import Centrality
from privfield.estimation.uncertainty.counted import NOT_MEASURED, Answer, Counted, counted
from privfield.estimation.uncertainty.intervals import plain_edges, probability_from
from privfield.estimation.uncertainty.strengths import NEGLIGIBLE, Edges, check_negligible
from privfield.inference.contraction.plan import DEFAULT_MAX_BYTES
from privfield.mechanisms.items.sums import ItemSums, PooledItems
from privfield.models.base import Model
from privfield.models.network import NetworkIsing
from privfield.models.question import Question, read_question
from privfield.reporting.findings import known
from privfield.stamps import stamped

SIMULATED = 20_000  # rows, for models too large for exact answers
_ENOUGH = 500  # of them for a condition
_MOST_CLIQUES = 3000  # beyond, no model with a small treewidth is met in practice


def edges(model: Model, level: float = 0.95, negligible: float = NEGLIGIBLE) -> Edges:
    """One for each pair that was measured; without intervals where no law is known."""
    check_level(level)
    check_negligible(negligible)
    found = known(model)
    rows = plain_edges(model, level) if found is None else found.edges(level, negligible)
    return stamped(rows, model)


def ask(model: Model, question: str, level: float = 0.95) -> Answer:
    """A probability with its interval, where the variables were counted together."""
    return stamped(_answer(model, question, check_level(level)), model)


def _answer(model: Model, question: str, level: float) -> Answer:
    asked = read_question(question, model.schema)
    small = is_small(model)
    if small and asked.given and probability_from(model, asked.given, {}) == 0:
        raise InputError(f"query: the condition of {asked} has probability zero.")
    own = probability_from(model, asked.event, asked.given) if small else None
    if own == 0 and model.schema.forbidden:
        return Answer(0.0, 0.0, 0.0, level)
    found = counted(model, model.measurements)
    answer = None if found is None else _counted(found, asked, level)
    if answer is None and isinstance(model.measurements, ItemSums | PooledItems):
        answer = _of_items(model, asked, level)
    if answer is not None and answer.measured:
        return answer
    if answer is not None:
        note = NOT_MEASURED
    elif isinstance(model.measurements, ItemSums | PooledItems):
        note = "no interval: of items, it is known for one, and for two that have longer scales"
    elif found is not None:
        note = "no interval: these variables were not counted together"
    elif model.measurements is None:
        note = "no interval: the model holds no measurements that would tell"
    else:
        note = "no interval is known for this method"
    if own is None:
        own = _simulated(model, asked)
    if not small and note != NOT_MEASURED:
        note += f"; from {SIMULATED:,} simulated rows, so good to about two digits"
    return Answer(own, None, None, level, note)


def draws(model: Model, m: int, rng: np.random.Generator | None) -> tuple[Model, ...]:
    """Models that the released numbers leave possible."""
    found = known(model)
    if found is None:
        raise InputError(
            "draws: the model must hold noisy tables or moments, and not be too large: without "
            "them nothing is known about how far it may be off."
        )
    return found.draws(m, rng)


def centrality(model: Model, level: float = 0.95) -> Centrality:
    """Of each variable; with intervals where all pairs were measured well enough."""
    check_level(level)
    if isinstance(model, NetworkIsing) or len(model.schema) > MOST_VARIABLES:
        raise InputError(
            f"centrality is for models of up to {MOST_VARIABLES} variables; this one has "
            f"{len(model.schema):,}."
        )
    return stamped(centrality_of(model, known(model), level), model)


def plot(model: Model, path: str | os.PathLike[str] | None, kind: str, **options: Any) -> Any:
    """A figure, with matplotlib."""
    from privfield.reporting.figures import plot_model

    return plot_model(model, path, kind, **options)


def is_small(model: Model) -> bool:
    """Whether exact answers fit in memory."""
    if len(model._structure()[1]) > _MOST_CLIQUES:
        return False
    return model.inference_size().bytes <= DEFAULT_MAX_BYTES


def _counted(found: Counted, question: Question, level: float) -> Answer | None:
    """From the sums of variables that were counted together; of one level, as in the report."""
    if question.given or len(question.event) > 1:
        return found.probability(question.event, question.given, level)
    ((name, wanted),) = question.event.items()
    schema = found.model.schema
    share, code = found.marginals(level)[schema.index(name)], schema[name].code(wanted)
    if not share.measured:
        return Answer(share.estimate[code], None, None, level, NOT_MEASURED)
    if share.low is None or share.high is None:
        return None
    return Answer(share.estimate[code], share.low[code], share.high[code], level)


def _of_items(model: Model, question: Question, level: float) -> Answer | None:
    """Of two items on a scale, from the law of their weights and thresholds."""
    found, schema = known(model), model.schema
    if not isinstance(found, ItemUncertainty):
        return None
    event, given = (
        {schema.index(name): schema[name].code(wanted) for name, wanted in levels.items()}
        for levels in (question.event, question.given)
    )
    return two_items(found.law, event, given, level)


def _simulated(model: Model, question: Question) -> float:
    """The share among simulated rows, for models too large for anything else."""
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
