"""Files of edges as networkx graphs: CSV, Pajek, GML, GraphML."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from privfield.errors import InputError
from privfield.files import read_bytes
from privfield.words import is_number

_HEADS = {
    *("source", "target", "from", "to", "src", "dst", "start", "end", "head", "tail"),
    *("node1", "node2", "node_1", "node_2", "id1", "id2", "person1", "person2", "ego", "alter"),
    *("u", "v", "i", "j", "left", "right", "weight"),
}


def read_edge_file(
    path: str | os.PathLike[str], weight: str | None = None, encoding: str = "utf-8"
) -> Any:
    """A networkx graph; the kind of file is told by its ending.

    CSV files (.csv .tsv .txt .edges) have two node names per line, apart by comma, tab, semicolon
    or spaces. A first line such as "source,target,weight" is a header. Node names are text, also
    where they look like numbers.
    """
    ending = Path(path).suffix.lower()
    kinds: dict[str, Callable[[str], Any]] = {
        ".gml": _gml,
        ".net": _pajek,
        ".paj": _pajek,
        ".graphml": _graphml,
    }
    if ending not in (*kinds, ".csv", ".tsv", ".txt", ".edges"):
        raise InputError(
            f"graph: {str(path)!r} must end in .csv, .tsv, .txt, .edges, .gml, .graphml or .net."
        )
    text = _text(path, encoding)
    if ending not in kinds:
        return _edge_list(text, weight, str(path))
    try:
        return kinds[ending](text)
    except InputError:
        raise
    except Exception as problem:  # networkx and the XML parser raise many kinds
        raise InputError(f"graph: {str(path)!r} is not a whole {ending} file: {problem}") from None


def split_lines(text: str) -> list[list[str]]:
    """Rows of cells of a small text table; blank lines and lines from # on are left out."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if not lines:
        return []
    mark = next((mark for mark in "\t;," if mark in lines[0]), None)
    if mark is None:
        return [line.split() for line in lines]
    return [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=mark)]


def _text(path: str | os.PathLike[str], encoding: str) -> str:
    try:
        return read_bytes(path).decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError:
        raise InputError(f"graph: {str(path)!r} is not a {encoding.upper()} text file.") from None


def _edge_list(text: str, weight: str | None, source: str) -> Any:
    import networkx as nx

    rows = split_lines(text)
    if not rows:
        raise InputError("graph is empty: the edge file has no lines.")
    short = next((i for i, row in enumerate(rows) if len(row) < 2 or not all(row[:2])), None)
    if short is not None:
        raise InputError(f"graph: {source!r} needs two node names per line; line {short + 1} not.")
    head = _header(rows, source)
    column = _weight_column(head, weight, source)
    graph = nx.MultiGraph()
    for row in rows[1:] if head else rows:
        if column is None:
            graph.add_edge(row[0], row[1])
        else:
            graph.add_edge(row[0], row[1], **{str(weight): _number(row, column, source)})
    if not graph.number_of_nodes():
        raise InputError("graph is empty: the edge file has a header only.")
    return graph


def _header(rows: list[list[str]], source: str) -> list[str] | None:
    first = [cell.lower() for cell in rows[0][:2]]
    if all(cell in _HEADS for cell in first):
        return rows[0]
    if len(rows) == 1 or any(is_number(cell) for cell in rows[0][:2]):
        return None
    others = {cell for row in rows[1:] for cell in row[:2]}
    if others & set(rows[0][:2]):
        return None
    raise InputError(
        f"graph: is the first line of {source!r} a header or an edge? Its names occur nowhere "
        'else. Start the file with the line "source,target".'
    )


def _weight_column(head: list[str] | None, weight: str | None, source: str) -> int | None:
    if weight is None:
        return None
    if head is None or weight not in head[2:]:
        raise InputError(f"weight: {source!r} has no column {weight!r} after its two node columns.")
    return head.index(weight, 2)


def _number(row: list[str], column: int, source: str) -> float:
    try:
        return float(row[column])
    except (IndexError, ValueError):
        raise InputError(f"weight: {source!r} has an edge without a number as weight.") from None


def _gml(text: str) -> Any:
    import networkx as nx

    lines = text.splitlines()
    # files in circulation list edges twice without saying that they may
    if not any(line.split() == ["multigraph", "1"] for line in lines):
        lines = list(_with_multigraph(lines))
    try:
        return nx.parse_gml(lines)
    except nx.NetworkXError as problem:
        if "label" in str(problem):
            return nx.parse_gml(lines, label="id")
        raise


def _with_multigraph(lines: Iterable[str]) -> Iterable[str]:
    waiting, opened = True, False
    for line in lines:
        yield line
        words = line.split()
        opened = opened or "graph" in words[:1]
        if waiting and opened and "[" in words:
            yield "multigraph 1"
            waiting = False


def _pajek(text: str) -> Any:
    import networkx as nx

    return nx.parse_pajek(text.splitlines())


def _graphml(text: str) -> Any:
    import networkx as nx

    return nx.parse_graphml(text)
