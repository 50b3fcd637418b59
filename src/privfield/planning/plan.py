"""`pf.plan`: what a study will cost and how good it will be, before any data is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from privfield.checks import MOST_ROWS, check_whole
from privfield.errors import InputError
from privfield.html import table_html
from privfield.mechanisms.forecasting.calls import budget_call
from privfield.mechanisms.forecasting.choose import forecasts, ranked
from privfield.mechanisms.forecasting.forecast import Answers, Forecast
from privfield.mechanisms.forecasting.study import Study
from privfield.planning.bounds import lower_bounds, why_none
from privfield.planning.facts import LowerBound, PlanFacts, Table1Row
from privfield.planning.needs import alone, budget_needed, rows_needed, with_noise
from privfield.planning.request import check_study
from privfield.planning.screen import screen_text, table_text
from privfield.planning.table1 import live_table
from privfield.planning.theorems import Calculated, theorems_of
from privfield.planning.verdict import METRICS, advice, assumption, verdict
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import Budget, budget_from_json, in_words
from privfield.privacy.rounding import Number
from privfield.schema import Schema
from privfield.words import bytes_text, duration_text

_FORMAT = 1


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
    guess: float | None = None,
    states: Any = None,
    limit: Number = 4,
    coupling: float | None = None,
    sites: int = 1,
) -> Plan:
    """Predict noise, error, memory and passes of every method that fits; no argument takes data.

    `schema_or_shape` is a schema, a list of numbers of levels, or a number of two-level variables.
    `n` is the number of rows (of people for chains, of nodes for peer effects), or a guess of it.
    `accuracy` is the error you can live with: the plan then says how n or the budget would have to
    change. `min_weight` is the weakest edge that matters. `width` bounds the summed |weights| of a
    variable. `coupling` is a guess of a typical coupling, 0.4 (or half the width) unless given:
    strong ones are harder to estimate. `max_memory` is a number of bytes, or text such as "8GB".
    Chains take `states` and `limit`; peer effects a `network`, as `pf.PeerEffect` does, or
    (nodes, edges, largest degree), and a `guess` of β. With `sites`, the n people are spread over
    so many places, each of which spends `budget` on its own people, for `pf.pool`.

    The method recommended is the one that learners with "auto" and `privfield fit` take.

    >>> import privfield as pf
    >>> p = pf.plan(20, n=5000, budget=pf.ApproxDP(1, 1e-6))
    >>> p.recommended.name, p.verdict
    ('moments', 'Privacy costs about as much as sampling error.')
    """
    sites = check_whole(sites, "sites", 1, MOST_ROWS)
    study = check_study(
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
        guess=guess,
        states=states,
        limit=limit,
        coupling=coupling,
    )
    study, gaussian = alone(study, sites)
    found = make_plan(study, budget, sites, gaussian)
    return found if sites == 1 else _pooled(found, study)


def _pooled(found: Plan, study: Study) -> Plan:
    """The plan of one table with as much noise as all sites together, in words of the sites.

    What is proved holds for any method with that budget, one that pools sites included; the table
    of rows is about one table.
    """
    noise = (
        f"{found.sites} sites with {in_words(found.budget)} each: their noise adds up, so the "
        f"errors above are those of one table of all people at {in_words(study.budget)}."
    )
    calls = budget_call(study.budget), budget_call(found.budget)
    rows = f"declared_rows={found.n}", f"declared_rows={found.n // found.sites}"
    own = replace(study, budget=found.budget, base=found.budget)
    bounds = lower_bounds(own)
    return replace(
        found,
        methods=tuple(
            replace(way, call=way.call.replace(*calls).replace(*rows)) for way in found.methods
        ),
        advice=(noise, *found.advice),
        bounds=bounds,
        bounds_note=why_none(own, bounds),
        table=(),
        table_notes=(),
    )


def _gap_levels(study: Study) -> int:
    """Variables with a level that means a gap; an ordinal model speaks of those who answered."""
    if study.schema is None or study.model == "ordinal":
        return 0
    return sum(variable.has_gap for variable in study.schema.variables)


def make_plan(study: Study, spent: Budget, sites: int, gaussian: bool = False) -> Plan:
    """Ask every mechanism that fits, and say what follows from their forecasts.

    Budgets that the plan names are those of each site, what is `spent` there and what is needed;
    noise of several sites is `gaussian`, or it is not.
    """
    ways = tuple(ranked(forecasts(study), study))
    best = ways[0]
    needed_n = needed_budget = None
    if study.accuracy is not None and best.available:
        needed_n, needed_budget = rows_needed(best.name, study), budget_needed(best.name, study)
    if needed_budget is not None and sites > 1:
        needed_budget = with_noise(needed_budget, 1 / sites, gaussian)
    table, notes = live_table(study)
    metric, target = METRICS[study.model]
    bounds = lower_bounds(study)
    return Plan(
        model=study.model,
        variables=study.variables,
        levels=study.rules.answered().shape if study.model == "ordinal" else study.shape,
        gaps=_gap_levels(study),
        n=study.n,
        budget=spent,
        adjacency=study.adjacency,
        unit="outcome" if study.model == "peer" else study.unit.name,
        metric=metric,
        target=target,
        assumption=assumption(study),
        methods=ways,
        verdict=verdict(best, study),
        advice=tuple(advice(ways, study, needed_n, needed_budget, spent)),
        accuracy=study.accuracy,
        min_weight=study.min_weight,
        width=study.width,
        needed_n=needed_n,
        needed_budget=needed_budget,
        max_memory=study.max_memory,
        bounds=bounds,
        bounds_note=why_none(study, bounds),
        table=table,
        table_notes=notes,
        sites=sites,
    )


@dataclass(frozen=True, repr=False)
class Plan(PlanFacts):
    """What to expect of a study; `pf.plan` makes it, and no data is in it.

    `print(plan)` is one screen. `methods` are sorted, the recommended one first. `needed_n` and
    `needed_budget` would reach `accuracy`, which is compared with `target`. `bounds` are proved for
    every method; where there are none, `bounds_note` says why.
    """

    def table1(self) -> str:
        """Table 1 of Zhang et al. (2020) with numbers for this study, as Markdown."""
        return table_text(self)

    def table1_rows(self) -> list[dict[str, Any]]:
        """The same as plain values."""
        return [asdict(row) for row in self.table]

    def theorems(self) -> tuple[Calculated, ...]:
        """What the theorems of Zhang et al. (2020) say of this study: proved, or orders only."""
        return theorems_of(self)

    def to_json(self) -> dict[str, Any]:
        """Plain values for `json.dumps`; `Plan.from_json` gives an equal plan back."""
        found: dict[str, Any] = {"format": _FORMAT, "kind": "plan"}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Budget):
                value = value.to_json()
            elif isinstance(value, tuple):
                value = [asdict(each) if isinstance(each, _PARTS) else each for each in value]
            found[field.name] = str(value) if isinstance(value, Adjacency) else value
        shown = {
            "recommended": self.recommended.name,
            "expected_error": self.expected_error,
            "sampling_error": self.sampling_error,
            "privacy_factor": self.privacy_factor,
            "memory_bytes": self.memory_bytes,
            "fits": self.fits,
        }
        return {**found, **shown}

    @classmethod
    def from_json(cls, data: Any) -> Plan:
        """Undo `to_json`; anything else is an `InputError`."""
        try:
            if data["format"] != _FORMAT or data["kind"] != "plan":
                raise ValueError
            given = {field.name: data[field.name] for field in fields(cls) if field.name in data}
            given["budget"] = budget_from_json(given["budget"])
            if given["needed_budget"] is not None:
                given["needed_budget"] = budget_from_json(given["needed_budget"])
            given["adjacency"] = Adjacency.parse(given["adjacency"])
            for name, part in _TUPLES.items():
                given[name] = tuple(
                    part(**each) if isinstance(each, dict) else each for each in given[name]
                )
            return cls(**given)
        except (KeyError, TypeError, ValueError):  # InputError too
            raise InputError("this is not the JSON of a plan.") from None

    def __str__(self) -> str:
        return screen_text(self)

    def _repr_html_(self) -> str:
        rows = [
            (w.name, w.expected_error, w.noise_sd, bytes_text(w.memory), duration_text(w.seconds))
            for w in self.methods
            if w.available
        ]
        head = ("method", self.metric, "noise of a number", "memory", "time")
        said = "\n".join([repr(self), self.verdict, *self.advice])
        return table_html(said, head, rows)

    def __repr__(self) -> str:
        error = "unknown" if self.expected_error is None else f"{self.expected_error:.3g}"
        return f"<Plan: {self.model}, n = {self.n:,}, {self.recommended.name}, error {error}>"


def _forecast(**given: Any) -> Forecast:
    return Forecast(**{**given, "answers": Answers(given.get("answers", 0))})


_PARTS = (Forecast, LowerBound, Table1Row)
_TUPLES: dict[str, Any] = {
    "levels": int,
    "methods": _forecast,
    "advice": str,
    "bounds": LowerBound,
    "table": Table1Row,
    "table_notes": str,
}
