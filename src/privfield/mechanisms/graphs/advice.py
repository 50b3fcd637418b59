"""What would help where no graph was stable enough: plain words from public numbers alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from privfield.mechanisms.graphs.block_plan import BlockPlan
from privfield.privacy.budgets import ApproxDP

Plan = Callable[[Sequence[int], ApproxDP, float], BlockPlan]

_MOST_EPSILON = 20
_HOPELESS = 10**15  # rows


def advise(
    budget: ApproxDP,
    plan: Plan | None = None,
    shape: Sequence[int] = (),
    rows: int | None = None,
    min_weight: float = 0.2,
) -> str:
    """A few sentences. `plan` predicts rows for a budget and a least weight, where it can."""
    text = (
        "Nothing was stable enough to be released. How close it came is private, so no more can be "
        "said about this table. What helps in general: more rows, a larger ε or δ"
    )
    if plan is None:
        return f"{text}. Or select edges one by one: pf.MarginalLearner(budget, cliques='learn')."
    needed = plan(shape, budget, min_weight).rows_needed
    if needed >= _HOPELESS:
        return (
            f"{text}, and more blocks: with so few, no number of rows is enough. Leave `blocks` "
            "out to have their number chosen, or select edges one by one: "
            "pf.MarginalLearner(budget, cliques='learn')."
        )
    there = "" if rows is None else f" (there are {rows:,})"
    text += (
        ", or a larger min_weight; weights close to half of it make blocks disagree. By a rough "
        "formula for answers that are about equally frequent (rare ones take several times as "
        f"many), {_about(needed)} rows are enough here{there}"
    )
    if 2 * budget.exact_epsilon <= _MOST_EPSILON:
        doubled = ApproxDP(2 * budget.exact_epsilon, budget.exact_delta)
        more = plan(shape, doubled, min_weight).rows_needed
        text += f", {_about(more)} with ε = {doubled.epsilon:g}"
    wider = plan(shape, budget, 2 * min_weight).rows_needed
    text += (
        f", {_about(wider)} with min_weight = {2 * min_weight:g}. With fewer rows, select edges "
        "one by one: pf.MarginalLearner(budget, cliques='learn')."
    )
    return text


def _about(rows: int) -> str:
    return f"about {rows:,}"
