"""The table of variables: how central each is, how predictable, and with whom it belongs."""

from __future__ import annotations

from typing import Any

from privfield.estimation.uncertainty.centrality import MOST_VARIABLES, centrality_of
from privfield.estimation.uncertainty.centrality_rows import MEASURES, Centrality, Value, label
from privfield.models.base import Model
from privfield.reporting.drawing import MOST_COMMUNITIES, minus
from privfield.reporting.findings import Findings
from privfield.words import agreement_text

_MOST_PLAIN = 30  # variables of models without intervals


def find_centrality(model: Model, found: Findings, level: float) -> Centrality | None:
    """None where there are too many variables, or nothing to say."""
    most = _MOST_PLAIN if found.law is None else MOST_VARIABLES
    if found.hopeless or not found.edges or not 2 < len(model.schema) <= most:
        return None
    return centrality_of(model, found.law, level)


def communities(values: Centrality | None) -> list[int]:
    """The number of each variable's community; empty where that would tell nothing."""
    found = [] if values is None else [row.community for row in values]
    return found if 1 < len(set(found)) < len(found) and max(found) <= MOST_COMMUNITIES else []


def centrality_table(values: Centrality, level: float) -> dict[str, Any]:
    """All variables, the strongest first."""
    shown = [m for m in MEASURES if any(getattr(row, m).estimate is not None for row in values)]
    order = sorted(values, key=lambda row: -(row.strength.estimate or 0.0))
    return {
        "texts": [*_texts(values), *[values.note] * bool(values.note)],
        "caption": "Variables in the network"
        + f", with {level:.0%} intervals where they are known" * (not values.note),
        "columns": [label(measure).capitalize() for measure in shown],
        "rows": [
            {
                "name": row.name,
                "cells": [_cell(getattr(row, measure), measure) for measure in shown],
                "community": row.community,
            }
            for row in order
        ],
        "order": ["" if m not in values.order else agreement_text(values.order[m]) for m in shown],
        "settled": [_settled(values, m) for m in (*shown, "together")] if values.pairs else [],
    }


def _settled(values: Centrality, measure: str) -> str:
    """How many pairs of variables are settled, of all."""
    known = [pair.is_settled(measure) for pair in values.pairs]
    return "" if None in known else f"{sum(map(bool, known))} of {len(known)}"


def _texts(values: Centrality) -> list[str]:
    texts = [
        "Strength is the sum of the strengths of a variable’s edges, expected influence the same "
        "with their signs, in two steps together with what its neighbours pass on; closeness and "
        "betweenness go by shortest paths, whose steps are 1 ÷ strength. Predictability is the "
        "share of a variable’s variance that all others explain (R²; of several answers without an "
        "order, Goodman and Kruskal’s τ). Communities are groups with more and stronger edges "
        "within than between them (greedy modularity); they have no interval."
    ]
    if values.order:
        texts.append(
            "Values are the middle of draws from all networks that the released numbers leave "
            "possible. The lines below the table say how far these draws agree on the order: the "
            "share of pairs of variables of which the same one has more (50% is chance), and how "
            "many pairs are settled, because at least 99% of draws have the same one ahead, or "
            "have the two together in a community or apart. In simulated studies at least 95% of "
            "settled pairs were as the draws had them. Betweenness has no interval: it jumps from "
            "network to network."
        )
        if all(row.strength.low is None for row in values):
            texts.append(
                "Strength has no interval here: among so many items, weak links that are not found "
                "add up."
            )
    return texts


def _cell(value: Value, measure: str) -> dict[str, str]:
    if value.estimate is None:
        return {"value": "", "interval": ""}
    form = {"closeness": "#.3g", "betweenness": "g"}.get(measure, ".2f")
    interval = ""
    if value.low is not None and value.high is not None:
        interval = f"{minus(value.low, form)} to {minus(value.high, form)}"
    return {"value": minus(value.estimate, form), "interval": interval}
