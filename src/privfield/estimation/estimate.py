"""`pf.estimate`: a model from released tables. It never sees data and costs no privacy."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

from privfield.errors import InputError
from privfield.estimation.chains import estimate_chain
from privfield.estimation.items.law import law_of
from privfield.estimation.moments.matching import match_moments
from privfield.estimation.parities import polynomial_from_parities
from privfield.estimation.tables.cgm import cgm, check_cgm
from privfield.estimation.tables.interactions import among_answered, interactions
from privfield.estimation.tables.naive import check_naive, naive_mle
from privfield.estimation.tables.shrinkage import shrink
from privfield.estimation.trajectories import (
    ising_from_trajectory,
    mrf_from_sgd,
    pairwise_from_trajectory,
    polynomial_from_trajectory,
)
from privfield.inference.contraction.plan import DEFAULT_MAX_BYTES
from privfield.mechanisms.chains.measurements import ChainMeasurements
from privfield.mechanisms.edges.selection import Selection
from privfield.mechanisms.edges.stable import StableSelection
from privfield.mechanisms.frank_wolfe.trajectory import Trajectory
from privfield.mechanisms.gradients.pseudolikelihood import PseudolikelihoodTrajectory
from privfield.mechanisms.gradients.sgd import SGDTrajectory
from privfield.mechanisms.graphs.release import StructureRelease
from privfield.mechanisms.items.sums import ItemSums, PooledItems
from privfield.mechanisms.moments.moments import Moments
from privfield.mechanisms.parities.answers import ParityAnswers
from privfield.mechanisms.parities.phases import PolynomialPhases
from privfield.mechanisms.peers.release import NetworkRelease
from privfield.mechanisms.scores.score import ReleasedScore
from privfield.mechanisms.tables.measurements import Measurements
from privfield.models.card import attach
from privfield.models.ising import IsingModel
from privfield.models.mrf import MarkovRandomField
from privfield.models.ordinal import OrdinalModel
from privfield.privacy.released import Released
from privfield.progress import ProgressCallback, tell

_OPTIONS = {
    "auto": (),
    "naive-mle": ("ridge", "project"),
    "cgm": ("iterations", "e_step", "damping"),
}
_NO_MODEL: dict[type, str] = {  # what was released, and why it gives no model
    ParityAnswers: "answers to parity queries alone say nothing about larger sets; "
    "released.answer(…) gives them, pf.PolynomialLearner a model.",
    StructureRelease: "a graph has no probabilities; measure tables of its edges (pf.measure), or "
    "use pf.MarginalLearner(budget, cliques='learn', structure='stable').",
    ReleasedScore: "a log-likelihood says how good a model is; it gives none.",
    NetworkRelease: "statistics of one network need the network, which is public but not part of "
    "them; pf.PeerEffect estimates the effect with it.",
}


def estimate(
    released: Released,
    method: str = "auto",
    *,
    inference: str = "exact",
    max_bytes: float = DEFAULT_MAX_BYTES,
    progress: ProgressCallback | None = None,
    **options: Any,
) -> Any:
    """The graphical model that released numbers speak for: post-processing, free of privacy cost.

    `released` is anything that was released: noisy tables, moments, trajectories, chains, selected
    edges. Of noisy tables, `method` is

    * "auto": every interaction is shrunk as far as the noise demands. Nothing to tune.
    * "naive-mle": the tables taken as they are. Options: `ridge`, `project`.
    * "cgm": expectation–maximisation over the unknown true tables. Options: `iterations`,
      `e_step` ("dual" or "nlbp"), `damping`.

    Chains have "auto", "naive" and "cgm", moments "auto", "exact" and "sampled", without options;
    everything else has "auto" alone. What has no model of its own says why.

    The model keeps what it was estimated from, so that `model.edges()` and `model.ask(...)` have
    intervals. Where the total is private it is estimated from the tables. `inference="loopy"`
    replaces exact inference where that needs more than `max_bytes`; it is never chosen for you.

    >>> import numpy as np, privfield as pf
    >>> schema = pf.Schema({"smoker": ["no", "yes"], "cough": ["no", "yes"]})
    >>> m = pf.Measurements.from_tables(
    ...     schema, [("smoker", "cough")], [[[612, 88], [171, 132]]], noise="laplace", scale=4)
    >>> pf.estimate(m).condition({"smoker": "yes"}).marginal(["cough"]).round(1).tolist()
    [0.6, 0.4]
    """
    found = model_of(released, How(method, inference, max_bytes, progress, options))
    return attach(found, measurements=released)


@dataclass(frozen=True)
class How:
    """What `estimate` was asked for beside the released numbers."""

    method: str
    inference: str
    max_bytes: float
    progress: ProgressCallback | None
    options: dict[str, Any]

    def tell(self, stage: str, done: int | None = None) -> None:
        """News of progress."""
        tell(self.progress, stage, done)

    def only(self, what: str, *methods: str) -> str:
        """The method, if it is one of these; no options are known here."""
        if self.method not in methods or self.options:
            legal = ", ".join(map(repr, methods))
            asked = ", ".join([f"method={self.method!r}", *self.options])
            raise InputError(f"{what} can be estimated with method {legal}; got {asked}.")
        return self.method


@singledispatch
def model_of(released: Any, how: How) -> Any:
    """By kind of release; a new kind registers itself here."""
    if isinstance(released, Released):
        why = next((text for kind, text in _NO_MODEL.items() if isinstance(released, kind)), None)
        name = type(released).__name__
        raise InputError(f"released: {why or f'{name} has no model of its own.'}")
    raise InputError(
        f"released must be something that was released, such as pf.Measurements; "
        f"got {type(released).__name__}."
    )


@model_of.register
def _(released: Measurements, how: How) -> MarkovRandomField:
    check_method(how.method, how.options)
    if not released.cliques:
        raise InputError("released holds no table; measure at least one clique.")
    common: dict[str, Any] = {"inference": how.inference, "max_bytes": how.max_bytes}
    _warn_of_small_total(released)
    if how.method != "auto" and released.schema.has_gaps:
        raise InputError(
            f"method={how.method!r} knows no gaps as a level of their own; "
            'use method="auto", or a schema that reads them as an answer (missing).'
        )
    if how.method == "naive-mle":
        how.tell("maximum likelihood")
        return naive_mle(released, **common, **how.options)
    if how.method == "cgm":
        return cgm(
            released, tell=lambda done: how.tell("EM iterations", done), **common, **how.options
        )
    parts = among_answered(interactions(released))
    found = shrink(parts, stamp=released.stamp, tell=how.tell, **common)
    found.tell_if_wrong()
    return attach(found.model, solution=found.solution)


@model_of.register(Selection)
@model_of.register(StableSelection)
def _(released: Selection | StableSelection, how: How) -> Any:
    return model_of(released.measurements, how)


@model_of.register
def _(released: Moments, how: How) -> IsingModel:
    found = match_moments(
        released,
        shrinkage=released.noise != "none",
        method=how.only("moments", "auto", "exact", "sampled"),
        progress=how.progress,
    )
    return found.told()


@model_of.register(ItemSums)
@model_of.register(PooledItems)
def _(released: ItemSums | PooledItems, how: How) -> OrdinalModel:
    how.only("scores of items", "auto")
    law = law_of(released, how.progress)
    if law.is_lost and released.total != 0 and released.rows > 1:
        warnings.warn(
            "The model is farther from the released scores than noise explains: it has no "
            "intervals, and its weights may mean nothing. It may help to merge rare levels, or to "
            "leave out items that say nearly the same.",
            stacklevel=2,
        )
    return attach(law.field.model(law.mean), ended=law.ended)


@model_of.register
def _(released: PseudolikelihoodTrajectory, how: How) -> IsingModel:
    how.only("a path of noisy gradients", "auto")
    weights, field = released.parameters()
    return IsingModel(weights, field, released.names, stamp=released.stamp)


@model_of.register
def _(released: SGDTrajectory, how: How) -> MarkovRandomField:
    how.only("a path of private SGD", "auto")
    return mrf_from_sgd(released)


@model_of.register
def _(released: Trajectory, how: How) -> Any:
    how.only("a path of Frank–Wolfe", "auto")
    known = {
        "Ising": ising_from_trajectory,
        "pairwise": pairwise_from_trajectory,
        "polynomial": polynomial_from_trajectory,
    }
    if released.kind not in known:
        raise InputError(
            f"released: {released.kind} regressions are no joint distribution; their coefficients "
            "are released.weights()."
        )
    return known[released.kind](released)


@model_of.register
def _(released: PolynomialPhases, how: How) -> Any:
    how.only("regressions with parities", "auto")
    return polynomial_from_parities(released.trajectory, released.answers)[0]


@model_of.register
def _(released: ChainMeasurements, how: How) -> Any:
    return estimate_chain(released, how.only("a chain", "auto", "naive", "cgm"))


def check_method(method: object, options: Mapping[str, Any]) -> None:
    """Refuse a method or option that does not exist; learners ask before they spend anything."""
    if not isinstance(method, str) or method not in _OPTIONS:
        raise InputError(f"method must be one of {', '.join(map(repr, _OPTIONS))}; got {method!r}.")
    if not isinstance(options, Mapping):
        raise InputError(f"options must be a dict of names; got {type(options).__name__}.")
    for name in options:
        if name not in _OPTIONS[method]:
            legal = ", ".join(_OPTIONS[method]) or "none"
            raise InputError(f"method={method!r} has no option {name!r}; it has {legal}.")
    if method == "naive-mle":
        check_naive(**options)
    if method == "cgm":
        check_cgm(**options)


def _warn_of_small_total(measurements: Measurements) -> None:
    if measurements.total is None or measurements.total < 1:
        total = interactions(measurements).total
        if total < 1:
            warnings.warn(
                f"The noisy total is {total:.1f}: there is next to nothing to learn from, and the "
                "model stays close to uniform. More people or a larger budget would help.",
                stacklevel=5,
            )
