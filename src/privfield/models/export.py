"""Models for other programs: GraphML, UAI, pgmpy, and CSV for R's qgraph."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path
from typing import Any

import numpy as np

from privfield.errors import InputError
from privfield.files import write_whole
from privfield.inference.factors import Factors
from privfield.models.base import Model
from privfield.models.canonical import canonical


def write_graphml(model: Model, path: str | os.PathLike[str]) -> None:
    """The dependency graph, with weights and fields where the model has them."""
    import networkx as nx

    buffer = io.BytesIO()
    nx.write_graphml(model.graph(), buffer)
    with write_whole(path) as file:
        file.write(buffer.getvalue())


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
    with write_whole(path) as file:
        file.write(("\n".join(lines) + "\n").encode())


def write_qgraph(
    model: Model, weights_path: str | os.PathLike[str], thresholds_path: str | os.PathLike[str]
) -> None:
    """A weight matrix and thresholds as CSV, for R's qgraph and IsingSampler.

    Both are for states −1 and +1 (``IsingSampler(..., responses = c(-1L, 1L))``). The model must be
    binary and pairwise.
    """
    ising = model.to_ising()
    weights = _csv_text(
        [["", *ising.names]]
        + [
            [name, *map(repr, map(float, row))]
            for name, row in zip(ising.names, ising.weights, strict=True)
        ]
    )
    thresholds = _csv_text(
        [["variable", "threshold"]]
        + [[name, repr(float(value))] for name, value in zip(ising.names, ising.field, strict=True)]
    )
    if Path(weights_path).resolve() == Path(thresholds_path).resolve():
        raise InputError("thresholds_path must differ from weights_path.")
    with write_whole(weights_path) as first, write_whole(thresholds_path) as second:
        first.write(weights)
        second.write(thresholds)


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
    return network


def _plain_factors(model: Model) -> Factors:
    """Factors whose exponentials keep every possible state possible; others are refused."""
    factors, _ = canonical(model.factors)
    if any((np.isfinite(table) & (np.exp(table) == 0)).any() for table in factors.tables):
        raise InputError(
            "a potential is too small for a file of plain numbers: it would turn what is unlikely "
            "into what is impossible. Make the potentials less extreme, or forbid it (−inf)."
        )
    return factors


def _csv_text(rows: list[list[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()
