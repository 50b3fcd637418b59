"""The table of edges: rows for the page, records for its script and for CSV."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import Any

from privfield.estimation.uncertainty.strengths import USELESS, EdgeInterval
from privfield.reporting import drawing
from privfield.reporting.findings import Findings
from privfield.words import counted

Content = dict[str, Any]

COLUMNS = (
    *("first", "second", "strength", "low", "high", "odds_ratio", "in_the_model", "p", "verdict"),
)
_MOST_ROWS = 2000
_MOST_REACH = 5.0  # of axes, for the sake of intervals that reach anywhere
_STEPS = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 12)  # of round numbers, and one to spare
_MOST_PRINTED, _LONG = 40, 60  # uncertain edges on paper; rows of a table that is long without
_FIRST = ("clear", "no interval")  # where not all can be listed


def edge_table(found: Findings, picture: drawing.Drawing | None) -> Content | None:
    """All edges, the strongest first; None for a model without any."""
    if not found.edges:
        return None
    order = sorted(found.edges, key=lambda edge: -drawing.magnitude(edge))
    if len(order) > _MOST_ROWS:
        order.sort(key=lambda edge: edge.verdict not in _FIRST)
    shown = sorted(order[:_MOST_ROWS], key=lambda edge: -drawing.magnitude(edge))
    places = {} if picture is None else {id(d.edge): n for n, d in enumerate(picture.edges)}
    reach = _reach(shown)
    absent = sum(edge.verdict == "absent" for edge in shown)
    pale = sum(edge.verdict in ("uncertain", "not measured") for edge in shown)
    pale = pale if pale > _MOST_PRINTED or len(shown) > _LONG else 0
    many_absent = absent > _MOST_PRINTED
    beyond = [edge.verdict == "no interval" for edge in shown]
    beyond[:_LONG] = [False] * len(beyond[:_LONG])
    level = found.edges.level
    return {
        "heading": "The edges",
        "texts": [_both_estimates(), _judged_together(level)] if found.intervals else [],
        "column": "Strength",
        "caption": "Strength of each edge" + f", with its {level:.0%} interval" * found.intervals,
        "intervals": found.intervals,
        "odds": any(edge.signed for edge in shown),
        "axis_low": drawing.minus(-reach, "g"),
        "axis_high": f"{reach:g}",
        "rows": [
            _edge_row(edge, reach) | {"beyond": " beyond" * weak}
            for edge, weak in zip(shown, beyond, strict=True)
        ],
        "brief": " brief" * bool(pale) + " bare" * many_absent,
        "unprinted": _unprinted(pale, absent if many_absent else 0, sum(beyond)),
        "left_out": _left_out(found, len(order) - len(shown)),
        "data": {
            "columns": list(COLUMNS),
            "rows": [[*record(edge), places.get(id(edge))] for edge in shown],
        },
    }


def _unprinted(pale: int, absent: int, weaker: int) -> str:
    """What is not on paper."""
    judged = pale + absent
    if not judged + weaker:
        return ""
    are, were = ("is", "was") if judged == 1 else ("are", "were")
    kinds = [f"{are} uncertain or {were} not measured"] * bool(pale) + [f"{are} absent"] * bool(
        absent
    )
    left = [f"{counted(judged, 'edge')} that {' or '.join(kinds)}"] * bool(judged)
    left += [counted(weaker, "weaker edge") + " without an interval" * bool(judged)] * bool(weaker)
    verb, they = ("is", "it is") if judged + weaker == 1 else ("are", "they are")
    return f"{' and '.join(left)} {verb} not printed; {they} in the HTML file."


def _reach(edges: Sequence[EdgeInterval]) -> float:
    """How far the little axes go.

    Most estimates, half of the intervals and those of clear edges have their place.
    """
    most = 1.6 * max(drawing.magnitude(edge) for edge in edges if edge.verdict != "not measured")
    ends = [max(abs(e.low), abs(e.high)) for e in edges if e.low is not None and e.high is not None]
    if ends:
        most = max(most, 1.1 * median(ends), *_clear_ends(edges))
    return _rounded_up(min(most, _MOST_REACH)) or 1.0


def _clear_ends(edges: Sequence[EdgeInterval]) -> list[float]:
    """How far intervals of clear edges go from zero."""
    clear = [edge for edge in edges if edge.verdict == "clear"]
    return [abs(end) for edge in clear for end in (edge.low, edge.high) if end is not None]


def _rounded_up(value: float) -> float:
    """The next number that looks round."""
    if value <= 0:
        return 0.0
    power = 10.0 ** math.floor(math.log10(value))
    return float(f"{power * next(step for step in _STEPS if step * power >= value):.2g}")


def _both_estimates() -> str:
    return (
        "“Strength” is what the released numbers say about the pair, with its interval around it. "
        "“In the model” is the same strength in the fitted model, the one that makes synthetic "
        "data and answers questions about many variables: where noise is large it is pulled "
        "towards zero, or towards a size that the edges have in common, which makes predictions "
        "better on average."
    )


def _judged_together(level: float) -> str:
    return (
        "Each interval is for its own edge. Verdicts judge all edges together: of those called "
        f"clear, on average at most {1 - level:.0%} are not there (Benjamini and Hochberg)."
    )


def _left_out(found: Findings, weak: int) -> str:
    parts = []
    if weak:
        parts.append(f"Not listed: {counted(weak, 'weaker edge')}.")
    outside = found.edges.pairs - len(found.edges)
    if outside and found.intervals:
        parts.append(
            f"The other {counted(outside, 'pair')} of variables were not measured: nothing is "
            "known about whether they are related."
        )
    elif outside:
        parts.append(f"The other {counted(outside, 'pair')} have no edge in this model.")
    return " ".join([*parts, *([found.edges.note] if found.edges.note else [])])


def _edge_row(edge: EdgeInterval, reach: float) -> Content:
    def place(value: float) -> float:
        return min(100.0, max(0.0, 50 + 50 * value / reach))

    firm = edge.verdict not in ("uncertain", "not measured")
    row = {
        "first": edge.first,
        "second": edge.second,
        "estimate": drawing.strength(edge),
        "fitted": drawing.minus(edge.fitted, "+.2f" if edge.signed else ".2f"),
        "odds": drawing.odds(edge.estimate, edge) if edge.signed else "",
        "status": edge.verdict.replace(" ", "-"),
        "verdict": edge.verdict,
        "color": drawing.look(edge, 1.0).color if firm else "#6b7480",
        "at": f"{place(edge.estimate):.1f}",
        **dict.fromkeys(("low", "high"), ""),
        **dict.fromkeys(("left", "width"), "0"),
    }
    if edge.low is not None and edge.high is not None:
        left, right = place(edge.low), place(edge.high)
        row |= {
            "low": drawing.minus(edge.low) if abs(edge.low) <= USELESS else "no limit",
            "high": drawing.minus(edge.high) if abs(edge.high) <= USELESS else "no limit",
            "left": f"{left:.1f}",
            "width": f"{right - left:.1f}",
        }
    return row


def record(edge: EdgeInterval) -> list[Any]:
    """An edge as `COLUMNS`; what is infinite or not known is None."""

    def digits(value: float | None) -> float | None:
        return None if value is None or math.isinf(value) else float(f"{value:.6g}")

    ratio = drawing.odds(edge.estimate, edge) if edge.signed else ""
    numbers = [digits(edge.estimate), digits(edge.low), digits(edge.high)]
    return [
        *(edge.first, edge.second, *numbers, float(ratio) if ratio else None),
        *(digits(edge.fitted), digits(edge.p), edge.verdict),
    ]
