"""What a plan says, as plain values: forecasts, proved bounds, and what would have to change."""

from __future__ import annotations

from dataclasses import dataclass

from privfield.mechanisms.forecasting.forecast import Forecast
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import Budget


@dataclass(frozen=True)
class LowerBound:
    """A theorem: no method of that privacy does the task with fewer than `rows` rows."""

    task: str  # "structure" or "parameters"
    privacy: str  # "pure", "zCDP" or "approximate"
    rows: float
    statement: str


@dataclass(frozen=True)
class Table1Row:
    """A privacy notion of the paper's Table 1: proved minimum, predicted need of rows, its growth.

    Growth is how many times as many rows ten times the variables need.
    """

    privacy: str
    structure_bound: float | None
    structure_needed: float | None
    parameters_bound: float | None
    parameters_needed: float | None
    structure_growth: float | None = None
    parameters_growth: float | None = None


@dataclass(frozen=True)
class PlanFacts:
    """`methods` are sorted, the recommended one first. `needed_n` and `needed_budget` would reach
    `accuracy`, which is compared with `target`.
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
    methods: tuple[Forecast, ...]
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
    sites: int = 1  # over which the rows are spread, each with the budget
    gaps: int = 0  # variables of which one level is that the answer is missing
    bounds_note: str = ""  # why there are no `bounds`, where there are none

    @property
    def recommended(self) -> Forecast:
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
