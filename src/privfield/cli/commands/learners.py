"""Which learner `privfield fit` uses, and how its model is labelled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from privfield.errors import InputError

if TYPE_CHECKING:
    from privfield.models.base import Model
    from privfield.schema import Schema

TABLES = ("auto", "naive-mle", "cgm")
REGRESSIONS = ("moments", "frank-wolfe", "pseudolikelihood")


def make_learner(
    method: str,
    schema: Schema,
    cliques: str | Sequence[Sequence[str]],
    max_bytes: int | None,
    common: dict[str, Any],
) -> Any:
    """Noisy tables by default; Ising and pairwise learners where `method` names theirs."""
    if method in TABLES:
        from privfield.learners.marginal import MarginalLearner

        size: dict[str, Any] = {} if max_bytes is None else {"max_bytes": max_bytes}
        return MarginalLearner(cliques=cliques, schema=schema, method=method, **size, **common)
    if method not in REGRESSIONS:
        legal = ", ".join((*TABLES, *REGRESSIONS))
        raise InputError(f"--method must be one of {legal}; got {method!r}.")
    if cliques not in ("auto", "all-pairs"):
        raise InputError(f"--method {method} relates all pairs; leave out --cliques.")
    if schema.forbidden:
        raise InputError(
            f"--method {method} knows no forbidden combinations, and the schema has "
            f"{len(schema.forbidden)}. Use --method auto."
        )
    if all(size == 2 for size in schema.shape):
        from privfield.learners.ising import IsingLearner

        return IsingLearner(method=method, schema=schema, **common)
    if method == "frank-wolfe":
        from privfield.learners.pairwise import PairwiseLearner

        return PairwiseLearner(method=method, schema=schema, **common)
    raise InputError(
        f"--method {method} needs two levels of every variable. Use auto or frank-wolfe."
    )


def in_words(learner: Any, schema: Schema) -> str:
    """What a learner will measure, known before any record is read."""
    from privfield.learners.marginal import MarginalLearner
    from privfield.words import counted

    if not isinstance(learner, MarginalLearner):
        return f"what the method {learner.method} needs"
    cliques = learner._cliques(schema)
    if cliques is None:
        return "noisy tables of pairs that are selected privately within this budget"
    if all(len(clique) == 2 for clique in cliques):
        every = len(cliques) == len(schema) * (len(schema) - 1) // 2
        if len(cliques) == 1:
            return "a noisy table of one pair of variables"
        return f"noisy tables of {'all ' * every}{len(cliques):,} pairs of variables"
    if len(cliques) == 1:
        return f"a noisy table of {counted(len(cliques[0]), 'variable')}"
    return f"noisy tables of {len(cliques):,} sets of variables"


def selects(learner: Any, schema: Schema) -> bool:
    """Whether it will choose pairs privately."""
    from privfield.learners.marginal import MarginalLearner

    return isinstance(learner, MarginalLearner) and learner._cliques(schema) is None


def labelled(model: Model, schema: Schema) -> Model:
    """The model with the schema's levels in place of −1 and +1, its card and measurements kept."""
    from privfield.models.card import attach
    from privfield.models.ising import SpinModel
    from privfield.models.mrf import MarkovRandomField

    if not isinstance(model, SpinModel):
        return model
    names = model.schema.names
    cliques = [[names[v] for v in clique] for clique in model.factors.cliques]
    same = MarkovRandomField(schema, cliques, model.factors.tables, stamp=model.stamp)
    return attach(same, getattr(model, "card", None), getattr(model, "measurements", None))
