"""Models for other programs: GraphML, UAI, pgmpy, and CSV for R's qgraph."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from privfield.errors import InputError
from privfield.files import csv_bytes, write_bytes, write_whole
from privfield.inference.factors import Factors
from privfield.models.base import Model
from privfield.models.canonical import canonical
from privfield.models.ordinal import OrdinalModel
from privfield.stamps import comment, note_beside, stamped

if TYPE_CHECKING:
    import networkx

_MOST_NAMED = 3


def write_graphml(model: Model, path: str | os.PathLike[str]) -> None:
    """The dependency graph, with weights and fields where the model has them."""
    write_graph(model.graph(), path, "graphml")


def write_graph(graph: networkx.Graph, path: str | os.PathLike[str], kind: str) -> None:
    """A graph as "graphml", "json" (node-link) or "csv" (one edge per line)."""
    import networkx as nx

    if kind == "graphml":
        buffer = io.BytesIO()
        nx.write_graphml(graph, buffer)
        data = buffer.getvalue()
    elif kind == "json":
        links = nx.node_link_data(graph, edges="edges")
        data = json.dumps(links, indent=1, ensure_ascii=False).encode()
    else:
        edges = list(graph.edges(data=True))
        keys = sorted({key for *_, about in edges for key in about})
        rows = [[a, b, *(about.get(key, "") for key in keys)] for a, b, about in edges]
        table = csv_bytes([["first", "second", *keys], *rows])
        data = comment(graph.graph.get("stamp")) + table
    write_bytes(path, data)


def write_uai(model: Model, path: str | os.PathLike[str]) -> None:
    """The UAI competition format: variables by number in column order, potentials as numbers.

    Tables are brought to canonical form, with largest entry 1, so that none overflows: log Z in the
    file differs from ours by a constant.
    """
    factors = _plain_factors(model)
    lines = ["MARKOV", str(len(factors.shape)), " ".join(map(str, factors.shape))]
    lines.append(str(len(factors.cliques)))
    lines += [" ".join(map(str, (len(clique), *clique))) for clique in factors.cliques]
    for table in factors.tables:
        values = np.exp(table).ravel()
        lines += ["", str(values.size), " ".join(repr(float(value)) for value in values)]
    with note_beside(path, model.stamp):
        write_bytes(path, ("\n".join(lines) + "\n").encode())


def write_qgraph(
    model: Model, weights_path: str | os.PathLike[str], thresholds_path: str | os.PathLike[str]
) -> None:
    """A weight matrix and thresholds as CSV, for R's qgraph and IsingSampler.

    Both are for states −1 and +1 (``IsingSampler(..., responses = c(-1L, 1L))``), or of an ordinal
    model for its scores, with a threshold for each level. Any other model must be binary and
    pairwise: a matrix holds no interaction of three variables.
    """
    if among := larger_interactions(model):
        raise InputError(
            f"a matrix of weights has no place for what three variables or more have to say "
            f"together ({among})."
        )
    if isinstance(model, OrdinalModel):
        names, matrix, rows = model.schema.names, model.weights, _by_level(model)
    else:
        ising = model.to_ising()
        names, matrix = ising.names, ising.weights
        fields = [[n, repr(float(f))] for n, f in zip(names, ising.field, strict=True)]
        rows = [["variable", "threshold"], *fields]
    lines = [[n, *map(repr, map(float, row))] for n, row in zip(names, matrix, strict=True)]
    weights, thresholds = csv_bytes([["", *names], *lines]), csv_bytes(rows)
    if Path(weights_path).resolve() == Path(thresholds_path).resolve():
        raise InputError("thresholds_path must differ from weights_path.")
    with write_whole(weights_path) as first, write_whole(thresholds_path) as second:
        first.write(comment(model.stamp) + weights)
        second.write(comment(model.stamp) + thresholds)


def larger_interactions(model: Model) -> str:
    """The interactions of three and more variables, in words; "" where there are none."""
    names, (_, cliques) = model.schema.names, model._structure()
    large = [" × ".join(names[v] for v in clique) for clique in cliques if len(clique) > 2]
    return ", ".join([*large[:_MOST_NAMED], *["…"] * (len(large) > _MOST_NAMED)])


def _by_level(model: OrdinalModel) -> list[list[str]]:
    rows = [["variable", "level", "score", "threshold"]]
    for variable, scores, own in zip(
        model.schema.variables, model.scores, model.thresholds, strict=True
    ):
        for level, score, value in zip(variable.levels, scores, own, strict=True):
            rows.append([variable.name, level, repr(float(score)), repr(float(value))])
    return rows


def to_pgmpy(model: Model) -> Any:
    """A pgmpy `DiscreteMarkovNetwork`; needs pgmpy to be installed."""
    try:
        from pgmpy.factors.discrete import DiscreteFactor
        from pgmpy.models import DiscreteMarkovNetwork
    except ImportError:
        raise InputError("to_pgmpy needs the package pgmpy (pip install pgmpy).") from None
    factors, names = _plain_factors(model), model.schema.names
    network = DiscreteMarkovNetwork()
    network.add_nodes_from(names)
    network.add_edges_from(model.graph().edges)
    states = {v.name: list(v.levels) for v in model.schema.variables}
    used = {position for clique in factors.cliques for position in clique}
    lonely = [(position,) for position in range(len(names)) if position not in used]
    everything = zip(
        (*factors.cliques, *lonely),
        (*factors.tables, *(np.zeros(factors.shape[i]) for (i,) in lonely)),
        strict=True,
    )
    for clique, table in everything:
        chosen = [names[position] for position in clique]
        network.add_factors(
            DiscreteFactor(
                chosen,
                table.shape,
                np.exp(table),
                state_names={name: states[name] for name in chosen},
            )
        )
    return stamped(network, model)


def _plain_factors(model: Model) -> Factors:
    """Factors whose exponentials keep every possible state possible; others are refused."""
    factors, _ = canonical(model.factors)
    if any((np.isfinite(table) & (np.exp(table) == 0)).any() for table in factors.tables):
        raise InputError(
            "a potential is too small for a file of plain numbers: it would turn what is unlikely "
            "into what is impossible. Make the potentials less extreme, or forbid it (−inf)."
        )
    return factors
