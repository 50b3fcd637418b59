"""From a table to a graphical model: noisy contingency tables, then `pf.estimate`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Self

from privfield.checks import check_max_bytes, check_one_of, is_word, shown
from privfield.errors import InputError
from privfield.estimation.estimate import check_method, estimate
from privfield.inference.contraction.plan import (
    DEFAULT_MAX_BYTES,
    ContractionSize,
    contraction_size,
)
from privfield.inference.contraction.room import RoomForEdges
from privfield.inference.factors import structural_zeros
from privfield.learners.base import Learner, attach_card, result
from privfield.mechanisms.edges.mechanism import check_number, pair_weights, select_edges
from privfield.mechanisms.edges.schedule import candidate_pairs
from privfield.mechanisms.edges.selection import Selection
from privfield.mechanisms.graphs.structure import check_min_weight
from privfield.mechanisms.tables.measurements import Measurements
from privfield.mechanisms.tables.mechanism import measure
from privfield.models.mrf import MarkovRandomField
from privfield.privacy.budgets import NonPrivate, check_budget
from privfield.schema import Schema
from privfield.stamps import stamped

if TYPE_CHECKING:
    import networkx as nx

    from privfield.mechanisms.edges.stable import StableSelection
    from privfield.mechanisms.graphs.release import StructureRelease

_WORDS = ("auto", "all-pairs", "learn")
_STRUCTURES = ("auto", "selection", "stable")
_NO_PAIR = (
    "No pair of variables was looked at: with so few records, not even strong links could have "
    "been told from the noise of this budget. What there was went to the tables of single "
    "variables, and the model takes them as independent."
)
_NO_ROOM = (
    "No pair of variables was looked at: exact inference with any of them would take more than "
    "max_bytes. The budget went to the tables of single variables, and the model takes them as "
    "independent."
)


@dataclass(repr=False, eq=False, kw_only=True)
class MarginalLearner(Learner):
    """Learns a Markov random field from noisy contingency tables, under differential privacy.

    `cliques` says which variables interact: a list of tuples of names, "all-pairs", or "learn":
    edges are then found privately within the same budget; where not even strong ones could be, all
    of it goes to the tables of single variables. "auto" is what has the best
    forecast (as in `pf.plan`): all pairs, where exact inference with them fits in `max_bytes`, or
    learned edges. `structure` says how edges are learned: by "selection", one after the other,
    where the model so far predicts worst; by "stable", the whole graph or nothing
    (`pf.StructureLearner`, with a share of a `pf.ApproxDP` budget; if nothing is released, by
    selection with the rest). "auto" is the better forecast; "stable" only where `min_weight`, the
    least interaction that counts as an edge, is given. Forecasts are for the public number of rows,
    or for 10,000 where it is private.

    `design`, `noise` and `weights` say how the budget is spent on given cliques (`pf.measure`); by
    default as well as is known. `importance={"income": 3}` says which variables matter: pairs with
    them are chosen, or measured, as if their error counted three times. `method` and `options` go
    to `pf.estimate`. After `fit`:

    * `model_`: the `pf.MarkovRandomField`; `graph_`: its networkx graph; `cliques_`;
    * `measurements_`: what was released. It is there even if the estimate is interrupted;
    * `solution_`: whether the estimate `converged`, its `residual` and `steps`, and the variables
      whose released counts the model `contradicted`; None of methods other than "auto";
    * `selection_`, `structure_`: how edges were chosen, None where they were not;
    * `cost_`, `adjacency_`: what was spent, and which tables count as neighbours.

    >>> import numpy as np, privfield as pf
    >>> schema = pf.Schema({"smoker": ["no", "yes"], "cough": ["no", "yes"]})
    >>> rows = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], [6120, 880, 1710, 1290], axis=0)
    >>> learner = pf.MarginalLearner(pf.PureDP(1), cliques="all-pairs", schema=schema)
    >>> learner.fit(rows).model_.marginal(["smoker"]).round(1).tolist()
    [0.7, 0.3]
    """

    cliques: str | Sequence[Sequence[str]] = "auto"
    method: str = "auto"
    structure: str = "auto"
    min_weight: float | None = None
    noise: str = "auto"
    design: str = "auto"
    weights: Sequence[float] | None = None
    importance: Mapping[str, int] | None = None
    inference: str = "exact"
    max_bytes: float = DEFAULT_MAX_BYTES
    options: dict[str, Any] | None = None

    model_: MarkovRandomField = result()
    cliques_: tuple[tuple[str, ...], ...] = result()
    graph_: nx.Graph = result()

    def fit(self, data: Any, y: Any = None) -> Self:
        """Measure tables, which is charged, and estimate the model from them."""
        self._forget()
        schema = self._check()
        cliques = self._cliques(data, schema)
        if isinstance(cliques, str):
            self._keep(self._learn(data, schema, cliques))
        else:
            self._check_size(schema, cliques)
            self._keep(self._measure(data, schema, cliques))
        known = None if isinstance(cliques, str) else cliques
        self.cliques_ = _largest(known or self.measurements_.cliques)
        self.graph_ = stamped(_graph(schema, self.cliques_), self.measurements_)
        self.model_ = self._estimate(self.measurements_)
        attach_card(self, self._why_no_pair(schema))
        return self

    def _why_no_pair(self, schema: Schema) -> list[str]:
        """What a card says if private selection looked at none; a matter of public numbers."""
        if self.selection_ is None or self.selection_.choices:
            return []
        edges = None if self.structure_ is None else self.structure_.edges
        given = None if edges is None else tuple((i, j) for i, j in map(schema.clique, edges))
        room = RoomForEdges(schema, self.max_bytes)
        fits = room.has_plenty(()) or any(room.beside((), candidate_pairs(schema.shape, given)))
        return [_NO_PAIR if fits else _NO_ROOM]

    @property
    def measurements_(self) -> Measurements:
        """The noisy tables."""
        found = self.released_
        return found if isinstance(found, Measurements) else found.measurements

    @property
    def selection_(self) -> Selection | None:
        """How edges were chosen one by one; None where they were not."""
        found = self.released_
        return found if isinstance(found, Selection) else getattr(found, "selection", None)

    @property
    def structure_(self) -> StructureRelease | None:
        """The graph that was released as a whole; None where none was asked for."""
        return getattr(self.released_, "structure", None)

    def _check(self) -> Schema:
        schema = self._schema()
        check_budget(self.budget)
        check_method(self.method, {} if self.options is None else self.options)
        if self.min_weight is not None:
            check_min_weight(self.min_weight)
        if self.method == "cgm" and isinstance(self.budget, NonPrivate):
            raise InputError("method='cgm' needs noisy tables; with NON_PRIVATE use 'naive-mle'.")
        check_max_bytes(self.max_bytes)
        if not is_word(self.inference, ("exact", "loopy")):
            raise InputError(f"inference must be 'exact' or 'loopy'; got {self.inference!r}.")
        check_one_of(self.structure, "structure", _STRUCTURES)
        return schema

    def _measure(
        self, data: Any, schema: Schema, cliques: Sequence[tuple[str, ...]]
    ) -> Measurements:
        return measure(
            data,
            schema,
            cliques,
            self.budget,
            noise=self.noise,
            design=self.design,
            weights=self._weights(schema, cliques),
            **self._terms(),
        )

    def _weights(
        self, schema: Schema, cliques: Sequence[tuple[str, ...]]
    ) -> Sequence[float] | None:
        """Of given cliques: as asked, or by their variables."""
        if self.importance is None:
            return self.weights
        if self.weights is not None:
            raise InputError("importance and weights say the same; give one of them.")
        own = pair_weights(schema, self.importance)
        return [float(own(schema.clique(clique))) for clique in cliques]

    def _learn(self, data: Any, schema: Schema, way: str) -> Selection | StableSelection:
        """Edges and their tables within the budget."""
        if self.weights is not None or self.design != "auto":
            raise InputError("design and weights are for given cliques; leave them out to learn.")
        self._check_size(schema, [(name,) for name in schema.names])
        common: dict[str, Any] = {**self._terms(), "max_bytes": self.max_bytes}
        if way == "stable":
            if self.importance is not None:
                raise InputError("importance: structure='stable' has no weights; use 'selection'.")
            from privfield.mechanisms.edges.stable import measure_stable

            weight = 0.2 if self.min_weight is None else self.min_weight
            common |= {"noise": self.noise, "min_weight": weight}
            return measure_stable(data, schema, self.budget, **common)  # type: ignore[arg-type]
        return select_edges(
            data, schema, self.budget, noise=self.noise, importance=self.importance, **common
        )

    def _estimate(self, measurements: Measurements) -> MarkovRandomField:
        return estimate(  # type: ignore[no-any-return]
            measurements,
            self.method,
            inference=self.inference,
            max_bytes=self.max_bytes,
            progress=self.progress,
            **(self.options or {}),
        )

    def _cliques(self, data: Any, schema: Schema) -> list[tuple[str, ...]] | str:
        """What to measure; where that is still to be learned, in which way."""
        if isinstance(self.cliques, str) and self.cliques in _WORDS:
            if self.cliques == "all-pairs":
                self._check_all_pairs(schema)
            else:
                check_number(schema)
            alone: list[tuple[str, ...]] = [(name,) for name in schema.names]
            if self.cliques == "all-pairs":
                way = "tables"
            elif sum(levels > 1 for levels in schema.shape) < 2:  # there is no edge to learn
                return alone
            else:
                way = self._choose(data, schema)
            return [*combinations(schema.names, 2)] or alone if way == "tables" else way
        listed = isinstance(self.cliques, Sequence) and not isinstance(self.cliques, str)
        if not listed or not all(isinstance(each, Iterable) for each in self.cliques):
            raise InputError(
                "cliques must be a list or 'all-pairs', 'learn' or 'auto'; "
                f"got {shown(self.cliques)}."
            )
        return [tuple(clique) for clique in self.cliques]

    def _choose(self, data: Any, schema: Schema) -> str:
        """The best forecast, of all pairs and of the ways to learn edges."""
        if self.cliques == "auto" and (self.weights is not None or self.design != "auto"):
            return "tables"  # they say how all of them are measured
        ways = ["tables"] if self.cliques == "auto" else []
        ways += ["selection", "stable"] if self.structure == "auto" else [self.structure]
        if len(ways) == 1:
            return ways[0]
        study: dict[str, Any] = {"max_bytes": float(self.max_bytes)}
        if self.min_weight is not None:
            study["min_weight"] = float(self.min_weight)
        return self._best(data, schema, ways, exact=self.inference == "exact", **study)

    def _check_all_pairs(self, schema: Schema) -> None:
        """Refuse, before a list of all pairs fills the memory, what they could not be used for."""
        fit, cells = 0, 1
        for levels in schema.shape:  # all pairs tie all variables together
            cells *= levels
            if 8 * cells > self.max_bytes * max(schema.shape):
                break
            fit += 1
        if self.inference == "exact" and fit < len(schema):
            raise InputError(
                f"cliques: exact inference with all pairs of {len(schema):,} variables would need "
                f"more than {self.max_bytes / 2**30:.3g} GiB (max_bytes); the first {fit} would "
                "fit. Nothing was charged. Use 'learn', fewer variables, or cliques of your own."
            )

    def _size(self, schema: Schema, cliques: Sequence[Sequence[str]]) -> ContractionSize:
        zeros = structural_zeros(schema).cliques
        positions = [*(schema.clique(clique) for clique in cliques), *zeros]
        return contraction_size(schema.shape, positions, max_bytes=self.max_bytes)

    def _check_size(self, schema: Schema, cliques: Sequence[Sequence[str]]) -> None:
        """Refuse before anything is charged what could not be estimated afterwards."""
        if self.inference != "exact":
            return
        size = self._size(schema, cliques)
        if not size.complete or size.bytes > self.max_bytes:
            scope = ", ".join(schema.names[v] for v in size.largest_scope[:8])
            raise InputError(
                f"cliques: exact inference would need at least {size.bytes / 2**30:.3g} GiB, for a "
                f"table over {scope}{', …' * (len(size.largest_scope) > 8)} (treewidth "
                f"{size.treewidth}); max_bytes allows {self.max_bytes / 2**30:.3g} GiB. Nothing "
                "was charged. Use fewer or smaller cliques, coarser levels, or inference='loopy'."
            )


def _largest(cliques: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """The cliques that are in no other one, each once."""
    sets = {frozenset(clique): tuple(clique) for clique in cliques if clique}
    return tuple(names for own, names in sets.items() if not any(own < other for other in sets))


def _graph(schema: Schema, cliques: Sequence[Sequence[str]]) -> nx.Graph:
    """All variables as nodes, in column order, and every two in one clique joined."""
    import networkx as nx

    found = nx.Graph()
    found.add_nodes_from(schema.names)
    for clique in cliques:
        able = [name for name in clique if len(schema[name].levels) > 1]  # others depend on nothing
        found.add_edges_from(combinations(able, 2))
    return found
