"""Pages of models without a network of variables: chains, and peer effects on a public network."""

from __future__ import annotations

from typing import Any

import numpy as np

from privfield.estimation.peers.one import NOTHING, SEPARATE
from privfield.estimation.uncertainty.counted import MarginalInterval
from privfield.learners.peer_summary import NO_FIELD, OUTSIDE, OUTSIDE_TEXT, odds_factor, range_text
from privfield.mechanisms.chains.measurements import ChainMeasurements
from privfield.mechanisms.peers.forecast import BOUND
from privfield.models.card import Card
from privfield.models.chain import ChainModel
from privfield.models.network import NetworkIsing
from privfield.reporting import sentences as words
from privfield.reporting.parts import Content, bars, common, grey, privacy_tile
from privfield.words import counted

_MOST_STATES = 60


def chain_page(
    model: ChainModel, card: Card | None, measurements: Any, level: float, title: str | None
) -> Content:
    """A heat map of transitions, with first and long-run shares."""
    page = common(model, card, title)
    states = counted(len(model.states), "state")
    page["lead"] = f"How people move between {states}, one step at a time."
    page["tiles"] = [
        privacy_tile(card, model.stamp),
        {"name": "States", "value": f"{len(model.states)}", "note": "a public list"},
    ]
    noise = measurements if isinstance(measurements, ChainMeasurements) else None
    page["chain"] = _transitions(model, noise, level)
    page["marginals"] = _shares(model)
    page["methods"] = (
        f"We estimated a time-homogeneous Markov chain over {states} with "
        f"{words.software(card)}. {words.privacy_sentence(card, model.stamp)}"
    )
    page["reading"] = [
        "Margins cover privacy noise only; no interval is known for this method. How much another "
        "sample of people would differ depends on how alike one person’s steps are, which is "
        "private."
    ]
    page["data"] = {"network": None, "edges": None}
    return page


def _transitions(model: ChainModel, noise: ChainMeasurements | None, level: float) -> Content:
    size = min(len(model.states), _MOST_STATES)
    margins = None
    text = "Each row says where people go from there."
    if noise is not None and noise.noise != "none":
        weight = np.maximum(noise.transitions.sum(axis=1), noise.transition_law.deviation)
        margins = noise.transition_law.margin(level) / weight
        text += (
            f" Privacy noise moves a released share by up to {100 * float(np.median(margins)):.1f} "
            f"percentage points in a typical row ({level:.0%}); the estimate evens part of it out."
        )
    if size < len(model.states):
        text += f" Only the first {size} states are shown."
    rows = []
    for i in range(size):
        cells = []
        for j in range(size):
            share = float(model.transition[i, j])
            color, dark = grey(share)
            title = f"{model.states[i]} → {model.states[j]}: {100 * share:.1f}%"
            if margins is not None:
                title += f", privacy noise ±{100 * float(margins[i]):.1f} points"
            cells.append(
                {"text": f"{100 * share:.0f}", "color": color, "dark": dark, "title": title}
            )
        rows.append({"state": model.states[i], "cells": cells})
    return {"text": text, "states": model.states[:size], "rows": rows}


def _shares(model: ChainModel) -> Content:
    size = min(len(model.states), _MOST_STATES)
    groups = []
    for name, shares in (("first state", model.initial), ("in the long run", model.stationary())):
        marginal = MarginalInterval(name, tuple(map(float, shares)), None, None)
        groups.append(bars(marginal, model.states, range(size)))
    return {
        "heading": "Where people start, and where they are in the long run",
        "text": "Shares of people by state.",
        "caption": "Shares",
        "intervals": False,
        "groups": groups,
        "left_out": "",
    }


def peer_page(model: NetworkIsing, card: Card | None, title: str | None) -> Content:
    """β in words, with its interval where the learner gave one."""
    page = common(model, card, title)
    edges = model.couplings.nnz // 2
    size = f"{counted(len(model.names), 'node')} and {counted(edges, 'edge')}"
    page["lead"] = f"How strongly neighbours’ outcomes go together on a public network of {size}."
    known = {} if card is None else dict(card.intervals)
    level = "" if card is None or not known else f"{card.level:.0%}"
    coupling = float(np.median(model.couplings.data)) if edges else 0.0
    interval = known.get("beta")
    outside = interval is not None and range_text(*interval[1:]) == OUTSIDE
    texts = [OUTSIDE_TEXT if outside else _odds(model.beta, interval, coupling, level)]
    notes = () if card is None else card.notes
    everything = interval is not None and interval[1:] == (0.0, BOUND)  # of cards without the note
    if NOTHING in notes or (everything and not any(SEPARATE in each for each in notes)):
        page["nothing"], texts = NOTHING, []
    if "field" not in known and model.field == 0:
        texts.append(NO_FIELD)
    texts = [_for_both(text) for text in texts]
    alone = int((np.diff(model.couplings.indptr) == 0).sum())
    if 0 < alone < len(model.names):
        texts.append(
            f"{counted(alone, 'node')} without contacts: such outcomes are protected, too, "
            "and say nothing about β."
        )
    parameters = {"beta": (model.beta,), "field": (model.field,), **known}
    page["peer"] = {
        "texts": texts,
        "level": "" if outside and len(known) == 1 else level,  # no interval to speak of
        "rows": [_parameter(name, values) for name, values in parameters.items()],
    }
    page["tiles"] = [
        privacy_tile(card, model.stamp),
        {
            "name": "Peer effect β",
            "value": f"{model.beta:.3g}",
            "note": _range(interval, level),
        },
        {
            "name": "Nodes",
            "value": f"{len(model.names):,}",
            "note": f"{counted(edges, 'edge')}, public",
        },
    ]
    parts = [
        f"We estimated the peer effect β of an Ising model on a public network of "
        f"{size} with {words.software(card)}.",
        words.privacy_sentence(card, model.stamp),
        f"The estimate is β = {model.beta:.3g}"
        + (
            f": {OUTSIDE}, so that there is no interval."
            if outside
            else "."
            if interval is None
            else f" ({_range(interval, level)}, for sampling and privacy noise together)."
        ),
    ]
    page["methods"] = " ".join(parts)
    page["reading"] = [
        "β is the strength of P(outcomes) ∝ exp(½ β Σ Jᵢⱼ σᵢ σⱼ + h Σ σᵢ), outcomes σ = ±1, on the "
        "scaled network J. β = 0 means that neighbours do not matter."
    ]
    page["data"] = {"network": None, "edges": None}
    return page


def _for_both(text: str) -> str:
    """Advice for the command line and for Python: a page does not know who reads it."""
    text = text.replace("field=True", "--field (in Python field=True)")
    return text.replace("bounds=(-3, 3) allows", "--bounds=-3,3, in Python bounds=(-3, 3), allows")


def _odds(
    beta: float, interval: tuple[float, float, float] | None, coupling: float, level: str
) -> str:
    text = (
        "If one more neighbour is positive instead of negative, the odds of a positive outcome are "
        f"multiplied by {odds_factor(beta, coupling):.3g}"
    )
    if interval is not None:
        ends = sorted(odds_factor(end, coupling) for end in interval[1:])  # J may be negative
        text += f" ({level} interval {ends[0]:.3g} to {ends[1]:.3g})"
    return text + f", for a typical edge (J = {coupling:.3g})."


def _parameter(name: str, values: tuple[float, ...]) -> dict[str, str]:
    interval = "not known"
    if len(values) == 3:
        interval = range_text(values[1], values[2])
    elif name == "field" and not values[0]:
        interval = "not estimated"
    names = {"beta": "β (peer effect)", "field": "h (tilt toward positive)"}
    return {"name": names.get(name, name), "estimate": f"{values[0]:.3g}", "interval": interval}


def _range(interval: tuple[float, float, float] | None, level: str) -> str:
    if interval is None:
        return "no interval is known"
    text = range_text(*interval[1:])
    return text if text == OUTSIDE else f"{level} interval {text}"
