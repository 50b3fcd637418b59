"""Which way `privfield fit` goes, with which learner, and how its model is labelled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from privfield.errors import InputError
from privfield.mechanisms.forecasting.study import LEARNED, kind_of
from privfield.mechanisms.items.mechanism import check_items

if TYPE_CHECKING:
    from privfield.mechanisms.forecasting.forecast import Forecast
    from privfield.mechanisms.forecasting.study import Study
    from privfield.models.base import Model
    from privfield.privacy.budgets import Budget
    from privfield.schema import Schema

TABLES = ("auto", "naive-mle", "cgm")
REGRESSIONS = ("moments", "two-stage", "frank-wolfe", "pseudolikelihood")
ORDINAL = "ordinal"
SCORES = ("two-stage", ORDINAL)


def check_choices(method: str, schema: Schema, cliques: str | Sequence[Sequence[str]]) -> None:
    """Refuse what does not go together."""
    if method in TABLES:
        return
    if method not in (*REGRESSIONS, ORDINAL):
        legal = ", ".join((*TABLES, *REGRESSIONS, ORDINAL))
        raise InputError(f"--method must be one of {legal}; got {method!r}.")
    if cliques not in ("auto", "all-pairs"):
        raise InputError(f"--method {method} relates all pairs; leave out --cliques.")
    if schema.forbidden:
        raise InputError(
            f"--method {method} knows no forbidden combinations, and the schema has "
            f"{len(schema.forbidden)}. Use --method auto."
        )
    if method in SCORES:
        check_items(schema)
    if method == ORDINAL:
        return
    if method != "frank-wolfe" and any(size != 2 for size in schema.shape):
        raise InputError(
            f"--method {method} needs two levels of every variable. Use auto or frank-wolfe."
        )


def kind_for(
    method: str, schema: Schema, cliques: str | Sequence[Sequence[str]], budget: Budget
) -> str:
    """The kind of model that the options ask for."""
    if method == ORDINAL:
        return ORDINAL
    listed = None if cliques in ("auto", "learn") or method in REGRESSIONS else cliques
    free = method == "auto" and cliques == "auto"
    return kind_of(schema, listed, budget if free else None)


def ways_for(method: str, cliques: str | Sequence[Sequence[str]]) -> tuple[str, ...] | None:
    """The ways that the options leave open; None for all."""
    if method in (*REGRESSIONS, ORDINAL):
        return (method,)
    if cliques == "learn":
        return LEARNED
    if cliques != "auto":
        return ("tables",)
    return None if method == "auto" else ("tables", "selection", "stable")


def make_learner(
    way: str,
    study: Study,
    method: str,
    cliques: str | Sequence[Sequence[str]],
    max_bytes: float | None,
    common: dict[str, Any],
) -> Any:
    """The learner that goes that way."""
    if way in ("tables", "selection", "stable"):
        from privfield.learners.marginal import MarginalLearner

        size: dict[str, Any] = {} if max_bytes is None else {"max_bytes": max_bytes}
        asked: dict[str, Any] = {"cliques": "learn", "structure": way}
        if way == "tables":
            asked = {"cliques": "all-pairs" if isinstance(cliques, str) else cliques}
        estimate = method if method in TABLES else "auto"
        return MarginalLearner(method=estimate, schema=study.schema, **asked, **size, **common)
    if way == ORDINAL:
        from privfield.learners.ordinal import OrdinalLearner

        return OrdinalLearner(schema=study.schema, **common)
    if way not in ("moments", "two-stage") and not study.rows_are_public:
        common = {**common, "declared_rows": study.n}
    if study.is_binary:
        from privfield.learners.ising import IsingLearner

        return IsingLearner(method=way, schema=study.schema, **common)
    from privfield.learners.pairwise import PairwiseLearner

    return PairwiseLearner(method=way, schema=study.schema, **common)


def in_words(best: Forecast, study: Study, cliques: str | Sequence[Sequence[str]]) -> str:
    """What will be measured, known before any record is read."""
    from privfield.mechanisms.edges.forecast import NO_SEARCH
    from privfield.mechanisms.edges.schedule import candidate_pairs
    from privfield.mechanisms.edges.triples import candidate_triples
    from privfield.words import counted

    schema, way = study.rules, best.name
    pairs = len(schema) * (len(schema) - 1) // 2
    if best.note == NO_SEARCH:
        known = "" if study.rows_are_public else f", if there are about {study.n:,}"
        return f"noisy tables of {counted(len(schema), 'variable')}: {NO_SEARCH}{known}"
    if way == "selection":
        threes = not study.budget.is_pure and candidate_triples(
            schema.shape, candidate_pairs(schema.shape)
        )
        what = "pairs and small triples" if threes else "pairs"
        return f"noisy tables of {what} that are selected privately within this budget"
    if way == "stable":
        return "a graph, if it is stable, and noisy tables of its edges"
    if way in SCORES:
        return f"counts of levels and products of scores, with noise, for {_all(pairs)}"
    if way == "moments":
        return f"how often answers agree, with noise, for {_all(pairs)} (moments)"
    if way != "tables":
        return f"the steps of private regressions of every variable ({way})"
    if isinstance(cliques, str):
        alone = len(schema) == 1
        return "a noisy table of 1 variable" if alone else f"noisy tables of {_all(pairs)}"
    if len(cliques) == 1:
        size = len(cliques[0])
        return f"a noisy table of {_all(1) if size == 2 else counted(size, 'variable')}"
    if all(len(clique) == 2 for clique in cliques):
        every = "all " * (len(cliques) == pairs)
        return f"noisy tables of {every}{len(cliques):,} pairs of variables"
    return f"noisy tables of {len(cliques):,} sets of variables"


def _all(pairs: int) -> str:
    return "one pair of variables" if pairs == 1 else f"all {pairs:,} pairs of variables"


def labelled(model: Model, schema: Schema) -> Model:
    """The model with the schema's levels in place of −1 and +1, and all that it carries."""
    from privfield.models.card import attach
    from privfield.models.ising import SpinModel
    from privfield.models.mrf import MarkovRandomField

    if not isinstance(model, SpinModel):
        return model
    names = model.schema.names
    cliques = [[names[v] for v in clique] for clique in model.factors.cliques]
    same = MarkovRandomField(schema, cliques, model.factors.tables, stamp=model.stamp)
    return attach(same, model.card, model.measurements, model.solution, model.ended)
