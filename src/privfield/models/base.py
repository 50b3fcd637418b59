"""What every model answers: probabilities, samples, distances, files."""

from __future__ import annotations

import math
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privfield.checks import check_rng, check_whole, is_word, shown
from privfield.errors import InputError
from privfield.html import table_html
from privfield.inference.factors import Factors, Table
from privfield.models.canonical import canonical
from privfield.models.card import Card, attach
from privfield.models.labels import labelled_rows, labelled_table
from privfield.models.saving import save_model
from privfield.models.solution import Solution
from privfield.schema import Schema
from privfield.stamps import stamped

if TYPE_CHECKING:
    import networkx

    from privfield.inference.contraction.plan import ContractionSize
    from privfield.inference.loopy.propagation import LoopyResult

_MAX_SAMPLE_CELLS = 1 << 34


FORMS: dict[str, Callable[[Any], Any]] = {}  # filled by models/conversions.py, which knows them all


class ForbidsEverything(InputError):
    """The potentials of a model leave no possible state."""


class Model(ABC):
    """A probability distribution over the variables of a schema.

    Exact answers come from tensor contraction. They are refused, with the size, where they would
    take too much memory; `inference_size` tells beforehand. `loopy` and
    ``sample(method="gibbs")`` work at any size.
    """

    stamp: str | None = None  # why this model protects nobody, if so
    card: Card | None = None  # where a fitted model comes from (`privfield.models.card.attach`)
    measurements: Any = None  # what it was estimated from
    solution: Solution | None = None  # how that was solved, where an equation was
    ended: NDArray[np.float64] | None = None  # where a search for its law did, so that none is made

    if TYPE_CHECKING:  # fields or cached properties of the models

        @property
        def schema(self) -> Schema:
            """The variables and their levels."""

        @property
        def factors(self) -> Factors:
            """The log-potentials, structural zeros included, as inference engines read them."""

    def to_mrf(self) -> Any:
        """The same distribution as a `MarkovRandomField`."""
        return FORMS["mrf"](self)

    def to_ising(self) -> Any:
        """The same distribution as an `IsingModel`, where there is one."""
        return FORMS["ising"](self)

    def to_polynomial(self) -> Any:
        """The same distribution as a `PolynomialMRF`: a polynomial in ±1, the second level +1."""
        return FORMS["polynomial"](self)

    @abstractmethod
    def _parts(self) -> tuple[str, dict[str, Any], dict[str, NDArray[Any]]]:
        """Kind, header and arrays of the saved model."""

    @classmethod
    @abstractmethod
    def _from_parts(cls, header: Any, arrays: Any) -> Model:
        """Undo `_parts`; `header` has the stamp too. May raise what it likes on damaged parts."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles carry the model, not what was computed from it."""
        known = (self.stamp, self.card, self.measurements, self.solution, self.ended)
        return rebuild, (type(self), *self._parts()[1:], *known)

    # -- exact answers -----------------------------------------------------------------------------

    @cached_property
    def _exact(self) -> _Exact:
        return _Exact(self.factors, self.schema)

    def inference_size(self) -> ContractionSize:
        """Treewidth, cells and bytes of exact inference, found without doing any."""
        from privfield.inference.contraction.plan import contraction_size

        return contraction_size(*self._structure())

    def _structure(self) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
        """Shape and cliques of `factors`, found without making tables."""
        return self.factors.shape, self.factors.cliques

    def log_partition(self) -> float:
        """log Z = log Σₓ exp(Σ potentials)."""
        return self._exact.log_partition

    def marginal(self, names: Sequence[str], labels: bool = False) -> Any:
        """The joint distribution of some variables, axes in the order asked.

        An array; with `labels` a Series or DataFrame of pandas, with names and levels.
        """
        table = self._exact.marginal(self.schema.clique(names))
        return stamped(labelled_table(table, self.schema, names), self) if labels else table

    def entropy(self) -> float:
        """Shannon entropy in nats."""
        exact = self._exact
        return max(0.0, exact.scaled_log_partition - exact.expected(exact.factors))

    def kl_divergence(self, other: Model) -> float:
        """KL(this ‖ other) in nats, exact; inf where other forbids what this allows."""
        check_same_variables(self, other)
        mine, theirs = self._exact, other._exact
        if not mine.allows_only_what(theirs.factors):
            return math.inf
        inside = mine.expected(mine.factors) - mine.expected(theirs.factors)
        gap = inside - mine.scaled_log_partition + theirs.scaled_log_partition
        return max(0.0, gap)  # rounding may fall below 0

    def log_likelihood(self, data: Any) -> float:
        """The log-probability of all rows together, read in batches; −inf if one is forbidden."""
        from privfield.data.table import open_table

        table, log_z, total = open_table(data, self.schema), self.log_partition(), 0.0
        for batch in table.batches():
            total += float((log_scores(self.factors, batch.columns, batch.rows) - log_z).sum())
        return total

    def condition(self, evidence: Mapping[str, object]) -> Any:
        """The distribution of the other variables, given the levels of these."""
        return self.to_mrf().condition(evidence)

    def most_likely(self) -> dict[str, str]:
        """The most probable state as levels by name; among equals always the same one."""
        from privfield.inference.exact import most_likely_state

        self._exact.log_partition  # noqa: B018 - refuses models without a possible state
        codes = most_likely_state(self._exact.plan, self._exact.factors.tables)
        return {v.name: v.levels[c] for v, c in zip(self.schema.variables, codes, strict=True)}

    def sample(
        self,
        n: int,
        rng: np.random.Generator | None = None,
        method: str = "balanced",
        labels: bool = False,
    ) -> Any:
        """Synthetic rows as codes (−1 and +1 of an Ising model), each with exactly the model's law;
        with `labels` a DataFrame of pandas, with names and levels.

        Rows of "balanced" keep the model's tables: they are several times closer to them than as
        many independent rows, up to 65,536 of them balanced with each other. For simulated people
        ask for "independent" rows. "gibbs" works where both are too large: its rows are only
        nearly independent, and a warning says when the chains did not agree
        (`inference.sampling.sample_gibbs` gives all diagnostics).
        """
        count = check_count(n, len(self.schema))
        codes = self._sample_codes(count, check_rng(rng), method)
        if not labels:
            return self._plain_rows(codes)
        return stamped(labelled_rows(codes, self.schema), self)

    def _plain_rows(self, codes: NDArray[Any]) -> NDArray[Any]:
        wide = max(self.schema.shape) > 256
        return codes.astype(np.uint16 if wide else np.uint8)

    def _sample_codes(self, n: int, rng: np.random.Generator, method: str) -> NDArray[Any]:
        if is_word(method, ("balanced", "independent")):
            from privfield.inference.rows import sample_states

            self._exact.log_partition  # noqa: B018 - refuses models without a possible state
            plan, tables = self._exact.plan, self._exact.factors.tables
            return sample_states(plan, tables, n, rng, balanced=method == "balanced")
        if is_word(method, ("gibbs",)):
            from privfield.inference.sampling import sample_gibbs

            result = sample_gibbs(self.factors, n, rng)
            if n and not result.converged:
                warnings.warn(f"Gibbs sampling: {' '.join(result.messages)}", stacklevel=3)
            assert result.states is not None
            return result.states
        raise InputError(
            f"method must be 'balanced', 'independent' or 'gibbs'; got {shown(method)}."
        )

    def loopy(self, **options: Any) -> LoopyResult:
        """Approximate marginals and log Z by loopy belief propagation, with its convergence."""
        from privfield.inference.loopy.propagation import loopy_belief_propagation

        return loopy_belief_propagation(self.factors, **options)

    def _repr_html_(self) -> str:
        card = self.card if self.stamp is None else None  # a stamped model promises nothing
        promise = "" if card is None else f"\n{card.promise()}"
        rows = [(v.name, ", ".join(v.levels[:8])) for v in self.schema.variables]
        return table_html(f"{self!r}{promise}", ("variable", "levels"), rows)

    # -- graph and file ----------------------------------------------------------------------------

    def graph(self) -> networkx.Graph:
        """The dependency graph: every variable is a node, in column order."""
        import networkx as nx

        graph = nx.Graph()
        graph.add_nodes_from(self.schema.names)
        for clique in self.factors.cliques:
            able = [v for v in clique if self.schema.shape[v] > 1]  # others depend on nothing
            names = [self.schema.names[v] for v in able]
            graph.add_edges_from(
                (a, b) for i, a in enumerate(names) for b in names[i + 1 :] if a != b
            )
        return stamped(graph, self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a zip of JSON and arrays; `pf.load` reads it."""
        save_model(self, path)

    def plot(
        self, path: str | os.PathLike[str] | None = None, kind: str = "network", **options: Any
    ) -> Any:
        """Draw the "network" or the "marginals" with matplotlib, into `path` if one is given."""
        from privfield.reporting import on_models

        return on_models.plot(self, path, kind, **options)

    # -- how sure we are: from what the model was estimated from -----------------------------------

    def edges(self, level: float = 0.95, negligible: float = 0.05) -> Any:
        """Strength, interval, p-value and verdict of each pair that was measured, as in a report.

        "clear" edges stand out when all are judged together, "absent" ones have an interval within
        ±`negligible`; others are "uncertain" or, where noise leaves no information, "not measured".
        So are pairs that private selection chose and in which links that it may have missed would
        show. Pairs that were measured together with a third variable are never "absent": theirs is
        the mean over its levels. `.to_pandas()` has the columns of `EdgeInterval`.
        """
        from privfield.reporting import on_models

        return on_models.edges(self, level, negligible)

    def ask(self, question: str, level: float = 0.95) -> Any:
        """The answer to "P(low mood=yes | age=40-65)": `estimate`, and `low`, `high` where known.

        The interval covers sampling and privacy noise together. There is one for questions about
        variables that were counted together, and about two items on a scale; else `note` says why
        there is none.
        """
        from privfield.reporting import on_models

        return on_models.ask(self, question, level)

    def centrality(self, level: float = 0.95) -> Any:
        """Strength, expected influence, closeness, betweenness and predictability of each variable,
        and which belong together: with intervals, and how stable the order is.

        Where not all pairs were measured, or noise leaves no information about some, there are no
        intervals, and `note` says why. `.to_pandas()` has a row for each variable.
        """
        from privfield.reporting import on_models

        return on_models.centrality(self, level)

    def draws(self, m: int, rng: np.random.Generator | None = None) -> tuple[Any, ...]:
        """`m` models that what was released leaves possible, for analyses that use them all."""
        from privfield.reporting import on_models

        return on_models.draws(self, m, rng)


def set_fields(model: Any, **values: Any) -> None:
    """Fill in the fields of a frozen value that is being made."""
    for name, value in values.items():
        object.__setattr__(model, name, value)


def rebuild(
    kind: Any,
    header: Any,
    arrays: Any,
    stamp: str | None,
    card: Card | None,
    released: Any,
    solution: Solution | None = None,
    ended: NDArray[np.float64] | None = None,
) -> Any:
    """A model from what a pickle holds."""
    model = kind._from_parts({**header, "stamp": stamp}, arrays)
    return attach(model, card, released, solution, ended)


class _Exact:
    """Exact answers from canonical factors; what was computed once is kept."""

    def __init__(self, factors: Factors, schema: Schema) -> None:
        from privfield.inference.contraction.plan import contraction_size, plan_contraction

        self.factors, self._constant = canonical(factors)
        self._schema = schema
        try:
            self.plan = plan_contraction(self.factors.shape, self.factors.cliques)
        except InputError:
            size = contraction_size(self.factors.shape, self.factors.cliques)
            names = [schema.names[position] for position in size.largest_scope]
            raise InputError(
                f"exact answers would need at least {size.bytes / 2**30:.3g} GiB: the variables "
                f"{', '.join(names[:8])}{', …' if len(names) > 8 else ''} depend on each other "
                f"(treewidth {size.treewidth}). Use loopy belief propagation (model.loopy()) or "
                'model.sample(n, method="gibbs"), fewer cliques, or coarser levels.'
            ) from None
        self._homes: dict[int, list[int]] = {}
        for number, clique in enumerate(self.factors.cliques):
            for variable in clique:
                self._homes.setdefault(variable, []).append(number)

    @cached_property
    def scaled_log_partition(self) -> float:
        """log Z of the canonical factors."""
        found = self.plan.log_partition(self.factors.tables)
        if found == -math.inf:
            raise ForbidsEverything(
                "the model forbids every state: its potentials leave no possibility."
            )
        return float(found)

    @property
    def log_partition(self) -> float:
        """log Z of the factors as given."""
        return self.scaled_log_partition + self._constant

    @cached_property
    def _clique_marginals(self) -> list[Table]:
        self.scaled_log_partition  # noqa: B018 - refuses models without a possible state
        return self.plan.run(self.factors.tables)[1]

    def marginals(self, cliques: Sequence[tuple[int, ...]]) -> list[Table]:
        """Joint distributions of sets of variables, which need share no clique."""
        from privfield.inference.exact import marginals

        known = [self._from_clique(clique) for clique in cliques]
        missing = [c for c, table in zip(cliques, known, strict=True) if table is None]
        found = iter(marginals(self.factors, missing)[1] if missing else ())
        return [next(found) if table is None else table for table in known]

    def marginal(self, clique: tuple[int, ...]) -> Table:
        """The joint distribution of one set of variables."""
        return self.marginals([clique])[0]

    def expected(self, factors: Factors) -> float:
        """The expectation of the sum of log-potentials of `factors`, whose zeros are ours too."""
        tables = self.marginals(factors.cliques)
        total = 0.0
        for probability, potential in zip(tables, factors.tables, strict=True):
            possible = probability > 0
            total += float(probability[possible] @ potential[possible])
        return total

    def allows_only_what(self, factors: Factors) -> bool:
        """Whether every state that is possible here is possible there.

        Judged by support, not by probabilities, which may be too small for a float.
        """
        zeros = [
            (clique, np.isneginf(table))
            for clique, table in zip(factors.cliques, factors.tables, strict=True)
            if np.isneginf(table).any()
        ]
        if not zeros:
            return True
        flat = [np.where(np.isneginf(table), -np.inf, 0.0) for table in self.factors.tables]
        support = _Exact(
            Factors(self.factors.shape, self.factors.cliques, tuple(flat)), self._schema
        )
        found = support.marginals([clique for clique, _ in zeros])
        return not any(
            (p[forbidden] > 0).any() for p, (_, forbidden) in zip(found, zeros, strict=True)
        )

    def _from_clique(self, wanted: tuple[int, ...]) -> Table | None:
        if not wanted:
            self.scaled_log_partition  # noqa: B018 - refuses models without a possible state
            return np.ones(())
        for number in self._homes.get(wanted[0], ()):
            clique = self.factors.cliques[number]
            if set(wanted) <= set(clique):
                table = self._clique_marginals[number]
                drop = tuple(axis for axis, v in enumerate(clique) if v not in wanted)
                kept = [v for v in clique if v in wanted]
                return np.transpose(table.sum(axis=drop), [kept.index(v) for v in wanted])
        return None


def log_scores(factors: Factors, columns: Sequence[NDArray[Any]], rows: int) -> Table:
    """The sum of log-potentials of each row of codes."""
    scores = np.zeros(rows)
    for clique, table in zip(factors.cliques, factors.tables, strict=True):
        scores += table[tuple(columns[position] for position in clique)]
    return scores


def check_same_variables(model: Model, other: object) -> None:
    """Refuse to compare models over different variables or levels."""
    if not isinstance(other, Model):
        raise InputError(f"other must be a model; got {type(other).__name__}.")
    mine = [(v.name, v.levels) for v in model.schema.variables]
    if mine != [(v.name, v.levels) for v in other.schema.variables]:
        raise InputError("other must have the same variables with the same levels, in order.")


def check_count(n: object, variables: int) -> int:
    """A number of samples that fits in memory, or an `InputError`."""
    if isinstance(n, float) and n.is_integer():
        n = int(n)
    count = check_whole(n, "n", 0)
    if count * variables > _MAX_SAMPLE_CELLS:
        raise InputError(
            f"n must be at most {_MAX_SAMPLE_CELLS // variables:,} for {variables:,} variables at "
            f"once; got {n:,}. Sample in parts."
        )
    return count
