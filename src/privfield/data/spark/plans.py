"""Whether a Spark frame gives the same rows each time, as far as its plan tells."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from privfield.errors import InputError

_ADVICE = (
    "A task that Spark runs again would read other rows, and one record could count twice. Write "
    "the frame to a table and read that, or pass frame.checkpoint()."
)
_ANY_ROWS = {"Limit", "LocalLimit", "GlobalLimit", "Tail", "Offset"}
_FUNCTIONS = {"Aggregate", "Window"}  # operators that may depend on the order of rows
_BY_ORDER = {
    *("First", "Last", "AnyValue", "NthValue", "Mode", "MaxBy", "MinBy"),
    *("CollectList", "CollectSet", "ListAgg", "ApproximatePercentile"),
}
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
    for node in _nodes(plan):
        name = node.nodeName()
        if name == "Sample":
            _refuse("Sample, which takes any rows")
        if name in _ANY_ROWS and not _is_sorted(node):
            _refuse(f"{name}, which takes any rows")
        if name == "Deduplicate":
            _refuse("dropDuplicates, which keeps any of several rows")
        if name in _FUNCTIONS and any(_by_order(each) for each in _expressions(node)):
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


def _nodes(plan: Any) -> Iterator[Any]:
    """The operators of a plan, and of the queries inside its expressions."""
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += [*_listed(node.children()), *_listed(node.subqueries())]


def _listed(found: Any) -> list[Any]:
    """A sequence of Scala."""
    return [found.apply(place) for place in range(found.size())]


def _is_sorted(limit: Any) -> bool:
    """Whether a limit is of sorted rows; each partition on its own is not enough."""
    inner = limit.children().apply(0)
    while inner.nodeName() in _ANY_ROWS:
        inner = inner.children().apply(0)
    return inner.nodeName() == "Sort" and bool(getattr(inner, "global")())


def _expressions(node: Any) -> Iterator[list[dict[str, Any]]]:
    """The expressions of an operator, whole: Spark's own text of them leaves out what is long.

    Each is a list of its parts, a part before those that it is made of.
    """
    for expression in _listed(node.expressions()):
        yield json.loads(expression.toJSON())


def _by_order(parts: list[dict[str, Any]]) -> bool:
    """Whether an expression depends on an order of rows that nobody has said."""
    place = 0
    while place < len(parts):
        kind = parts[place]["class"].rpartition(".")[2]
        end = _end(parts, place + 1) if kind == "WindowExpression" else place
        if end > place and parts[end].get("orderSpec"):  # of what comes after the function
            place = end
        elif kind in _BY_ORDER:
            return True
        place += 1
    return False


def _end(parts: list[dict[str, Any]], start: int) -> int:
    """The place after a part and all that it is made of."""
    left, place = 1, start
    while left:
        left += parts[place]["num-children"] - 1
        place += 1
    return place
