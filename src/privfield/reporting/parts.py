"""What pages of every kind share: their head, tiles, tables, bars, and the card as a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from privfield._version import __version__
from privfield.estimation.uncertainty.counted import MarginalInterval
from privfield.models.base import Model
from privfield.models.card import Card
from privfield.models.chain import ChainModel
from privfield.models.network import NetworkIsing
from privfield.privacy.adjacency import Adjacency
from privfield.reporting import sentences as words
from privfield.words import counted, exact_text

Content = dict[str, Any]

_UNFOLDED = 8  # levels of a variable that are seen at once


def common(model: Any, card: Card | None, title: str | None) -> Content:
    """What every page has, whatever the model."""
    stamp = model.stamp
    return {
        "title": title or default_title(model),
        **banner(stamp),
        "protected": words.protected(card, stamp),
        "cost": [] if stamp else words.cost(card),
        "precision": [],
        "citation": words.citation(card.version if card is not None else __version__),
        "facts": facts(model, card),
        "reading": [],
    }


def banner(stamp: str | None) -> Content:
    """Why a page protects nobody, if so; and what wrote it."""
    head, _, reason = (stamp or "").partition(": ")
    return {
        "stamp": stamp,
        "stamp_head": head if reason else "NOT PRIVATE",
        "stamp_reason": reason or stamp,
        "version": __version__,
    }


def default_title(model: Any) -> str:
    """What a page is called if nobody says."""
    if isinstance(model, ChainModel):
        return f"A Markov chain of {counted(len(model.states), 'state')}"
    if isinstance(model, NetworkIsing):
        return f"Peer effect on a network of {counted(len(model.names), 'node')}"
    if len(model.schema) == 1:
        return f"How {model.schema.names[0]} is distributed"
    return f"How {len(model.schema):,} variables go together"


def privacy_tile(card: Card | None, stamp: str | None) -> dict[str, str]:
    """The promise in the smallest space."""
    if stamp is not None:
        return {"name": "Privacy", "value": "none", "note": stamp}
    promise = words.promise_of(card)
    if card is None or promise.epsilon is None:
        return {"name": "Privacy", "value": "unknown", "note": "the model carries no card"}
    delta = f"δ = {promise.delta:g}, " if promise.delta else ""
    noun = card.unit.split(" (")[0]
    return {
        "name": "Privacy",
        "value": f"ε = {promise.epsilon:.3g}",
        "note": f"{delta}for each {noun}",
    }


def bars(
    marginal: MarginalInterval, levels: Sequence[str], chosen: Sequence[int], question: str = ""
) -> Content:
    """A variable's part of a table of shares, with bars; rare levels of many are folded away."""
    by_size = sorted(chosen, key=lambda code: -marginal.estimate[code])
    folded = set(by_size[_UNFOLDED:]) if len(chosen) > _UNFOLDED + 1 else set()
    rows = []
    for code in chosen:
        share = marginal.estimate[code]
        row: dict[str, Any] = {
            "level": levels[code],
            "folded": code in folded,
            "share": f"{100 * share:.1f}%",
            "width": f"{100 * share:.2f}",
            "low": None,
            "interval": "",
        }
        if not marginal.measured:
            row |= {"share": "not measured", "width": "0"}
        elif marginal.low is not None and marginal.high is not None:
            low, high = marginal.low[code], marginal.high[code]
            row |= {
                "interval": f"{100 * low:.1f}–{100 * high:.1f}%",
                "low": f"{100 * low:.2f}",
                "reach": f"{100 * (high - low):.2f}",
            }
        rows.append(row)
    rows.sort(key=lambda row: row["folded"])  # the first row must be seen: it has the name
    return {
        "name": marginal.name,
        "question": question,
        "span": len(rows) + bool(folded),
        "folded": len(folded),
        "rows": rows,
    }


def table(
    heading: str,
    caption: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    texts: Sequence[str] = (),
    words: Sequence[int] = (0,),
) -> Content:
    """A section of a page that is one table; its columns hold numbers, but for those in `words`."""
    return {
        "heading": heading,
        "caption": caption,
        "columns": columns,
        "rows": rows,
        "texts": texts,
        "words": words,
    }


def facts(model: Any, card: Card | None) -> list[tuple[str, str]]:
    """The card as a list of names and values."""
    found = [("Model", type(model).__name__)]
    if isinstance(model, Model) and not isinstance(model, NetworkIsing):
        found.append(("Variables", f"{len(model.schema):,}"))
    if model.stamp:
        found.append(("Stamp", model.stamp))
    if model.solution is not None:
        found.append(("Estimate", model.solution.words()))
    if card is None:
        return [*found, ("Card", "none: this model does not say where it comes from")]
    found += [
        ("Unit of privacy", card.unit),
        ("Neighbours", "not known" if card.adjacency is None else str(card.adjacency)),
        ("Privacy cost", words.budget_words(card.cost)),
        ("Budget asked for", words.budget_words(card.budget)),
        ("Method", card.method or "not known"),
        ("Noise", card.noise or "not known"),
    ]
    if card.adjacency is not Adjacency.FLIP_OUTCOME:  # of a network, which is public
        levels = "yes, declared public" if card.levels_are_public else "no"
        found += [("Records", _records(card)), ("Levels read off the data", levels)]
    found.append(("Ledger", card.ledger or "none"))
    if card.job is not None:
        found.append(("Job", card.job))
    if card.charged is not None:
        found.append(("Charged", card.charged))
    found += [("Made on", card.created), ("Made with", f"privfield {card.version}")]
    return found + [("Note", note) for note in card.notes]


def _records(card: Card) -> str:
    if card.rows is not None:
        return exact_text(card.rows)
    public = card.adjacency is Adjacency.REPLACE_ONE and card.unit == "row"
    return "not recorded" if public else "not public"


def grey(share: float) -> tuple[str, bool]:
    """A cell's colour from white to dark blue, and whether its text must be white."""
    light, dark = np.array([247, 250, 252]), np.array([8, 64, 110])
    mixed = light + (dark - light) * min(1.0, max(0.0, share)) ** 0.7
    red, green, blue = (round(part) for part in mixed.tolist())
    linear = ((mixed / 255 + 0.055) / 1.055) ** 2.4  # WCAG 2.1: relative luminance
    white = float(linear @ [0.2126, 0.7152, 0.0722]) < 0.179  # else black has more contrast
    return f"#{red:02x}{green:02x}{blue:02x}", white
