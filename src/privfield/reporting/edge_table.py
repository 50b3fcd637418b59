"""The table of edges: rows for the page, records for its script and for CSV."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from privfield.estimation.uncertainty.strengths import EdgeInterval
from privfield.reporting import drawing
from privfield.reporting.findings import Findings

Content = dict[str, Any]

_MOST_ROWS = 2000
_MOST_REACH = 5.0  # of axes, for the sake of intervals that reach anywhere
_MOST_PRINTED = 40  # uncertain edges on paper


def edge_table(
    found: Findings,
    verdicts: Sequence[str],
    level: float,
    picture: drawing.Drawing | None,
    pairs: int,
) -> Content | None:
    """All edges, the strongest first; None for a model without any."""
    if not found.edges:
        return None
    order = sorted(zip(found.edges, verdicts, strict=True), key=lambda each: -abs(each[0].estimate))
    if len(order) > _MOST_ROWS:
        order.sort(key=lambda each: each[1] not in ("clear", "chance", "estimated"))
    shown = sorted(order[:_MOST_ROWS], key=lambda each: -abs(each[0].estimate))
    places = {} if picture is None else {id(d.edge): n for n, d in enumerate(picture.edges)}
    intervals = found.method != "none"
    reach = _reach([edge for edge, _ in shown])
    pale = sum(status == "uncertain" for _, status in shown)
    return {
        "texts": [_by_chance(found, verdicts, level)] if intervals else [],
        "caption": "Strength of each edge" + f", with its {level:.0%} interval" * intervals,
        "intervals": intervals,
        "odds": any(edge.signed for edge, _ in shown),
        "axis_low": drawing.minus(-reach, "g"),
        "axis_high": f"{reach:g}",
        "rows": [_edge_row(edge, status, reach) for edge, status in shown],
        "unprinted": pale if pale > _MOST_PRINTED else 0,
        "left_out": _left_out(len(order) - len(shown), pairs - len(order)),
        "data": {
            "columns": ["first", "second", "strength", "low", "high", "odds_ratio", "verdict"],
            "rows": [_edge_record(edge, status, places.get(id(edge))) for edge, status in shown],
        },
    }


def _reach(edges: Sequence[EdgeInterval]) -> float:
    """How far the little axes go: all estimates, and half of the intervals, have their place."""
    most = 1.6 * max(abs(edge.estimate) for edge in edges)
    ends = [max(abs(e.low), abs(e.high)) for e in edges if e.low is not None and e.high is not None]
    if ends:
        most = max(most, min(1.1 * median(ends), _MOST_REACH))
    return float(f"{most:.1g}") * (1 if float(f"{most:.1g}") >= most else 1.2) or 1.0


def _by_chance(found: Findings, verdicts: Sequence[str], level: float) -> str:
    chance = (1 - level) * len(found.edges)
    text = "Each interval is for its own edge."
    if chance >= 1:
        text += (
            f" If no two variables were related at all, about {round(chance):,} of these "
            f"{len(found.edges):,} intervals would still exclude zero."
        )
    if "chance" in verdicts:
        text += (
            " Edges marked “may be chance” do not stand out when all are judged together (false "
            f"discovery rate {1 - level:.0%}, Benjamini and Hochberg)."
        )
    return text


def _left_out(weak: int, outside: int) -> str:
    parts = []
    if weak:
        parts.append(f"{weak:,} weaker edges are not listed.")
    if outside:
        parts.append(f"The other {outside:,} pairs of variables have no edge in this model.")
    return " ".join(parts)


def _edge_row(edge: EdgeInterval, status: str, reach: float) -> Content:
    def place(value: float) -> float:
        return min(100.0, max(0.0, 50 + 50 * value / reach))

    row = {
        "first": edge.first,
        "second": edge.second,
        "estimate": drawing.signed(edge),
        "odds": drawing.odds(edge.estimate) if edge.signed else "",
        "status": status,
        "verdict": drawing.NAMES.get(status, status),
        "color": drawing.look(edge, status, 1.0).color if status != "uncertain" else "#6b7480",
        "at": f"{place(edge.estimate):.1f}",
        **dict.fromkeys(("low", "high"), ""),
        **dict.fromkeys(("left", "width"), "0"),
    }
    if edge.low is not None and edge.high is not None:
        left, right = place(edge.low), place(edge.high)
        row |= {
            "low": drawing.minus(edge.low),
            "high": drawing.minus(edge.high),
            "left": f"{left:.1f}",
            "width": f"{right - left:.1f}",
        }
    return row


def _edge_record(edge: EdgeInterval, status: str, place: int | None) -> list[Any]:
    def digits(value: float | None) -> float | None:
        return None if value is None else float(f"{value:.6g}")

    ratio = float(drawing.odds(edge.estimate)) if edge.signed else None
    ends = [digits(edge.estimate), digits(edge.low), digits(edge.high)]
    return [edge.first, edge.second, *ends, ratio, drawing.NAMES.get(status, status), place]
