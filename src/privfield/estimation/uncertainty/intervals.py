"""How sure we are of edges, shares and probabilities: one law, from released numbers alone.

Edges come from `posterior`, each without what is assumed about itself; between yes/no variables
along the curve of their 2 × 2 table (`two_by_two`), else from the normal law (`strengths`). Shares
and probabilities of variables that were counted together are linear in the sums, and need no
model at all. It costs no privacy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from privfield.checks import check_level, check_rng, check_whole
from privfield.errors import InputError
from privfield.estimation.items.edges import ItemUncertainty, item_uncertainty
from privfield.estimation.uncertainty.cautious import cautious
from privfield.estimation.uncertainty.chosen import chosen_chance, chosen_ends
from privfield.estimation.uncertainty.coordinates import (
    Numbers,
    Scope,
    coordinates,
    places,
)
from privfield.estimation.uncertainty.counted import (
    Counted,
    ScopeFit,
    counted,
)
from privfield.estimation.uncertainty.emptied import (
    beside_emptied,
    doubled,
    emptied,
    entangled,
    open_away,
    open_ended,
)
from privfield.estimation.uncertainty.posterior import Posterior, posterior
from privfield.estimation.uncertainty.strengths import (
    NEGLIGIBLE,
    EdgeInterval,
    Edges,
    edge_interval,
    judged,
    null_error,
    plain_edge,
    structural,
    student_degrees,
)
from privfield.estimation.uncertainty.two_by_two import MOST_ERROR, Curves, Places, curves, measured
from privfield.estimation.uncertainty.unchosen import unsettled
from privfield.estimation.uncertainty.without_link import doubted, is_feasible, without_link
from privfield.estimation.uncertainty.zeros import is_determined, undetermined
from privfield.inference.factors import Table
from privfield.kernels.threads import one_thread
from privfield.mechanisms.edges.selection import Selection
from privfield.mechanisms.items.sums import ItemSums, PooledItems
from privfield.models.base import Model
from privfield.models.mrf import MarkovRandomField
from privfield.schema import Schema

MOST_PARAMETERS = 2000  # beyond, simulating their covariance takes minutes
_KNOWN_ERROR, _WIDE = 0.6, 4.0  # of a strength; prior variance of a coordinate in draws
_MOST_DRAWS = 1_000_000
_MOST_DRAWN = 0.25  # median error of strengths: beyond, intervals from draws were too short


@dataclass(frozen=True, eq=False)
class Uncertainty(Counted):
    """A fitted model, and what the numbers that it came from say."""

    law: Posterior
    judging: Posterior  # the same, or one that leans less on what is assumed about other pairs
    free: Table  # directions of the coordinates that change no probability: structural zeros
    selected: bool  # whether the pairs were chosen privately, by what they looked like
    unsettled: frozenset[Scope] = frozenset()  # chosen, but others that were not may show in them
    passed: Mapping[Scope, float] = field(
        default_factory=dict
    )  # by how many people, tests of the chosen

    def edges(self, level: float = 0.95, negligible: float = NEGLIGIBLE) -> Edges:
        """One for each pair of variables that was measured, with its verdict."""
        check_level(level)
        schema, numbers = self.model.schema, self.numbers
        spots = dict(numbers.places())
        fitted = coordinates(self.model, numbers.scopes)
        fixed = structural(schema)
        pairs: list[Scope] = sorted(
            s for s, place in spots.items() if len(s) == 2 and place.stop > place.start
        )
        rows: dict[Scope, EdgeInterval] = {
            s: plain_edge(schema, s, fitted[spots[s]]) for s in pairs
        }
        known = [s for s in pairs if s not in fixed and is_determined(self.free, spots[s])]
        silent = self.unsettled.intersection(known)
        known = [s for s in known if s not in silent]
        seen: dict[Scope, bool] = {s: s not in silent for s in pairs}
        by_curve = [s for s in known if numbers.cells(s) == 4 and all((v,) in spots for v in s)]
        if by_curve:
            self._yes_no(by_curve, rows, seen, level)
        for scope in set(known) - set(by_curve):
            rows[scope] = self._of_levels(rows[scope], scope, level)
            error = null_error(self.judging.alone(spots[scope])[1], scope, numbers.shape)
            seen[scope] = rows[scope].low is None or error <= MOST_ERROR
        self._doubt([s for s in known if seen[s]], by_curve, rows, level)
        tied = self._open(rows, known)
        entangled_pairs = sum(seen[s] for s in tied)  # noise hides the others anyway
        seen.update(dict.fromkeys(tied, False))
        count = len(schema) * (len(schema) - 1) // 2
        listed = [rows[s] for s in pairs]
        tests = count if self.selected else None
        dependent, larger = named_larger(schema, numbers)
        found = judged(listed, [seen[s] for s in pairs], level, negligible, tests, dependent)
        unsettled = len(self._shown(silent, level))
        return Edges(
            found, level, count, unsettled=unsettled, larger=larger, entangled=entangled_pairs
        )

    def _of_levels(self, row: EdgeInterval, scope: Scope, level: float) -> EdgeInterval:
        place = dict(self.numbers.places())[scope]
        law, degrees = self.judging.alone(place), self._degrees(scope, place)
        return edge_interval(row, self.model.schema, scope, law, level, degrees)

    def _doubt(
        self,
        pairs: Iterable[Scope],
        by_curve: Sequence[Scope],
        rows: dict[Scope, EdgeInterval],
        level: float,
    ) -> None:
        """Judge pairs that may be called clear once more, where they have no link."""
        spots = dict(self.numbers.places())
        if self.judging is not self.law or not is_feasible(self.law):
            return
        for scope in pairs:
            row = rows[scope]
            if row.p is None or row.p > 1 - level:
                continue
            law = without_link(self.law, spots[scope], self.model)
            if law is None:
                continue
            there, own = replace(self, judging=law), {scope: row}
            if scope in by_curve:
                there._yes_no([scope], own, {}, level)
            else:
                own[scope] = there._of_levels(row, scope, level)
            rows[scope] = doubted(row, own[scope], level)

    def _shown(self, pairs: Iterable[Scope], level: float) -> list[Scope]:
        """Those that noise alone would not hide."""
        spots, numbers = dict(self.numbers.places()), self.numbers
        listed = sorted(pairs)
        by_curve = [s for s in listed if numbers.cells(s) == 4 and all((v,) in spots for v in s)]
        told = measured(self.law, *self._where(by_curve), level).tolist() if by_curve else []
        shown = [scope for scope, known in zip(by_curve, told, strict=True) if known]
        for scope in set(listed) - set(by_curve):
            covariance = self.judging.alone(spots[scope])[1]
            if null_error(covariance, scope, numbers.shape) <= MOST_ERROR:
                shown.append(scope)
        return shown

    def _open(self, rows: dict[Scope, EdgeInterval], known: Iterable[Scope]) -> set[Scope]:
        """Leave ends open where links empty cells; which pairs such links leave unknown altogether.

        The curves of 2 × 2 tables know of their own cells themselves.
        """
        numbers, variables = self.numbers, self.model.schema.variables
        fixed = structural(self.model.schema)  # nothing is hidden where the schema empties cells
        spots = numbers.places()
        pairs = [s for s, own in spots if len(s) == 2 and own.stop > own.start and s not in fixed]
        every = emptied(numbers, pairs)
        cells = {scope: own for scope, own in every.items() if numbers.cells(scope) > 4}
        between = beside_emptied(cells)

        def is_open(scope: Scope) -> bool:
            row = rows[scope]
            return row.low is None or row.high is None or math.isinf(row.high - row.low)

        tied = entangled(every, numbers.cells, is_open) | doubled(every, pairs)
        tied = tied.intersection(known)
        for scope in known:
            if scope in cells:
                first, second = (len(variables[v].answers) for v in scope)
                rows[scope] = open_ended(rows[scope], cells[scope][:first, :second])
            if scope in between:
                rows[scope] = open_away(rows[scope])
        for scope in tied:
            least = -math.inf if rows[scope].signed else 0.0
            rows[scope] = replace(rows[scope], low=least, high=math.inf, p=1.0)
        return tied

    def _degrees(self, scope: Scope, place: slice) -> float:
        """How long the tails of a pair's noise are, as degrees of freedom of Student's t."""
        numbers = self.numbers
        if not numbers.laplace:
            return math.inf
        sampling = numbers.alike * self.judging.at.sampling[place, place]
        shape = numbers.shape[scope[0]], numbers.shape[scope[1]]
        noise = float(numbers.variances[place].mean())
        return student_degrees(noise, sampling, numbers.laplace, shape)

    def _yes_no(
        self,
        pairs: Sequence[Scope],
        rows: dict[Scope, EdgeInterval],
        seen: dict[Scope, bool],
        level: float,
    ) -> None:
        where = self._where(pairs)
        found = curves(self.judging, *where)
        middles, lows, highs = found.interval(level)
        chances = found.chance()
        if self.passed:
            passed = np.array([self.passed.get(scope, math.inf) for scope in pairs])
            likely = found.possible()
            lows, highs = chosen_ends(likely, passed, level, lows, highs)
            chances = chosen_chance(likely, passed, chances)
        ends = [end / 2 for end in (middles, lows, highs)]
        told = measured(self.law, *where, level).tolist()  # by margins and noise alone
        for number, (scope, known) in enumerate(zip(pairs, told, strict=True)):
            middle, low, high = (float(end[number]) for end in ends)
            rows[scope] = replace(
                rows[scope], estimate=middle, low=low, high=high, p=float(chances[number])
            )
            seen[scope] = known

    def curves(self, pairs: Sequence[Scope]) -> Curves:
        """Of the tables of yes/no variables."""
        return curves(self.judging, *self._where(pairs))

    def _where(self, pairs: Sequence[Scope]) -> tuple[Places, Places, Places]:
        """Where the coordinates of both variables and of their edge are."""
        spots = {scope: place.start for scope, place in self.numbers.places()}
        return (
            np.array([spots[(s[0],)] for s in pairs]),
            np.array([spots[(s[1],)] for s in pairs]),
            np.array([spots[s] for s in pairs]),
        )

    def fit(self) -> tuple[ScopeFit, ...]:
        """How well the law agrees with what was released; it costs nothing to look."""
        found = []
        statistics = self.law.at.statistics
        gaps = self.numbers.sums - self.numbers.total * statistics.mean
        people = self.numbers.total * self.numbers.alike
        spread = people * np.maximum(np.diag(statistics.covariance), 0)  # may round below
        for scope, place in self.numbers.places():
            if place.stop == place.start:
                continue
            noise = self.numbers.variances[place]
            both = np.maximum(spread[place] + noise, 1e-300)
            gap = math.sqrt(float((gaps[place] ** 2 / both).mean()))
            names = tuple(self.model.schema.names[v] for v in scope)
            found.append(
                ScopeFit(names, gap, math.sqrt(noise.mean()), math.sqrt(spread[place].mean()))
            )
        return tuple(found)

    def draws(
        self, count: int, rng: np.random.Generator | None = None
    ) -> tuple[MarkovRandomField, ...]:
        """Models that the released numbers leave possible, drawn from the law of `edges`.

        That most interactions are none is assumed only of those about which little is known:
        others would be pulled towards zero farther than the draws scatter. Where little is known
        about most pairs, that is what happens, and there are no draws.
        """
        check_whole(count, "count", 1, _MOST_DRAWS)
        random = check_rng(rng)
        k, h = self.judging.sites.k.copy(), self.judging.sites.h.copy()
        pairs: list[float] = []
        larger: list[float] = []
        for scope, place in self.numbers.places():
            if len(scope) > 1 and place.stop > place.start:
                variance = float(np.diag(self.law.alone(place)[1]).mean())
                error = math.sqrt(variance / self.numbers.cells(scope))
                (pairs if len(scope) == 2 else larger).append(error)
                if error <= _KNOWN_ERROR:
                    k[place, place], h[place] = np.eye(place.stop - place.start) / _WIDE, 0.0
        # a few well-known interactions of three make the links no better known
        most = max(float(np.median(some)) for some in ([0.0], pairs, pairs + larger) if some)
        if most > _MOST_DRAWN:
            raise InputError(
                "draws: too little is known about the links, because of noise, rare answers or "
                "variables that determine each other. The median standard error of a link's "
                f"strength is {most:.2f}, and above {_MOST_DRAWN} analyses of drawn models are "
                "surer than they should be; .edges() and .ask() say what is known."
            )
        mean, covariance = self.judging.with_factors(k, h)
        values, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.maximum(values, 0))
        errors = random.standard_normal((count, len(mean))) @ root.T
        return tuple(self.numbers.model(mean + e, self.model) for e in errors)


def uncertainty(
    model: Model, measurements: Any, *, rng: np.random.Generator | None = None
) -> Uncertainty | ItemUncertainty | None:
    """What is known beyond the model itself; None where `measurements` or the model admit nothing.

    `measurements` are those that the model was estimated from: noisy tables, selected edges, noisy
    moments, scores of items. Statistics of models too large for exact inference are simulated with
    `rng`.
    """
    known = counted(model, measurements)
    if known is not None and isinstance(measurements, ItemSums | PooledItems):
        return item_uncertainty(known, measurements)
    if known is None or known.numbers.size > MOST_PARAMETERS:
        return None
    numbers = known.numbers
    with one_thread():
        random = np.random.default_rng(0) if rng is None else rng
        law = posterior(numbers, model, random)
        if law is None:
            return None
        judging = cautious(law, model, random)
    free, selected = undetermined(model, numbers.scopes), hasattr(measurements, "measurements")
    search = getattr(measurements, "selection", measurements)  # of a stable structure, if any
    silent, passed = frozenset[Scope](), dict[Scope, float]()
    if isinstance(search, Selection):
        with one_thread():
            silent = unsettled(law, search, model, np.random.default_rng(0))
        passed = {c.pair: c.excess - c.threshold for c in search.choices if c.kept}
    return Uncertainty(model, numbers, law, judging, free, selected, silent, passed)


def plain_edges(model: Model, level: float = 0.95) -> Edges:
    """The edges of a model whose uncertainty is not known."""
    schema, scopes = model.schema, model_pairs(model)
    fitted = coordinates(model, scopes)
    rows = [
        plain_edge(schema, scope, fitted[place])
        for scope, place in places(schema.shape, scopes)
        if place.stop > place.start
    ]
    return Edges(rows, level, len(schema) * (len(schema) - 1) // 2, known=False)


def named_larger(
    schema: Schema, numbers: Numbers
) -> tuple[set[tuple[str, str]], list[tuple[str, ...]]]:
    """Pairs inside interactions of three variables and more, and those, by name."""
    inside, names = numbers.larger(), schema.names
    scopes = sorted({scope for own in inside.values() for scope in own})
    pairs = {(names[a], names[b]) for a, b in inside}
    return pairs, [tuple(names[v] for v in scope) for scope in scopes]


def model_pairs(model: Model) -> list[Scope]:
    """Pairs of variables that share a clique."""
    found: set[tuple[int, int]] = set()
    for clique in model._structure()[1]:
        ordered = sorted(clique)
        found.update((a, b) for i, a in enumerate(ordered) for b in ordered[i + 1 :])
    return sorted(found)


def probability_from(
    model: Model, event: Mapping[str, object], given: Mapping[str, object]
) -> float:
    """P(event | given); 0 where `given` cannot happen."""
    clash = set(event) & set(given)
    if clash or not event:
        raise InputError(
            "event must name at least one variable, and none of those in given"
            + (f"; both have {sorted(clash)[0]!r}." if clash else ".")
        )
    happening = [model.schema[name].code(level) for name, level in event.items()]
    known = [model.schema[name].code(level) for name, level in given.items()]
    table = np.asarray(model.marginal([*given, *event])[tuple(known)])
    whole = float(table.sum())
    return float(table[tuple(happening)]) / whole if whole > 0 else 0.0
