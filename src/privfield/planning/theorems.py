"""Theorems of the papers as calculators: docs/guide/planning-a-study.md, "Theorems of the papers".

Numbers with proved constants are marked so. The others are orders: what stands inside O(·) or Ω(·),
with constants that the papers do not state taken as 1. An order compares settings; it is no advice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from privfield.errors import InputError
from privfield.planning.bounds import parameters_approximate, structure_pure, structure_zcdp
from privfield.planning.facts import PlanFacts
from privfield.planning.table1 import ACCURACY, budgets_like
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import ApproxDP, PureDP

_MOST_STEPS = 10**7


@dataclass(frozen=True)
class Calculated:
    """One theorem's number: rows, or a loss in nats; `left_out` are factors without a value."""

    theorem: str
    says: str
    value: float
    proved: bool
    left_out: str = ""

    def __str__(self) -> str:
        kind = "proved" if self.proved else "order only"
        without = f", without {self.left_out}" if self.left_out else ""
        return f"{self.theorem}: {self.says}: {self.value:.3g} ({kind}{without})"


def lemma_3_3(
    n: float,
    vertices: int,
    curvature: float,
    lipschitz: float,
    radius: float,
    rho: float,
    failure: float = 1 / 3,
) -> Calculated:
    """Excess empirical risk of Algorithm 1 with T = Γ^(2/3)(n√ρ)^(2/3)/(L₁‖C‖₁)^(2/3)."""
    _positive(n=n, vertices=vertices, curvature=curvature, lipschitz=lipschitz, radius=radius)
    _positive(rho=rho, failure=failure)
    slope = (lipschitz * radius) ** (2 / 3) * curvature ** (1 / 3)
    value = slope * math.log(n * vertices / failure) / (n * math.sqrt(rho)) ** (2 / 3)
    return _order("Lemma 3.3", "excess empirical risk of private Frank–Wolfe", value)


def corollary_3_4(
    n: float, features: int, radius: float, rho: float, failure: float = 1 / 3
) -> Calculated:
    """The same for sparse logistic regression (Theorem 1.3): Γ = λ², ‖C‖₁ = λ, constants as 1."""
    _positive(features=features)
    found = lemma_3_3(n, features, radius**2, 1.0, radius, rho, failure)
    return _order("Corollary 3.4", "excess empirical risk of logistic regression", found.value)


def theorem_3_6(n: float, features: int, radius: float, rho: float) -> Calculated:
    """Expected excess risk of private Frank–Wolfe for sparse logistic regression, replace-one.

    2R√(2 ln 2p / n) of generalisation, by symmetrisation, contraction and Massart's lemma, and the
    least 2R²/(K+2) + 2 ln2/((K+1)(K+2)) + τ ln 2p over K, τ = √2 σ(R) R √(K/ρ)/n. The printed
    bound leaves p out of its first part.
    """
    _positive(n=n, features=features, radius=radius, rho=rho)
    logs = math.log(2 * features)
    tau = math.sqrt(2 / rho) * radius / (1 + math.exp(-radius)) / n * logs
    best = (4 * radius**2 / tau) ** (2 / 3)  # where 2R²/K + τ√K is least
    gap = min(_gap(radius, tau, steps) for steps in _near(best))
    value = 2 * radius * math.sqrt(2 * logs / n) + gap
    return Calculated("Theorem 3.6", "excess risk of sparse logistic regression", value, True)


def theorem_3_8(p: int, width: float, accuracy: float, rho: float) -> Calculated:
    """Rows for the couplings of an Ising model, largest error α, by Algorithm 2."""
    _positive(p=p, width=width, accuracy=accuracy, rho=rho)
    sampling = math.log(p) * math.exp(12 * width) / accuracy**4
    private = math.sqrt(p / rho) * math.log(p) ** 2 * math.exp(9 * width) / accuracy**3
    return _order("Theorem 3.8", "rows for an Ising model", width**2 * (sampling + private))


def theorem_3_11(p: int, levels: int, width: float, accuracy: float, rho: float) -> Calculated:
    """Rows for the tables of a pairwise model of k levels, by Algorithm 3."""
    _positive(p=p, levels=levels, width=width, accuracy=accuracy, rho=rho)
    logs = math.log(p * levels)
    sampling = levels**5 * logs / accuracy**4
    private = math.sqrt(p / rho) * levels**5.5 * logs**2 / accuracy**3
    rows = width**2 * (sampling + private)
    return _order("Theorem 3.11", f"rows for a pairwise model of {levels} levels", rows, "e^O(λ)")


def theorem_4_2(p: int, order: int, accuracy: float, rho: float) -> Calculated:
    """Rows for a t-wise model in ℓ1, by Algorithm 4."""
    _positive(p=p, order=order, accuracy=accuracy, rho=rho)
    sampling = p ** (4.0 * order) * math.log(p) / accuracy**4
    private = p ** (3.0 * order + 0.5) * math.log(p) ** 2 / (math.sqrt(rho) * accuracy**3)
    left_out = "(2t)^O(t) e^O(λt)"
    return _order("Theorem 4.2", f"rows for order {order} in l1", sampling + private, left_out)


def theorem_4_7(
    p: int, order: int, width: float, accuracy: float, rho: float, queries: str = "pmw"
) -> Calculated:
    """Rows for the maximal monomials of a t-wise model, by Algorithm 5 with these queries.

    "fem" is in Theorem 1.4 of the proceedings version only.
    """
    _positive(p=p, order=order, width=width, accuracy=accuracy, rho=rho)
    powers = {"pmw": 0.5, "sepfem": 1.25, "fem": 1.5}
    if queries not in powers:
        raise InputError(f"queries must be 'pmw', 'sepfem' or 'fem'; got {queries!r}.")
    logs, root = math.log(p), math.sqrt(rho)
    regress = math.exp(5 * width * order) * math.sqrt(p) * logs**2 / (root * accuracy**4.5)
    answer = order * width**2 * p ** powers[queries] * logs / (root * accuracy**2)
    sampling = math.exp(6 * width * order) * logs / accuracy**6
    says = f"rows for the maximal monomials of order {order} ({queries})"
    return _order("Theorem 4.7", says, regress + answer + sampling)


def theorem_5_1(p: int, accuracy: float, epsilon: float, delta: float) -> Calculated:
    """Rows that every (ε, δ)-DP method needs for the couplings, corrected; 0: it says nothing."""
    _positive(p=p, accuracy=accuracy, epsilon=epsilon)
    found = parameters_approximate(p, accuracy, epsilon, delta)
    return Calculated("Theorem 5.1", "rows that couplings need at least", found, True)


def theorem_6_2(p: int, levels: int, width: float, weakest: float) -> Calculated:
    """Rows for the graph of a pairwise model without privacy, weights of η or more."""
    _positive(p=p, levels=levels, width=width, weakest=weakest)
    rows = width**2 * levels**4 * math.exp(14 * width) / weakest**4 * math.log(p * levels)
    return _order("Theorem 6.2", "rows for the graph without privacy", rows)


def theorem_6_4(p: int, weakest: float) -> Calculated:
    """Rows for the graph of a binary t-wise model without privacy, coefficients of η or more."""
    _positive(p=p, weakest=weakest)
    rows = math.log(p / weakest) / weakest**4
    return _order("Theorem 6.4", "rows for the graph of products without privacy", rows, "e^O(λt)")


def corollary_6_3(
    p: int, levels: int, width: float, weakest: float, epsilon: float, delta: float
) -> Calculated:
    """Rows for the graph of a pairwise model under (ε, δ), weights of η or more.

    Beyond ε = 1 as at 1, unlike the printed one: concentration alone needs log(1/δ) blocks.
    """
    rows = theorem_6_2(p, levels, width, weakest).value * _blocks(epsilon, delta)
    return _order("Corollary 6.3", "rows for the graph by stability", rows)


def corollary_6_5(p: int, weakest: float, epsilon: float, delta: float) -> Calculated:
    """Rows for the graph of a binary t-wise model under (ε, δ), coefficients of η or more."""
    rows = theorem_6_4(p, weakest).value * _blocks(epsilon, delta)
    return _order("Corollary 6.5", "rows for the graph of products by stability", rows, "e^O(λt)")


def theorem_7_1(
    p: int, epsilon: float | None = None, rho: float | None = None, weakest: float | None = None
) -> Calculated:
    """Rows that every pure ε, or every ρ-zCDP, method needs for the graph with probability 2/3.

    More where edges may be as weak as `weakest`, the paper's η. For k levels too (Theorem 7.4): the
    printed factor k² is not supported, these rows are.
    """
    _positive(p=p)
    if (epsilon is None) == (rho is None):
        raise InputError("epsilon or rho must be given, and not both.")
    if epsilon is not None:
        _positive(epsilon=epsilon)
        found, kind = structure_pure(p, epsilon, weakest), "pure ε"
    else:
        assert rho is not None
        _positive(rho=rho)
        found, kind = structure_zcdp(p, rho, weakest), "zCDP"
    return Calculated("Theorem 7.1", f"rows that the graph needs at least, {kind}", found, True)


def table_1(p: int) -> dict[str, tuple[float, float]]:
    """How structure and parameters of an Ising model grow with p: orders, from least private."""
    _positive(p=p)
    logs, root = math.log(p), math.sqrt(p)
    return {
        "non-private": (logs, logs),
        "approximate": (logs, root),
        "zCDP": (root, root),
        "pure": (float(p), float(p)),
    }


def proposition_3(cliques: int, adjacency: str = "add-remove") -> int:
    """By how much one record moves all cells of that many tables, in L1 (Bernstein et al. 2017).

    Their neighbours are add-remove: one cell of each table by 1. A replaced record moves two.
    """
    _positive(cliques=cliques)
    return cliques * (1 if Adjacency.parse(adjacency) is Adjacency.ADD_REMOVE else 2)


def proposition_4(
    probability: float, n: float, cliques: int, epsilon: float, adjacency: str = "add-remove"
) -> float:
    """Mean squared error of a cell of a noisy table over N: sampling μ(1−μ)/N and Laplace noise."""
    _positive(n=n, epsilon=epsilon)
    if not 0 <= probability <= 1:
        raise InputError(f"probability must lie between 0 and 1; got {probability}.")
    scale = proposition_3(cliques, adjacency) / epsilon
    return probability * (1 - probability) / n + 2 * scale**2 / n**2


def theorem_b_1(
    size: float, zeta: float, ridge: float, beta: float, epsilon: float, delta: float = 0.0
) -> Calculated:
    """Error of PrIsing's Algorithm 1 (Chakraborty et al. 2024); `size` is a_n, `ridge` is Δ.

    1/√a_n + √(8ζ²r + ε²Δ²β²)/(a_n ε) with r = log(2/δ) + ε/2, or 1 for δ = 0.
    """
    _positive(size=size, zeta=zeta, ridge=ridge, beta=beta, epsilon=epsilon)
    spread = math.log(2 / delta) + epsilon / 2 if delta > 0 else 1.0
    noise = math.sqrt(8 * zeta**2 * spread + (epsilon * ridge * beta) ** 2)
    value = 1 / math.sqrt(size) + noise / (size * epsilon)
    return _order("PrIsing, Theorem B.1", "error of the private β", value)


def corollary_3_1(
    n: float, degree: float, beta: float, epsilon: float, delta: float = 0.0
) -> Calculated:
    """Error of PrIsing on regular graphs, η_δ = √log(2/δ); `degree` counts for β < 1 only."""
    _positive(n=n, degree=degree, beta=beta, epsilon=epsilon)
    if beta == 1:
        raise InputError("beta must not be 1: the corollaries say nothing at the transition.")
    spread = math.sqrt(math.log(2 / delta)) if delta > 0 else 1.0
    part = (degree if beta < 1 else 1) / n
    value = math.sqrt(part) + part * spread / epsilon
    return _order("PrIsing, Corollary 3.1", "error of the private β", value)


def corollary_3_2(
    n: float, chance: float, beta: float, epsilon: float, delta: float = 0.0
) -> Calculated:
    """The same on Erdős–Rényi graphs with edges of that probability, log(n)/n or much more."""
    _positive(chance=chance)
    found = corollary_3_1(n, n * chance, beta, epsilon, delta)
    return _order("PrIsing, Corollary 3.2", found.says, found.value)


def theorems_of(plan: PlanFacts, order: int = 3) -> tuple[Calculated, ...]:
    """Those that speak of a study of rows, at its n, width, accuracy and budget.

    Theorem 3.6 is for one of p regressions of radius 2λ with ρ/p, as in Algorithm 2. Under
    add-remove two data sets of n rows are up to 2n steps apart: lower bounds count ε twice.
    """
    if plan.model in ("chain", "peer") or plan.variables < 2:
        return ()
    pure, concentrated, approximate = budgets_like(plan.budget)
    assert isinstance(pure, PureDP) and isinstance(approximate, ApproxDP)
    p, k, width, rho = plan.variables, max(plan.levels), plan.width, concentrated.rho
    accuracy, weakest = plan.accuracy or ACCURACY, plan.min_weight or ACCURACY
    steps = 2 if plan.adjacency is Adjacency.ADD_REMOVE else 1
    epsilon, delta = approximate.epsilon, approximate.delta
    apart = delta if steps == 1 else (1 + math.exp(epsilon)) * delta
    monomials = min(order, p)
    return (
        theorem_3_6(plan.n, p, 2 * width, rho / p),
        theorem_3_8(p, width, accuracy, rho),
        theorem_3_11(p, k, width, accuracy, rho),
        theorem_4_2(p, monomials, accuracy, rho),
        theorem_4_7(p, monomials, width, accuracy, rho, "pmw"),
        theorem_4_7(p, monomials, width, accuracy, rho, "sepfem"),
        theorem_5_1(p, accuracy, steps * epsilon, apart),
        corollary_6_3(p, k, width, weakest, epsilon, delta),
        corollary_6_5(p, weakest, epsilon, delta),
        theorem_7_1(p, epsilon=steps * pure.epsilon, weakest=plan.min_weight),
        theorem_7_1(p, rho=steps**2 * rho, weakest=plan.min_weight),
    )


def _order(theorem: str, says: str, value: float, left_out: str = "") -> Calculated:
    return Calculated(theorem, says, value, False, left_out)


def _blocks(epsilon: float, delta: float) -> float:
    """How many times the rows of a learner without privacy Lemma 6.1 asks for, corrected."""
    _positive(epsilon=epsilon, delta=delta)
    return math.log(1 / delta) / min(epsilon, 1.0)


def _gap(radius: float, tau: float, steps: int) -> float:
    early = 2 * math.log(2) / ((steps + 1) * (steps + 2))
    return 2 * radius**2 / (steps + 2) + early + tau * math.sqrt(steps)


def _near(steps: float) -> range:
    """Whole numbers around the best one."""
    middle = int(min(max(steps, 3), _MOST_STEPS))
    return range(max(1, middle - 3), middle + 4)


def _positive(**numbers: float) -> None:
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            raise InputError(f"{name} must be a number above 0; got {value!r}.")
