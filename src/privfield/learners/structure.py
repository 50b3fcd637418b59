"""From a table to a graph under differential privacy: the whole graph, or nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from privfield.checks import check_declared_rows, check_one_of
from privfield.data.rows import find_variables
from privfield.data.signs import check_variables
from privfield.data.table import known_rows, unit_of
from privfield.errors import InputError
from privfield.learners.base import Learner, result
from privfield.mechanisms.frank_wolfe.mechanism import check_width
from privfield.mechanisms.graphs.block_plan import RULES, BlockPlan, plan_blocks
from privfield.mechanisms.graphs.release import StructureRelease
from privfield.mechanisms.graphs.structure import StableStructure, check_min_weight
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import ApproxDP

if TYPE_CHECKING:
    import networkx as nx

METHODS = ("regression", "correlation", "chow-liu")
_MOST_EPSILON = 20
_HOPELESS = 10**15  # rows


@dataclass(repr=False, eq=False, kw_only=True)
class StructureLearner(Learner):
    """Learns which variables interact: the edges of a graphical model, under (ε, δ)-DP.

    The rows are cut into blocks, the graph is learned in each of them, and it is released if the
    blocks agree so clearly that no one person could change it; otherwise nothing is. An edge is
    an interaction of at least `min_weight`; `width` bounds the summed weights of a variable and
    only serves to predict how many rows are needed. `method` is

    * "regression": each variable on all others, on two or more levels; with `order` 3 and more,
      also products of several ±1 variables. `release` is "edge-majority", each possible edge by
      the majority of blocks, "mode", the most frequent whole graph, which needs more rows, or
      "auto", the better forecast;
    * "correlation": pairs of ±1 variables whose covariance exceeds tanh(`min_weight`)/2, without
      blocks; two variables that share a neighbour may look joined;
    * "chow-liu": the tree of strongest dependences, without blocks.

    Arrays without a `schema` are read by one public rule: above 0 is +1, anything else −1. With
    `pf.NON_PRIVATE` the graph of all rows, stamped. `learner(rows)` replaces the regressions; it
    must look at nothing but its rows, and votes for no edges where it fails: try it on made-up rows
    with `pf.NON_PRIVATE` first. After `fit`:

    * `graph_`: a networkx graph with every variable as a node, or None if nothing was released;
    * `advice_`: then, in plain words, what would help; it depends on public numbers alone;
    * `release_`: all that was released; `blocks_`, `cost_`, `adjacency_`.

    >>> import numpy as np, privfield as pf
    >>> model = pf.IsingModel([[0, 0.6, 0], [0.6, 0, -0.6], [0, -0.6, 0]])
    >>> rows = model.sample(20_000, np.random.default_rng(0))
    >>> learner = StructureLearner(pf.ApproxDP(1, 1e-6), min_weight=0.4).fit(rows)
    >>> sorted(learner.graph_.edges)
    [('x0', 'x1'), ('x1', 'x2')]
    """

    width: float = 2.0
    min_weight: float = 0.2
    release: str = "edge-majority"
    method: str = "regression"
    order: int = 2
    blocks: int | None = None
    names: Sequence[str] | None = None
    declared_rows: int | None = None
    learner: Callable[[Any], Any] | None = None
    learner_seconds: float | None = 60.0

    graph_: nx.Graph | None = result()
    blocks_: int | None = result()
    advice_: str | None = result()

    def fit(self, data: Any, y: Any = None) -> Self:
        """Vote, which is charged, and keep the graph if it was released."""
        self._forget()
        check_one_of(self.method, "method", METHODS)
        check_width(self.width)
        check_declared_rows(self.declared_rows)
        found = self._measure(data, self._rule(data))
        self.blocks_ = found.blocks
        self.graph_ = found.graph()
        self.advice_ = None if self.graph_ is not None else self._advice(data, found)
        return self

    def _measure(self, data: Any, rule: str) -> StructureRelease:
        if self.method == "regression":
            return self._release(
                StableStructure,
                data,
                variables=find_variables(data, self.schema, self.names),
                schema=self.schema,
                min_weight=self.min_weight,
                rule=rule,
                order=self.order,
                blocks=self.blocks,
                learner=self.learner,
                learner_seconds=self.learner_seconds,
            )
        from privfield.mechanisms.graphs.statistics import (
            ChowLiuTree,
            CorrelationGraph,
            refuse_people,
        )

        self._refuse_extras()
        refuse_people(self.schema, self.method)
        if self.method == "chow-liu":
            names = find_variables(data, self.schema, self.names).names
            return self._release(ChowLiuTree, data, names=names, schema=self.schema)
        names = check_variables(data, self.schema, self.names)
        return self._release(
            CorrelationGraph, data, names=names, schema=self.schema, threshold=self._threshold()
        )

    def _rule(self, data: Any) -> str:
        """The release asked for, or with "auto" the best forecast."""
        if self.release != "auto" or self.method != "regression":
            return self.release
        variables = find_variables(data, self.schema, self.names)
        schema = len(variables.names) if self.schema is None else self.schema
        study = {"width": float(self.width), "min_weight": float(self.min_weight)}
        return self._best(data, schema, RULES, model="structure", **study)

    def _refuse_extras(self) -> None:
        """What only regressions in blocks can use."""
        if self.order != 2 or self.blocks is not None or self.learner is not None:
            raise InputError(
                f"method={self.method!r} has no blocks: order, blocks and learner are for "
                "method='regression'."
            )

    def _threshold(self) -> float:
        """Half of the correlation of two ±1 variables joined by `min_weight` alone."""
        return math.tanh(float(check_min_weight(self.min_weight))) / 2

    def _advice(self, data: Any, found: StructureRelease) -> str:
        """What would help. Public numbers alone: the votes say nothing here."""
        assert isinstance(found.cost, ApproxDP)
        if found.blocks is None:
            return advise(found.cost)
        variables = find_variables(data, self.schema, self.names)
        rows = check_declared_rows(self.declared_rows)
        fixed = found.adjacency is Adjacency.REPLACE_ONE and unit_of(self.schema).is_row
        if rows is None and fixed:
            rows = known_rows(data)
        return advise(found.cost, self._plan, variables.shape, rows, float(self.min_weight))

    def _plan(self, shape: Sequence[int], budget: ApproxDP, min_weight: float) -> BlockPlan:
        return plan_blocks(
            shape,
            budget,
            width=float(self.width),
            min_weight=min_weight,
            rule=self.release if self.release in RULES else RULES[0],
            order=self.order,
            blocks=self.blocks,
        )


def advise(
    budget: ApproxDP,
    plan: Callable[[Sequence[int], ApproxDP, float], BlockPlan] | None = None,
    shape: Sequence[int] = (),
    rows: int | None = None,
    min_weight: float = 0.2,
) -> str:
    """What would help, in plain words. `plan` predicts rows for a budget and a least weight."""
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
