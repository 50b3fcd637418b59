"""What a plan holds: forecasts of methods, proved bounds, and the plan itself."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from privfield.errors import InputError
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import Budget, budget_from_json

_FORMAT = 1


@dataclass(frozen=True)
class MethodForecast:
    """What one method would do with this many rows and this budget.

    `noise_sd` and `sampling_sd` are of one `statistic`, in counts. `sampling_error` and
    `plain_error` are the error without privacy and the error with noise before any shrinkage;
    `expected_error` is what to expect, `largest_error` the largest of its kind, all in the plan's
    metric. `bound` is proved, for the worst case, and `bound_of` says of what. `query_error` is the
    largest error of an answer to a parity query. `success` is the probability that the right graph
    is released. `memory` is in bytes; `passes` counts how often the rows are read;
    `seconds` is a rough guess for one core. A method with `available` False cannot be used; `note`
    says why.
    """

    name: str
    call: str
    statistic: str
    noise_sd: float | None
    sampling_sd: float | None
    expected_error: float | None
    largest_error: float | None
    sampling_error: float | None
    plain_error: float | None
    memory: float
    passes: int
    seconds: float
    bound: float | None = None
    bound_of: str = ""
    query_error: float | None = None
    steps: int | None = None
    blocks: int | None = None
    success: float | None = None
    available: bool = True
    note: str = ""


@dataclass(frozen=True)
class LowerBound:
    """A theorem: no method of that privacy does the task with fewer than `rows` rows."""

    task: str  # "structure" or "parameters"
    privacy: str  # "pure", "zCDP" or "approximate"
    rows: float
    statement: str


@dataclass(frozen=True)
class Table1Row:
    """A privacy notion of the paper's Table 1: proved minimum and predicted need of rows."""

    privacy: str
    structure_bound: float | None
    structure_needed: float | None
    parameters_bound: float | None
    parameters_needed: float | None


@dataclass(frozen=True)
class Plan:
    """What to expect of a study; `pf.plan` makes it, and no data is in it.

    `print(plan)` is one screen. `methods` are sorted, the recommended one first. `needed_n` and
    `needed_budget` would reach `accuracy`, which is compared with `target`.
    """

    model: str
    variables: int
    levels: tuple[int, ...]
    n: int
    budget: Budget
    adjacency: Adjacency
    unit: str
    metric: str
    target: str
    assumption: str
    methods: tuple[MethodForecast, ...]
    verdict: str
    advice: tuple[str, ...]
    accuracy: float | None
    min_weight: float | None
    width: float
    needed_n: int | None
    needed_budget: Budget | None
    max_memory: float | None
    bounds: tuple[LowerBound, ...]
    table: tuple[Table1Row, ...]
    table_notes: tuple[str, ...]

    @property
    def recommended(self) -> MethodForecast:
        """The method to use."""
        return self.methods[0]

    @property
    def expected_error(self) -> float | None:
        """Of the recommended method, in the plan's `metric`."""
        return self.recommended.expected_error

    @property
    def sampling_error(self) -> float | None:
        """What the same method would have without privacy."""
        return self.recommended.sampling_error

    @property
    def privacy_factor(self) -> float | None:
        """Error with privacy over error without, before shrinkage: 1 if privacy costs nothing."""
        best = self.recommended
        if best.plain_error is None or not best.sampling_error:
            return None
        return best.plain_error / best.sampling_error

    @property
    def memory_bytes(self) -> float:
        """Of the recommended method."""
        return self.recommended.memory

    @property
    def fits(self) -> bool | None:
        """Whether it fits in `max_memory`; None if there is no limit."""
        return None if self.max_memory is None else self.memory_bytes <= self.max_memory

    def table1(self) -> str:
        """Table 1 of Zhang et al. (2020) with numbers for this study, as Markdown."""
        from privfield.planning.screen import table_text

        return table_text(self)

    def table1_rows(self) -> list[dict[str, Any]]:
        """The same as plain values."""
        return [asdict(row) for row in self.table]

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
        best = self.recommended.name
        shown = {
            "recommended": best,
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
            given = {field.name: data[field.name] for field in fields(cls)}
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
        from privfield.planning.screen import screen_text

        return screen_text(self)

    def __repr__(self) -> str:
        error = "unknown" if self.expected_error is None else f"{self.expected_error:.3g}"
        return f"<Plan: {self.model}, n = {self.n:,}, {self.recommended.name}, error {error}>"


_PARTS = (MethodForecast, LowerBound, Table1Row)
_TUPLES: dict[str, Any] = {
    "levels": int,
    "methods": MethodForecast,
    "advice": str,
    "bounds": LowerBound,
    "table": Table1Row,
    "table_notes": str,
}
