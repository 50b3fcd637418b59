"""`pf.estimate`: a model from released tables. It never sees data and costs no privacy."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, overload

from privfield.errors import InputError
from privfield.inference.contraction.plan import DEFAULT_MAX_BYTES
from privfield.mechanisms.tables.measurements import Measurements
from privfield.models.mrf import MarkovRandomField
from privfield.progress import Progress, ProgressCallback

if TYPE_CHECKING:
    from privfield.mechanisms.chains.measurements import ChainMeasurements
    from privfield.models.chain import ChainModel

_OPTIONS = {
    "auto": (),
    "naive-mle": ("ridge", "project"),
    "cgm": ("iterations", "e_step", "damping"),
}


@overload
def estimate(
    measurements: Measurements,
    method: str = ...,
    *,
    inference: str = ...,
    max_bytes: float = ...,
    progress: ProgressCallback | None = ...,
    **options: Any,
) -> MarkovRandomField: ...


@overload
def estimate(measurements: ChainMeasurements, method: str = ...) -> ChainModel: ...


def estimate(
    measurements: Measurements | ChainMeasurements,
    method: str = "auto",
    *,
    inference: str = "exact",
    max_bytes: float = DEFAULT_MAX_BYTES,
    progress: ProgressCallback | None = None,
    **options: Any,
) -> MarkovRandomField | ChainModel:
    """The graphical model that the noisy tables speak for: post-processing, free of privacy cost.

    * "auto": every interaction is shrunk as far as the noise demands. Nothing to tune.
    * "naive-mle": the tables taken as they are. Options: `ridge`, `project`.
    * "cgm": expectation–maximisation over the unknown true tables. Options: `iterations`,
      `e_step` ("dual" or "nlbp"), `damping`.

    Measurements of `pf.ChainLearner` give a `pf.ChainModel` again; its methods are "auto", "naive"
    and "cgm", without options.

    Where the total is private it is estimated from the tables. `inference="loopy"` replaces exact
    inference where that needs more than `max_bytes`; it is never chosen for you.

    >>> import numpy as np, privfield as pf
    >>> schema = pf.Schema({"smoker": ["no", "yes"], "cough": ["no", "yes"]})
    >>> m = pf.Measurements.from_tables(
    ...     schema, [("smoker", "cough")], [[[612, 88], [171, 132]]], noise="laplace", scale=4)
    >>> pf.estimate(m).condition({"smoker": "yes"}).marginal(["cough"]).round(2).tolist()
    [0.56, 0.44]
    """
    from privfield.mechanisms.chains.measurements import ChainMeasurements

    if isinstance(measurements, ChainMeasurements):
        from privfield.estimation.chains import estimate_chain

        return estimate_chain(measurements, method)
    if not isinstance(measurements, Measurements):
        raise InputError(
            f"measurements must come from pf.measure or pf.Measurements; "
            f"got {type(measurements).__name__}."
        )
    check_method(method, options)
    if not measurements.cliques:
        raise InputError("measurements hold no table; measure at least one clique.")
    common: dict[str, Any] = {"inference": inference, "max_bytes": max_bytes}

    def tell(stage: str, done: int | None = None) -> None:
        if progress is not None:
            progress(Progress(stage, done))

    _warn_of_small_total(measurements)
    if method == "naive-mle":
        from privfield.estimation.tables.naive import naive_mle

        tell("maximum likelihood")
        return naive_mle(measurements, **common, **options)
    if method == "cgm":
        from privfield.estimation.tables.cgm import cgm

        return cgm(measurements, tell=lambda done: tell("EM iterations", done), **common, **options)
    from privfield.estimation.tables.interactions import interactions
    from privfield.estimation.tables.shrinkage import shrink

    parts = interactions(measurements)
    found = shrink(parts, stamp=measurements.stamp, tell=tell, **common)
    found.tell_if_wrong()
    return found.model


def check_method(method: object, options: Mapping[str, Any]) -> None:
    """Refuse a method or option that does not exist; learners ask before they spend anything."""
    if not isinstance(method, str) or method not in _OPTIONS:
        raise InputError(f"method must be one of {', '.join(map(repr, _OPTIONS))}; got {method!r}.")
    for name in options:
        if name not in _OPTIONS[method]:
            legal = ", ".join(_OPTIONS[method]) or "none"
            raise InputError(f"method={method!r} has no option {name!r}; it has {legal}.")
    if method == "naive-mle":
        from privfield.estimation.tables.naive import check_naive

        check_naive(**options)
    if method == "cgm":
        from privfield.estimation.tables.cgm import check_cgm

        check_cgm(**options)


def _warn_of_small_total(measurements: Measurements) -> None:
    from privfield.estimation.tables.interactions import interactions

    if measurements.total is None or measurements.total < 1:
        total = interactions(measurements).total
        if total < 1:
            warnings.warn(
                f"The noisy total is {total:.1f}: there is next to nothing to learn from, and the "
                "model stays close to uniform. More people or a larger budget would help.",
                stacklevel=3,
            )
