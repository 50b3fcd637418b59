"""From a question to a plan: all methods, the best of them, and what would have to change."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from privfield.planning.bounds import lower_bounds
from privfield.planning.forecast import MethodForecast, Plan
from privfield.planning.reference import typical_size
from privfield.planning.request import MOST_ROWS, Request, is_pure
from privfield.planning.words import budget_call, bytes_text, number_text, rows_text
from privfield.privacy.budgets import ZCDP, ApproxDP, Budget, PureDP

Method = Callable[[Request], MethodForecast]

_METRICS = {
    "ising": ("typical error of a coupling (RMS)", "largest error of a coupling"),
    "pairwise": ("total variation of a table, mean over tables",) * 2,
    "polynomial": ("typical error of a coefficient (RMS)", "largest error of a coefficient"),
    "structure": ("chance of a wrong graph, or of none",) * 2,
    "chain": ("total variation of a row of the chain, mean over rows",) * 2,
    "peer": ("typical error of β, for an effect of about 0.5",) * 2,
}
_DELTA = 1e-6  # offered where a budget has none


def methods_for(model: str, binary: bool) -> list[Method]:
    """Forecasts of every learner for that kind of model."""
    if model in ("ising", "pairwise", "structure", "polynomial"):
        return _methods_for_tables(model, binary)
    if model == "chain":
        from privfield.mechanisms.chains.forecast import chain

        return [chain]
    from privfield.mechanisms.peers.forecast import objective, statistic

    return [statistic, objective]


def _methods_for_tables(model: str, binary: bool) -> list[Method]:
    from privfield.mechanisms.frank_wolfe import forecast as regressions
    from privfield.mechanisms.frank_wolfe.forecast_pairwise import pairwise_frank_wolfe
    from privfield.mechanisms.gradients import forecast as couplings
    from privfield.mechanisms.graphs import forecast as graphs
    from privfield.mechanisms.parities import forecast as parities
    from privfield.mechanisms.tables import forecast as tables

    if model == "ising":
        return [
            couplings.moments,
            tables.tables,
            couplings.pseudolikelihood,
            regressions.ising_frank_wolfe,
        ]
    if model == "pairwise":
        return [tables.tables, pairwise_frank_wolfe]
    if model == "structure":
        stable: list[Method] = [graphs.edge_majority, graphs.mode]
        return [*stable, graphs.threshold] if binary else stable
    return [regressions.polynomial_frank_wolfe, parities.gaussian, parities.pmw, parities.sepfem]


def make_plan(request: Request) -> Plan:
    """Run all forecasts and say what follows from them."""
    methods = methods_for(request.model, set(request.shape) == {2})
    found = [_within_memory(method(request), request) for method in methods]
    order = sorted(range(len(found)), key=lambda place: _rank(found[place], place))
    best = methods[order[0]]
    forecasts = tuple(found[place] for place in order)
    needed_n = needed_budget = None
    if request.accuracy is not None and forecasts[0].available:
        needed_n, needed_budget = rows_needed(best, request), budget_needed(best, request)
    from privfield.planning.table1 import live_table

    table, notes = live_table(request)
    metric, target = _METRICS[request.model]
    return Plan(
        model=request.model,
        variables=request.variables,
        levels=request.shape,
        n=request.n,
        budget=request.budget,
        adjacency=request.adjacency,
        unit=request.unit,
        metric=metric,
        target=target,
        assumption=_assumption(request),
        methods=forecasts,
        verdict=_verdict(forecasts[0], request),
        advice=tuple(_advice(best, forecasts, request, needed_n, needed_budget)),
        accuracy=request.accuracy,
        min_weight=request.min_weight,
        width=request.width,
        needed_n=needed_n,
        needed_budget=needed_budget,
        max_memory=request.max_memory,
        bounds=lower_bounds(request),
        table=table,
        table_notes=notes,
    )


def _within_memory(found: MethodForecast, request: Request) -> MethodForecast:
    if request.max_memory is None or not found.available or found.memory <= request.max_memory:
        return found
    note = f"needs {bytes_text(found.memory)}, above max_memory"
    return replace(found, available=False, note=note)


def _rank(found: MethodForecast, place: int) -> tuple[bool, float, int]:
    """Available first; then by target error, where a tenth makes no difference."""
    error = target_error(found)
    steps = math.inf if error is None else round(math.log(max(error, 1e-12)) / math.log(1.1))
    return not found.available, steps, place


def target_error(found: MethodForecast) -> float | None:
    """What `accuracy` is compared with."""
    return found.largest_error


# -- what would have to change ---------------------------------------------------------------------


def rows_needed(method: Method, request: Request) -> int | None:
    """The fewest rows that reach the accuracy, by bisection on the forecast; None if none do."""
    if request.network is not None:
        return None  # another number of nodes would be another network

    def reached(n: int) -> bool:
        return _reaches(method(replace(request, n=n)), request.accuracy)

    low, high = 0, 1
    while not reached(high):
        low, high = high, 4 * high
        if high > MOST_ROWS:
            return None
    while high - low > max(1, high // 1000):
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def budget_needed(method: Method, request: Request) -> Budget | None:
    """The smallest budget of the same kind, and the same δ, that reaches the accuracy."""

    def reached(power: float) -> bool:
        budget = scaled(request.base, 2.0**power)
        return _reaches(method(replace(request, budget=budget)), request.accuracy)

    low, high = -20.0, 20.0
    if not reached(high):
        return None
    if reached(low):
        return scaled(request.base, 2.0**low)
    while high - low > 0.01:
        middle = (low + high) / 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return scaled(request.base, 2.0**high)


def scaled(budget: Budget, factor: float) -> Budget:
    """The same kind of budget with ε, or ρ, so many times as large, to three digits."""

    def grown(value: float) -> Fraction:
        return Fraction(f"{min(max(value * factor, 1e-9), 1e6):.3g}")

    if isinstance(budget, PureDP):
        return PureDP(grown(budget.epsilon))
    if isinstance(budget, ApproxDP):
        return ApproxDP(grown(budget.epsilon), budget.exact_delta)
    return ZCDP(grown(budget.rho))


def _reaches(found: MethodForecast, accuracy: float | None) -> bool:
    error = target_error(found)
    return error is not None and accuracy is not None and error <= accuracy


# -- in words --------------------------------------------------------------------------------------


def noise_over_sampling(found: MethodForecast) -> float | None:
    """How large the error by noise is beside that by sampling, in the metric."""
    if found.plain_error is None or not found.sampling_error:
        return None
    return math.sqrt(max(0.0, (found.plain_error / found.sampling_error) ** 2 - 1))


def _verdict(best: MethodForecast, request: Request) -> str:
    if not best.available:
        return "None of the methods can be used as asked."
    if request.model == "structure":
        assert best.success is not None
        chance = f"about {best.success:.0%}"
        if not 0.005 < best.success < 0.995:
            chance = "above 99%" if best.success > 0.5 else "below 1%"
        return f"The right graph comes out with a chance of {chance}."
    ratio = noise_over_sampling(best)
    assert ratio is not None
    if _drowned(best, request):
        return "The noise leaves next to nothing to learn: more rows or a larger budget are needed."
    for most, text in (
        (0.3, "next to nothing beside sampling error"),
        (0.75, "less than sampling error"),
        (1.5, "about as much as sampling error"),
        (2.5, "about twice as much as sampling error"),
    ):
        if ratio <= most:
            return f"Privacy costs {text}."
    return f"Privacy costs about {ratio:,.0f} times as much as sampling error."


def _drowned(best: MethodForecast, request: Request) -> bool:
    """Whether the estimate would be little better than saying that nothing is connected."""
    if best.expected_error is None or request.model not in ("ising", "polynomial"):
        return False
    size = typical_size(request.variables, request.coupling)
    return best.expected_error > 0.85 * size


def _assumption(request: Request) -> str:
    if request.model == "chain":
        return (
            f"Assumed: {float(request.limit):g} transitions a person, all states visited about "
            "equally, no state nearly certain to follow another."
        )
    if request.model == "peer":
        return "Assumed: β of about 0.5 or less; stronger effects are usually estimated better."
    edge = f"{request.coupling:g}"
    if request.listed:
        return f"Assumed: every clique matters, with log-potentials of about {edge}."
    return (
        f"Assumed: each variable has about two neighbours, with couplings of about ±{edge}; "
        "all others are 0."
    )


def _advice(
    best: Method,
    forecasts: tuple[MethodForecast, ...],
    request: Request,
    needed_n: int | None,
    needed_budget: Budget | None,
) -> list[str]:
    found = []
    if request.accuracy is not None and forecasts[0].available:
        found.append(_change(best, forecasts[0], request, needed_n, needed_budget))
    if is_pure(request.budget) and forecasts[0].available:
        found.extend(_with_delta(best, forecasts[0], request))
    tables = next((each for each in forecasts if each.name == "tables"), None)
    if tables is not None and "nothing" in tables.note:
        found.append(f"Tables: {tables.note}. {_instead(request)}")
    if tables is not None and not tables.available and request.model == "pairwise":
        found.append(_smaller(request))
    return found


def _instead(request: Request) -> str:
    ways = ["an (ε, δ) budget"] if is_pure(request.budget) else ["a larger budget"]
    if set(request.shape) == {2}:
        ways.append("moments")
    return f"Better: {', '.join([*ways, 'or fewer tables'])}."


def _change(
    best: Method,
    forecast: MethodForecast,
    request: Request,
    needed_n: int | None,
    needed_budget: Budget | None,
) -> str:
    error = target_error(forecast)
    assert error is not None
    _, target = _METRICS[request.model]
    what = f"To reach {request.accuracy:g} ({target})"
    rows = None if needed_n is None else f"n = {rows_text(needed_n)}"
    spend = None if needed_budget is None else budget_call(needed_budget).removeprefix("pf.")
    ways = [way for way in (rows, spend) if way is not None]
    if error <= (request.accuracy or 0):
        enough = f"; {' or '.join(ways)} would do" if ways else ""
        return f"{what}: this is enough{enough}."
    if not ways:
        alone = number_text(forecast.sampling_error)
        return f"{what}: no budget is enough; without privacy the error is {alone}."
    if spend is None:
        return f"{what}: {rows}; no budget is enough for n = {request.n:,}."
    return f"{what}: {' or '.join(ways)}."


def _with_delta(best: Method, forecast: MethodForecast, request: Request) -> list[str]:
    """What a small δ would buy."""
    assert isinstance(request.budget, PureDP | ApproxDP)
    other = ApproxDP(request.budget.exact_epsilon, Fraction(_DELTA).limit_denominator(10**7))
    there = best(replace(request, budget=other))
    if there.noise_sd is None or forecast.noise_sd is None:
        return []
    if there.noise_sd > forecast.noise_sd / 1.3:
        return []
    return [
        f"With a small δ, {budget_call(other).removeprefix('pf.')}, the noise falls from "
        f"±{number_text(forecast.noise_sd)} to ±{number_text(there.noise_sd)} and the error to "
        f"{number_text(there.expected_error)}."
    ]


def _smaller(request: Request) -> str:
    from privfield.planning.sizes import inference_size

    size = inference_size(request)
    least = "" if size.complete else "at least "
    path = tuple(pairwise(range(request.variables)))
    tree = inference_size(replace(request, cliques=path)).bytes
    return (
        f"Tables of these cliques: exact inference needs {least}{bytes_text(size.bytes)} "
        f"(treewidth {least}{size.treewidth}). What fits: fewer or smaller cliques (a tree of "
        f'{len(path)} pairs takes {bytes_text(tree)}), coarser levels, or cliques="learn".'
    )
