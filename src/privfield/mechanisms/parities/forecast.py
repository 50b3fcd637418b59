"""Forecasts for t-wise models: Frank–Wolfe, and answers to parity queries.

The two-phase learner spends one share of ρ on regressions and one on the means of all products of
up to t − 1 variables. Its error for maximal monomials of order t is that of the regressions; the
answers serve monomials of lower order.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from privfield.mechanisms.frank_wolfe.forecast import (
    frank_wolfe,
    learner_call,
    polynomial_regressions,
    rho_of,
)
from privfield.planning.forecast import MethodForecast
from privfield.planning.reference import largest_of
from privfield.planning.request import Request
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import ZCDP

_PMW_VARIABLES = 20
_MOST_PARITIES = 1 << 22


def query_share() -> float:
    """The share of ρ that `pf.PolynomialLearner` spends on parity queries."""
    from privfield.mechanisms.parities.phases import QUERY_SHARE

    return float(QUERY_SHARE)


def two_phases(request: Request, queries: str) -> MethodForecast:
    """`pf.PolynomialLearner(objective="linf", queries=…)`."""
    share = query_share()
    extra = f'order={request.order}, width={request.width:g}, queries="{queries}"'
    if not request.rows_are_public:
        extra += f", declared_rows={request.n}"
    call = learner_call(request, "PolynomialLearner", extra)
    alone = frank_wolfe(request, polynomial_regressions(request), call)
    if not alone.available:
        return replace(alone, name=queries)
    rest = replace(request, budget=ZCDP(request.budget.exact_rho * (1 - Fraction(share))))
    found = frank_wolfe(rest, polynomial_regressions(request), call)
    parities = sum(math.comb(request.variables, size) for size in range(1, request.order))
    error, bound, rounds = _ANSWERS[queries](request, share * rho_of(request), parities)
    memory = max(found.memory, 8.0 * 2**request.variables if queries == "pmw" else 0.0)
    note = f"{parities:,} parities; their largest error about {error:.2g}" if error else ""
    if queries == "sepfem":
        note = f"{parities:,} parities; no constant is proved for their error, none is forecast"
    late = queries == "pmw" and request.variables > _PMW_VARIABLES
    many = parities > _MOST_PARITIES
    return replace(
        found,
        name=queries,
        query_error=error,
        bound=bound if bound is not None else found.bound,
        bound_of="largest error of a parity, on average" if bound else found.bound_of,
        passes=found.passes + 1,
        memory=memory,
        available=not (late or many),
        note=_refusal(late) if late or many else note,
        steps=found.steps if rounds is None else rounds,
    )


def _refusal(late: bool) -> str:
    return f"takes 2^p states; p ≤ {_PMW_VARIABLES}" if late else "too many parities to answer all"


def gaussian(request: Request) -> MethodForecast:
    """Gaussian noise on every parity sum."""
    return two_phases(request, "gaussian")


def pmw(request: Request) -> MethodForecast:
    """Private multiplicative weights."""
    return two_phases(request, "pmw")


def sepfem(request: Request) -> MethodForecast:
    """Follow the perturbed leader."""
    return two_phases(request, "sepfem")


def _gaussian(
    request: Request, rho: float, parities: int
) -> tuple[float | None, float | None, int | None]:
    from privfield.mechanisms.parities.gaussian import parity_sensitivity

    order = request.order - 1
    if not order:
        return 0.0, None, None
    with_count = not request.rows_are_public
    moved = parity_sensitivity(request.adjacency, request.variables, order, with_count)
    noise = math.sqrt(moved.l2_squared / (2 * rho)) / request.n
    return largest_of(parities) * math.hypot(noise, request.n**-0.5), None, None


def _pmw(
    request: Request, rho: float, parities: int
) -> tuple[float | None, float | None, int | None]:
    """The forecast is fitted to simulations of rings (half the square of half the bound)."""
    if not parities:
        return 0.0, None, None
    reach = 2 if request.adjacency is Adjacency.ADD_REMOVE else 1
    root = math.sqrt(2 * request.variables * math.log(2))
    sharp = request.n * math.sqrt(rho) * reach
    bound = 2 * math.sqrt(2 * root * (1 + math.log(parities)) / sharp)
    rounds = root * sharp / (2 * (1 + math.log(parities)))
    sampling = largest_of(parities) * request.n**-0.5
    found = min(1.0, bound, math.hypot(_PMW_SHARE * (bound / 2) ** 2, sampling))
    return found, min(bound, 2.0), max(1, math.ceil(rounds))


def _sepfem(
    request: Request, rho: float, parities: int
) -> tuple[float | None, float | None, int | None]:
    return None, None, None


_PMW_SHARE = 0.5
_ANSWERS = {"gaussian": _gaussian, "pmw": _pmw, "sepfem": _sepfem}
