"""The one choice: which way is expected to do a study best.

`pf.plan`, every learner with "auto" and the command line ask here, so they cannot disagree. All of
it depends on public numbers alone.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from privfield.mechanisms.forecasting.forecast import NEAR, Answers, Forecast
from privfield.mechanisms.forecasting.study import Study
from privfield.mechanisms.registry import MECHANISMS
from privfield.words import bytes_text

_MISSED = 0.05  # of the edges: a share that makes no difference
_UNSEEN = 1.5  # times its forecast: selection does not see the weak relations of real tables
_COSTLY = 1.5  # times the error of selection: tables in which more edges show are too noisy
_RULED = 1.5  # times the expected error: plain errors from which on noise rules
_PLAIN = 0.45  # the power of plain errors by which real ones grow from there on
_FEW = 1_000  # rows that there may be where nobody says how many
_SPARSE = (Answers.SOME_PAIRS, Answers.GRAPH)  # what rests on most pairs having no edge
_EDGES = ("ising", "ordinal", "structure")  # studies that are about edges


def choose(study: Study, among: Collection[str] | None = None) -> Forecast:
    """The best way, of all or of those named; if none can be used, the first, which says why."""
    return ranked(forecasts(study, among), study)[0]


def forecasts(study: Study, among: Collection[str] | None = None) -> Iterator[Forecast]:
    """Of every mechanism that fits the study, in the order of the registry."""
    among = study.open if among is None else among
    kinds: Sequence[Any] = MECHANISMS
    for mechanism in kinds:
        for model, way in mechanism.ways:
            if model == study.model and (among is None or way in among):
                yield _within_memory(mechanism.forecast(study, way), study)


def forecast_of(study: Study, way: str) -> Forecast:
    """Of one way by name."""
    return next(forecasts(study, (way,)))


def ranked(found: Iterable[Forecast], study: Study) -> list[Forecast]:
    """The best first, and then the best of the rest."""
    left, order = list(found), []
    while left:
        best = _best(left, study.model in _EDGES)
        adaptive = [each for each in left if each.available and each.alone_error is not None]
        if adaptive and _is_doubtful(best, study):
            best = _best(adaptive, edges=False)
        left.remove(best)
        order.append(best)
    return order


def _is_doubtful(found: Forecast, study: Study) -> bool:
    """Whether single variables alone would err less, should there be few rows: nobody said how many
    there are. Selection sees it, and spends the budget accordingly; all pairs at once do not."""
    if not study.guessed or found.answers is not Answers.EVERYTHING:
        return False
    few = {each.name: each for each in forecasts(replace(study, n=_FEW), (found.name, "selection"))}
    alone = few["selection"].alone_error
    return alone is not None and _error(few[found.name], edges=False) > alone


def target_error(found: Forecast) -> float:
    """What `accuracy` is compared with."""
    return math.inf if found.largest_error is None else found.largest_error


def _error(found: Forecast, edges: bool) -> float:
    """What ways are compared by.

    Forecasts of tables know how far to shrink. Real variables lean to one side by unknown amounts,
    and where noise rules, all pair tables at once were between shrunk and plain errors. Selection
    that finds little is not worse than single variables alone.
    """
    if found.expected_error is None:
        return math.inf
    if found.answers in _SPARSE:
        alone = math.inf if found.alone_error is None else found.alone_error
        return min(found.expected_error * _UNSEEN, alone)
    if edges or found.answers is not Answers.EVERYTHING or not found.expected_error:
        return found.expected_error
    ruled = (found.plain_error or 0.0) / (_RULED * found.expected_error)
    return found.expected_error * math.pow(max(1.0, ruled), _PLAIN)


def _best(found: Sequence[Forecast], edges: bool) -> Forecast:
    """The least error; within a tenth, what answers more questions, what finds more edges, and what
    comes first in the registry.

    A way that selects pairs leaves the others unmeasured. One that measures all of them goes first
    if it would find more edges at no more than 1.5 times the error; where the study is about edges,
    if it would find as many. Nothing is taken that errs more than single variables alone would.
    """
    usable = [each for each in found if each.available and not each.asks]
    usable = usable or [each for each in found if each.available] or list(found)
    alone = [each.alone_error for each in usable if each.alone_error is not None]
    usable = [each for each in usable if _error(each, edges) <= min(alone, default=math.inf)]
    least = min(_error(each, edges) for each in usable)
    near = [each for each in usable if _error(each, edges) <= NEAR * least]
    best = max(near, key=lambda each: (each.answers, round(_found(each), 2), -_queries(each)))
    if best.answers not in _SPARSE:
        return best
    more = [each for each in usable if each.answers is Answers.EVERYTHING and each.available]
    enough = _found(best) + (-_MISSED if edges else _MISSED)
    most = math.inf if edges else _COSTLY * _error(best, edges)
    more = [each for each in more if _found(each) > enough and _error(each, edges) <= most]
    return _best(more, edges) if more else best


def _found(each: Forecast) -> float:
    return 0.0 if each.found is None else each.found


def _queries(found: Forecast) -> float:
    """The error of answers to queries, in steps of a tenth."""
    if found.query_error is None:
        return math.inf
    return round(math.log(max(found.query_error, 1e-12)) / math.log(NEAR))


def _within_memory(found: Forecast, study: Study) -> Forecast:
    if study.max_memory is None or not found.available or found.memory <= study.max_memory:
        return found
    note = f"needs {bytes_text(found.memory)}, above max_memory"
    return replace(found, available=False, note=note)
