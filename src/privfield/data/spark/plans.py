"""Whether a Spark frame gives the same rows each time, as far as its plan tells."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from privfield.errors import InputError

_ADVICE = (
    "A task that Spark runs again would read other rows, and one record could count twice. Write "
    "the frame to a table and read that, or pass frame.checkpoint()."
)
_ANY_ROWS = {"Limit", "LocalLimit", "GlobalLimit", "Tail", "Offset", "Sample"}
_SURE = {
    "rel_type": {
        *("read", "local_relation", "cached_remote_relation", "cached_local_relation", "range"),
        *("chunked_cached_local_relation", "project", "filter", "join", "set_op", "sort", "drop"),
        *("subquery_alias", "repartition", "repartition_by_expression", "to_df", "to_schema"),
        *("with_columns", "with_columns_renamed"),
    },
    "expr_type": {
        *("literal", "unresolved_attribute", "unresolved_function", "alias", "cast", "sort_order"),
        *("unresolved_star",),
    },
    "function": {
        *("==", "!=", "<", "<=", ">", ">=", "<=>", "and", "or", "not", "!", "in", "isnull"),
        *("isnotnull", "isnan", "coalesce", "when", "+", "-", "*", "/", "%", "abs", "floor"),
        *("ceil", "round", "concat", "lower", "upper", "trim", "substring", "length", "like"),
        *("year", "month", "dayofmonth", "hour", "date_format", "to_date"),
    },
}
_BY_ORDER = re.compile(r"\b(first|first_value|last|last_value|any_value|collect_list|mode)\(")


def check_plan(frame: Any) -> None:
    """Refuse a frame whose plan shows that it may differ from one reading to the next."""
    if frame.isStreaming:
        raise InputError("data: the Spark frame is a stream, which has no end. Read a table.")
    if not hasattr(frame, "_jdf"):
        _check_client(frame)
        return
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


def _check_client(frame: Any) -> None:
    """Of Spark Connect, whose client knows what was asked for, and not what it means: a short list.

    Tables, files, checkpoints and rows of the client are the same each time, and so is what these
    operators and functions make of them.
    """
    for kind, name in _asked(frame._plan.to_proto(frame.sparkSession.client).root):
        if name not in _SURE[kind]:
            _refuse(f"{name}, and a client of Spark Connect does not know what that gives")


def _asked(message: Any) -> Iterator[tuple[str, str]]:
    """The operators, expressions and functions of a message of Spark Connect."""
    for kind in ("rel_type", "expr_type"):
        if kind in message.DESCRIPTOR.oneofs_by_name:
            yield kind, message.WhichOneof(kind) or "nothing"
    if message.DESCRIPTOR.name == "UnresolvedFunction":
        yield "function", message.function_name.lower()
    for field, value in message.ListFields():
        if field.message_type is not None:
            parts = value.values() if field.message_type.GetOptions().map_entry else value
            each = [value] if hasattr(value, "DESCRIPTOR") else list(parts)
            for part in each:
                if hasattr(part, "DESCRIPTOR"):
                    yield from _asked(part)


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
