"""Code to paste: a learner with its settings."""

from __future__ import annotations

from typing import Any

from privfield.mechanisms.forecasting.study import Study
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import ZCDP, ApproxDP, Budget, GaussianDP, PureDP


def budget_call(budget: Budget) -> str:
    """A budget."""
    if isinstance(budget, PureDP):
        return f"pf.PureDP({budget.epsilon:.12g})"
    if isinstance(budget, ApproxDP):
        return f"pf.ApproxDP({budget.epsilon:.12g}, {budget.delta:.12g})"
    assert isinstance(budget, ZCDP)
    name = "GaussianDP" if isinstance(budget, GaussianDP) else "ZCDP"
    return f"pf.{name}({budget.rho:.12g})"


def learner_call(study: Study, learner: str, *, declares: bool = False, **settings: Any) -> str:
    """A learner for that study. With `declares` it wants to be told about how many rows there are
    where their number is private."""
    parts = [budget_call(study.budget)]
    parts += [f"{name}={_value(value)}" for name, value in settings.items()]
    if study.named:
        parts.append("schema=schema")
    if study.adjacency is Adjacency.ADD_REMOVE:
        parts.append('adjacency="add-remove"')
    if declares and not study.rows_are_public:
        parts.append(f"declared_rows={study.n}")
    return f"pf.{learner}({', '.join(parts)})"


def _value(value: Any) -> str:
    if isinstance(value, str):
        return value if value in ("cliques", "schema", "states") else f'"{value}"'
    return f"{value:g}"
