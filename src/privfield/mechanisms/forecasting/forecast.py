"""What to expect of one way to do a study."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

NEAR = 1.1  # errors within a tenth make no difference


class Answers(IntEnum):
    """What can be asked of the result; the more, the better where errors are about the same."""

    LITTLE = 0  # the graph, or numbers without intervals
    SOME_PAIRS = 1  # pairs that were selected, with intervals; others read "not measured"
    GRAPH = (
        2  # pairs of a graph that was released, with intervals; others are known to have no edge
    )
    EVERYTHING = 3  # every pair, every parity, or every parameter


@dataclass(frozen=True)
class Forecast:
    """What one way would do with this many rows and this budget.

    `noise_sd` and `sampling_sd` are of one `statistic`, in counts. `sampling_error` and
    `plain_error` are the error without privacy and the error with noise before any shrinkage;
    `expected_error` is what to expect, `largest_error` the largest of its kind, all in the metric
    of the study. `alone_error` is what single variables alone, with the whole budget, would err on
    a real table. `bound` is proved, for the worst case, and `bound_of` says of what. `query_error`
    is the largest error of an answer to a parity query. `success` is the probability that the right
    graph is released, `found` the share of edges that would show. `memory` is in bytes; `passes`
    counts how often the rows are read; `seconds` is a rough guess for one core. `least_risk` and
    `most_risk` bound how far edges that a search misses may move those that it finds, in standard
    errors. A way with `available` False cannot be used, and one that `asks` for something
    is taken only where that is declared; `note` says why.
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
    found: float | None = None
    available: bool = True
    asks: str = ""
    note: str = ""
    answers: Answers = Answers.LITTLE
    least_risk: float = 0.0
    most_risk: float = 0.0
    alone_error: float | None = None


def refused(name: str, call: str, statistic: str, note: str, memory: float = 0.0) -> Forecast:
    """A way that cannot be used, and why."""
    return Forecast(
        *(name, call, statistic, None, None, None, None, None, None, memory, 1, 0.0),
        available=False,
        note=note,
    )
