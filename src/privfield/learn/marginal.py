"""From a table to a graphical model: noisy contingency tables, then `pf.estimate`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, Self

from privfield.errors import InputError
from privfield.estimate.estimate import check_method, estimate
from privfield.inference.contraction import DEFAULT_MAX_BYTES, contraction_size
from privfield.learn.base import Learner
from privfield.measure.marginals import measure
from privfield.measure.measurements import Measurements
from privfield.models.mrf import MarkovRandomField
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import Budget, NonPrivate
from privfield.privacy.ledger import Ledger
from privfield.progress import ProgressCallback
from privfield.schema import Schema


class MarginalLearner(Learner):
    """Learns a Markov random field with given cliques under differential privacy.

    `cliques` is a list of tuples of names, or "all-pairs". `design` and `noise` say how the budget
    is spent (`pf.measure`); by default as well as is known. `method` and `options` go to
    `pf.estimate`. After `fit`:

    * `model_`: the `pf.MarkovRandomField`;
    * `measurements_`: what was released. It is there even if the estimate is interrupted;
    * `cost_`, `adjacency_`: what was spent, and which tables count as neighbours.

    >>> import numpy as np, privfield as pf
    >>> schema = pf.Schema({"smoker": ["no", "yes"], "cough": ["no", "yes"]})
    >>> rows = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], [6120, 880, 1710, 1290], axis=0)
    >>> learner = pf.MarginalLearner(pf.PureDP(1), cliques="all-pairs", schema=schema)
    >>> learner.fit(rows).model_.marginal(["smoker"]).round(1).tolist()
    [0.7, 0.3]
    """

    def __init__(
        self,
        budget: Budget | NonPrivate,
        cliques: str | Sequence[Sequence[str]] = "all-pairs",
        schema: Schema | None = None,
        method: str = "auto",
        *,
        adjacency: str = "replace-one",
        noise: str = "auto",
        design: str = "auto",
        weights: Sequence[float] | None = None,
        inference: str = "exact",
        max_bytes: float = DEFAULT_MAX_BYTES,
        options: dict[str, Any] | None = None,
        ledger: Ledger | None = None,
        job: str | None = None,
        insecure_seed: int | None = None,
        progress: ProgressCallback | None = None,
    ) -> None:
        self.budget = budget
        self.cliques = cliques
        self.schema = schema
        self.method = method
        self.adjacency = adjacency
        self.noise = noise
        self.design = design
        self.weights = weights
        self.inference = inference
        self.max_bytes = max_bytes
        self.options = options
        self.ledger = ledger
        self.job = job
        self.insecure_seed = insecure_seed
        self.progress = progress

    model_: MarkovRandomField
    measurements_: Measurements

    def fit(self, data: Any, y: Any = None) -> Self:
        """Measure the cliques' tables, which is charged, and estimate the model from them."""
        for result in ("model_", "measurements_", "cost_", "adjacency_"):
            self.__dict__.pop(result, None)  # of an earlier fit
        if not isinstance(self.schema, Schema):
            raise InputError(
                "schema must be a pf.Schema, which says what the columns may hold; "
                f"got {type(self.schema).__name__}."
            )
        check_method(self.method, self.options or {})
        if self.method == "cgm" and isinstance(self.budget, NonPrivate):
            raise InputError("method='cgm' needs noisy tables; with NON_PRIVATE use 'naive-mle'.")
        number = isinstance(self.max_bytes, int | float) and not isinstance(self.max_bytes, bool)
        if not number or not self.max_bytes > 0:
            raise InputError(f"max_bytes must be a number above 0; got {self.max_bytes!r}.")
        if self.inference not in ("exact", "loopy"):
            raise InputError(f"inference must be 'exact' or 'loopy'; got {self.inference!r}.")
        cliques = self._cliques(self.schema)
        self._check_size(self.schema, cliques)
        self.measurements_ = measure(
            data,
            self.schema,
            cliques,
            self.budget,
            adjacency=self.adjacency,
            noise=self.noise,
            design=self.design,
            weights=self.weights,
            ledger=self.ledger,
            job=self.job,
            insecure_seed=self.insecure_seed,
            progress=self.progress,
        )
        self.cost_ = self.measurements_.cost
        self.adjacency_ = Adjacency.parse(self.adjacency)
        self.model_ = self._estimate(self.measurements_)
        return self

    def _estimate(self, measurements: Measurements) -> MarkovRandomField:
        return estimate(
            measurements,
            self.method,
            inference=self.inference,
            max_bytes=self.max_bytes,
            progress=self.progress,
            **(self.options or {}),
        )

    def _cliques(self, schema: Schema) -> list[tuple[str, ...]]:
        if self.cliques == "all-pairs":
            return list(combinations(schema.names, 2)) or [(name,) for name in schema.names]
        if isinstance(self.cliques, str) or not isinstance(self.cliques, Sequence):
            raise InputError(f"cliques must be a list or 'all-pairs'; got {self.cliques!r}.")
        return [tuple(clique) for clique in self.cliques]

    def _check_size(self, schema: Schema, cliques: Sequence[Sequence[str]]) -> None:
        """Refuse before anything is charged what could not be estimated afterwards."""
        if self.inference != "exact":
            return
        zeros = MarkovRandomField(schema, [], []).factors.cliques  # of forbidden combinations
        positions = [*(schema.clique(clique) for clique in cliques), *zeros]
        size = contraction_size(schema.shape, positions, max_bytes=self.max_bytes)
        if not size.complete or size.bytes > self.max_bytes:
            scope = ", ".join(schema.names[v] for v in size.largest_scope[:8])
            raise InputError(
                f"cliques: exact inference would need at least {size.bytes / 2**30:.3g} GiB, for a "
                f"table over {scope}{', …' * (len(size.largest_scope) > 8)} (treewidth "
                f"{size.treewidth}); max_bytes allows {self.max_bytes / 2**30:.3g} GiB. Nothing "
                "was charged. Use fewer or smaller cliques, coarser levels, or inference='loopy'."
            )
