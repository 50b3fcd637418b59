"""Whether a Spark frame gives the same rows each time, as far as its plan tells."""

from __future__ import annotations

import re
from typing import Any

from privfield.errors import InputError

_ADVICE = (
    "A task that Spark runs again would read other rows, and one record could count twice. Write "
    "the frame to a table and read that, or pass frame.checkpoint()."
)
_ANY_ROWS = {"Limit", "LocalLimit", "GlobalLimit", "Tail", "Offset", "Sample"}
_BY_ORDER = re.compile(r"\b(first|first_value|last|last_value|any_value|collect_list|mode)\(")


def check_plan(frame: Any) -> None:
    """Refuse a frame whose plan shows that it may differ from one reading to the next."""
    if frame.isStreaming:
        raise InputError("data: the Spark frame is a stream, which has no end. Read a table.")
    plan = frame._jdf.queryExecution().analyzed()
    if not plan.deterministic():
        _refuse("an expression that is not deterministic, such as rand()")
    nodes = _nodes(plan)
    for name, ordered in nodes:
        if name in _ANY_ROWS and not ordered:
            _refuse(f"{name}, which takes any rows")
        if name == "Deduplicate":
            _refuse("dropDuplicates, which keeps any of several rows")
        if name.startswith("Aggregate") and _BY_ORDER.search(name):
            _refuse("an aggregate that depends on the order of rows")


def _refuse(what: str) -> None:
    raise InputError(f"data: the plan of the Spark frame has {what}. {_ADVICE}")


def _nodes(plan: Any) -> list[tuple[str, bool]]:
    """The operators of a plan, and whether each one's rows come sorted; aggregates in full."""
    children = plan.children()
    below = [children.apply(place) for place in range(children.size())]
    name = plan.nodeName()
    inner = below[0] if below else None
    while inner is not None and inner.nodeName() in _ANY_ROWS:
        inner = inner.children().apply(0)
    ordered = inner is not None and inner.nodeName() == "Sort"
    shown = plan.toString().splitlines()[0] if name == "Aggregate" else name
    return [(shown, ordered), *(node for child in below for node in _nodes(child))]
