"""`pf.plan`: what a study will cost and how good it will be, before any data is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from privfield.planning.forecast import Plan
    from privfield.privacy.budgets import Budget
    from privfield.privacy.rounding import Number
    from privfield.schema import Schema

# This file is imported with privfield itself: everything else is imported when it is called.


def plan(
    schema_or_shape: Schema | Sequence[int] | int | None,
    n: int | None,
    budget: Budget,
    *,
    model: str = "auto",
    order: int = 2,
    width: float = 2.0,
    accuracy: float | None = None,
    min_weight: float | None = None,
    adjacency: str = "replace-one",
    cliques: str | Sequence[Sequence[Any]] = "auto",
    max_memory: float | str | None = None,
    network: Any = None,
    scaling: str = "laplacian",
    states: Any = None,
    limit: Number = 4,
    coupling: float | None = None,
) -> Plan:
    """Predict noise, error, memory and passes of every method that fits; no argument takes data.

    `schema_or_shape` is a schema, a list of numbers of levels, or a number of two-level variables.
    `n` is the number of rows (of people for chains, of nodes for peer effects), or a guess of it.
    `accuracy` is the error you can live with: the plan then says how n or the budget would have to
    change. `min_weight` is the weakest edge that matters. `width` bounds the summed |weights| of a
    variable. `coupling` is a guess of a typical coupling, 0.4 (or half the width) unless given:
    strong ones are harder to estimate. `max_memory` is a number of bytes, or text such as "8GB".
    Chains take `states` and `limit`; peer effects a `network`, as `pf.PeerEffect` does, or
    (nodes, edges, largest degree).

    >>> import privfield as pf
    >>> p = pf.plan(20, n=5000, budget=pf.ApproxDP(1, 1e-6))
    >>> p.recommended.name, p.verdict
    ('moments', 'Privacy costs about twice as much as sampling error.')
    """
    from privfield.planning.request import check_request
    from privfield.planning.study import make_plan

    request = check_request(
        schema_or_shape,
        n,
        budget,
        model=model,
        order=order,
        width=width,
        accuracy=accuracy,
        min_weight=min_weight,
        adjacency=adjacency,
        cliques=cliques,
        max_memory=max_memory,
        network=network,
        scaling=scaling,
        states=states,
        limit=limit,
        coupling=coupling,
    )
    return make_plan(request)
