"""Lower bounds with proved constants: docs/guide/planning-a-study.md, "Proofs".

All are about Ising models whose edges join p/2 disjoint pairs of variables. For "add-remove" two
data sets of n rows are up to 2n steps apart instead of n, so ε counts twice and ρ four times.
"""

from __future__ import annotations

import math

from privfield.mechanisms.forecasting.study import Study
from privfield.planning.facts import LowerBound
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import ZCDP, ApproxDP, Budget, PureDP

MOST_ACCURACY = 1 / math.sqrt(54)  # 0.136: beyond, Theorem 5.1 says nothing
_MOST_EPSILON = 1.0


def structure_pure(p: int, epsilon: float, min_weight: float | None = None) -> float:
    """Rows that any ε-DP method needs to find the graph with probability 2/3 (Theorem 7.1).

    ln(2(M−1))/ε with M = 2^⌊p/2⌋ graphs; and (2/3)·ln(2(M−1))/(εt), t = η√⌊p/2⌋/2, where edges may
    be as weak as η.
    """
    pairs = p // 2
    graphs = pairs * math.log(2) + math.log1p(-(2.0**-pairs)) + math.log(2) if pairs else 0.0
    if graphs <= 0:
        return 0.0
    found = graphs / epsilon
    if min_weight is not None:
        near = min_weight * math.sqrt(pairs) / 2
        found = max(found, 2 / 3 * graphs / (epsilon * near))
    return found


def structure_zcdp(p: int, rho: float, min_weight: float | None = None) -> float:
    """Rows that any ρ-zCDP method needs to find the graph with probability 2/3 (Theorem 7.1).

    √(B/ρ) with B = (2⌊p/2⌋/3 − 1) ln 2; and n with n²t² + nt ≥ B/ρ where edges may be as weak as η.
    """
    pairs = p // 2
    bits = (2 * pairs / 3 - 1) * math.log(2)
    if bits <= 0:
        return 0.0
    found = math.sqrt(bits / rho)
    if min_weight is not None:
        near = min_weight * math.sqrt(pairs) / 2
        found = max(found, (math.sqrt(1 + 4 * bits / rho) - 1) / (2 * near))
    return found


def parameters_approximate(p: int, accuracy: float, epsilon: float, delta: float) -> float:
    """Rows that any (ε, δ)-DP method needs for a largest error of α, root mean square (Theorem 5.1,
    corrected): √⌊p/2⌋/(72αε), for α ≤ 1/√54, ε ≤ 1 and δ ≤ 3/(64n); 0 where it does not apply.
    """
    if accuracy > MOST_ACCURACY or epsilon > _MOST_EPSILON or p < 2:
        return 0.0
    found = math.sqrt(p // 2) / (72 * accuracy * max(epsilon, 1e-300))
    return min(found, 3 / (64 * delta)) if delta > 0 else found


def parameters_zcdp(p: int, accuracy: float, rho: float) -> float:
    """The same for ρ-zCDP, which is (ε, δ)-DP with δ = 3/(64n) for some ε that grows with n."""
    if accuracy > MOST_ACCURACY or p < 2:
        return 0.0

    def too_few(n: float) -> bool:
        return n < parameters_approximate(p, accuracy, spent.epsilon_at(3 / (64 * n)), 0.0)

    spent = ZCDP(rho)
    low, high = 0.0, 1.0
    while high < 1e15 and too_few(high):
        low, high = high, 2 * high
    if not low:
        return 0.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if too_few(middle) else (low, middle)
    return low


def parameters_pure(p: int, accuracy: float, epsilon: float, width: float) -> float:
    """For ε-DP: Theorem 5.1, or that of graphs, which α < λ/(2√3) would tell apart.

    A root mean square of α keeps the largest error within √3 α with probability 2/3, which tells
    the edges of weight λ > 2√3 α from none.
    """
    found = parameters_approximate(p, accuracy, epsilon, 0.0)
    told = 2 * math.sqrt(3) * accuracy
    if told < width:
        found = max(found, structure_pure(p, epsilon))
    return found


def lower_bounds(study: Study) -> tuple[LowerBound, ...]:
    """Those that apply to this study's own budget, for two-level variables."""
    if not study.is_binary or study.model in ("chain", "peer"):
        return ()
    return bounds_for(study, study.budget)


def why_none(study: Study, found: tuple[LowerBound, ...]) -> str:
    """Why there is no bound, in a sentence; empty where there is one."""
    if found:
        return ""
    if not study.is_binary or study.model in ("chain", "peer"):
        return "Bounds are proved for Ising models of variables with two levels only."
    budget = study.budget
    if budget.is_pure or isinstance(budget, ZCDP):
        return "What is proved for so few variables at this budget is at most one row."
    if study.accuracy is None:
        return "Under (ε, δ) a bound is proved for errors of couplings only: say accuracy=0.1."
    assert isinstance(budget, ApproxDP)
    steps = 2 if study.adjacency is Adjacency.ADD_REMOVE else 1
    if study.accuracy > MOST_ACCURACY or steps * budget.epsilon > _MOST_EPSILON:
        most = f"{_MOST_EPSILON / steps:g}"
        return (
            f"Under (ε, δ) a bound is proved for ε up to {most} and accuracy up to "
            f"{MOST_ACCURACY:.3f} only."
        )
    return "What is proved for so few variables at this budget is at most one row."


def bounds_for(study: Study, budget: Budget) -> tuple[LowerBound, ...]:
    """Bounds under that budget; empty where none is proved."""
    p, steps = study.variables, 2 if study.adjacency is Adjacency.ADD_REMOVE else 1
    weakest, accuracy = study.min_weight, study.accuracy
    found = []
    if budget.is_pure:
        assert isinstance(budget, PureDP | ApproxDP)
        epsilon = steps * budget.epsilon
        found.append(_graph("pure", structure_pure(p, epsilon, weakest)))
        if accuracy is not None:
            rows = parameters_pure(p, accuracy, epsilon, study.width)
            found.append(_numbers("pure", rows, accuracy))
    elif isinstance(budget, ZCDP):
        found.append(_graph("zCDP", structure_zcdp(p, steps**2 * budget.rho, weakest)))
        if accuracy is not None:
            rows = parameters_zcdp(p, accuracy, steps**2 * budget.rho)
            found.append(_numbers("zCDP", rows, accuracy))
    elif isinstance(budget, ApproxDP) and accuracy is not None:
        delta = budget.delta * (1 if steps == 1 else 1 + math.exp(budget.epsilon))
        rows = parameters_approximate(p, accuracy, steps * budget.epsilon, delta)
        found.append(_numbers("approximate", rows, accuracy))
    return tuple(each for each in found if each.rows > 1)


def _graph(privacy: str, rows: float) -> LowerBound:
    text = "to find the whole graph with probability 2/3"
    return LowerBound("structure", privacy, rows, text)


def _numbers(privacy: str, rows: float, accuracy: float) -> LowerBound:
    text = f"for a largest error of a coupling of {accuracy:g} (root mean square)"
    return LowerBound("parameters", privacy, rows, text)
