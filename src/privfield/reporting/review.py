"""A card for reviewers: what a disclosure board or a registry of releases asks, answered or open.

The questions are those of `review_questions`. What a model file cannot know stays open.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from privfield._version import __version__
from privfield.errors import InputError
from privfield.files import read_bytes, write_bytes
from privfield.mechanisms.registry import MECHANISMS
from privfield.models.base import Model
from privfield.models.card import Card, guarantee
from privfield.models.network import NetworkIsing
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import NON_PRIVATE, ZCDP, ApproxDP, Budget, GaussianDP, PureDP
from privfield.privacy.ledger import Ledger
from privfield.privacy.released import cost_to_json
from privfield.reporting import sentences as words
from privfield.reporting.findings import findings, summary
from privfield.reporting.parts import Content, banner, common, privacy_tile, table
from privfield.reporting.report import render
from privfield.reporting.review_questions import OPEN, questions
from privfield.words import counted, exact_text

FORMAT = "privfield-review-card"
_HEAD = "NOT PRIVATE: "
_TRUST = (
    "Central: whoever runs the release holds the records in the clear and is trusted with them; so "
    "are the machines. What is released needs no trust in whoever receives it."
)
_AFTERWARDS = (
    "The model, its intervals, reports, answers and synthetic rows are computed from the released "
    "numbers alone, and cost nothing more."
)


def review_card(model: Any, ledger: Ledger | None = None) -> dict[str, Any]:
    """Everything as plain values, for a JSON file; `ledger` is the one that was charged.

    What the ledger holds is written into the card: the hash of its head, and all its charges.
    """
    card = model.card or Card()
    if model.stamp is not None:  # what was spent promises nothing
        card = replace(card, cost=NON_PRIVATE, budget=NON_PRIVATE, stamp=model.stamp)
    promise = words.promise_of(card)
    found: dict[str, Any] = {
        "format": FORMAT,
        "version": 1,
        "what": _what(model),
        "stamp": model.stamp,
        "made": {
            "on": card.created,
            "with": f"privfield {card.version}",
            "card_with": f"privfield {__version__}",
        },
        "unit": card.unit,
        "neighbours": None if card.adjacency is None else str(card.adjacency),
        "guarantee": {
            "flavour": _flavour(card),
            "words": guarantee(card.cost, card.budget) if isinstance(card.cost, Budget) else None,
            "epsilon": promise.epsilon,
            "delta": promise.delta if promise.epsilon is not None else None,
            "delta_in_words": _delta(promise, card),
            "right_guess_at_most": None if promise.epsilon is None else words.success(promise),
            "cost": cost_to_json(card.cost),
            "budget": cost_to_json(card.budget),
        },
        "mechanisms": _mechanisms(model, card),
        "composition": _composition(card, ledger),
        "trust_model": _TRUST,
        "public": _public(model, card),
        "post_processing": _AFTERWARDS,
        "ledger": _ledger(card, ledger),
        "data": _domain(model, card),
        "estimate": None if model.solution is None else model.solution.to_json(),
        "utility": _utility(model),
        "sites": [site._asdict() for site in card.sites],
        "notes": list(card.notes),
    }
    found["questions"] = questions(found, card)
    return found


def _what(model: Any) -> str:
    if isinstance(model, NetworkIsing):
        return f"peer effect on a network of {counted(len(model.names), 'node')}"
    if isinstance(model, Model):
        return f"graphical model of {counted(len(model.schema), 'variable')}"
    return f"Markov chain of {counted(len(model.states), 'state')}"


def _flavour(card: Card) -> str | None:
    kinds = {
        PureDP: "pure differential privacy",
        ZCDP: "zero-concentrated differential privacy (zCDP)",
        GaussianDP: "Gaussian differential privacy (GDP)",
        ApproxDP: "approximate differential privacy",
    }
    if not isinstance(card.cost, Budget):
        return None
    return kinds.get(type(card.cost), "zero-concentrated differential privacy with a δ of its own")


def _delta(promise: words.Promise, card: Card) -> str | None:
    if promise.epsilon is None:
        return None
    if not promise.delta:
        return "δ = 0: the bound holds for every result without exception."
    text = (
        f"δ = {promise.delta:g}: any set of results may be more likely by a further "
        f"{promise.delta:g}, at worst as if with that probability everything were shown."
    )
    if card.rows:
        people = card.rows * promise.delta
        text += f" Times {exact_text(card.rows)} records that is {people:.2g}."
        if people >= 1:
            text += " That is too much: a promise that lets one record be shown whole is none."
    return text


def _mechanisms(model: Any, card: Card) -> list[dict[str, Any]]:
    """What released the numbers: those that release this kind, where it is known."""
    released = type(model.measurements)
    kinds = [kind for kind in MECHANISMS if kind.releases is released]
    return [
        {
            "what": kind.noun,
            "name": kind.__name__,
            "noise": card.noise,
            "cost": cost_to_json(card.cost),
            "proof": f"docs/privacy/{kind.page}",
            "one_of": len(kinds),
        }
        for kind in kinds
    ]


def _composition(card: Card, ledger: Ledger | None) -> str | None:
    """How costs add up, and with what; None where nobody kept count."""
    if ledger is None and card.ledger is None:
        return None
    rule = (
        "Costs of all releases in a ledger add up (ρ of zero-concentrated or Gaussian privacy, or "
        "ε and δ), are charged before records are read, and may not pass its total."
    )
    if ledger is None:
        return f"{rule} The ledger “{card.ledger}” has the others; this card has not read it."
    spent, stamp = ledger.spent_epsilon, f"{ledger.stamp}. " if ledger.stamp else ""
    so_far = f"ε = {spent:.4g}" if math.isfinite(spent) else str(ledger.spent)
    return (
        f"{stamp}{rule} {counted(len(ledger.charges()), 'charge')} so far: {so_far} of "
        f"{words.budget_words(ledger.total)}."
    )


def _public(model: Any, card: Card) -> list[str]:
    if card.adjacency is Adjacency.FLIP_OUTCOME:
        return ["the network and who is in it", "which analyses were run"]
    found = ["names of variables", "levels of variables and how values are read as them"]
    if card.levels_are_public:
        found.append("which levels occur: read off the records, declared public by their owner")
    if card.adjacency is Adjacency.REPLACE_ONE:
        found.append("the number of records" if card.unit == "row" else "the number of people")
    return [*found, "which analyses were run"]


def _ledger(card: Card, ledger: Ledger | None) -> dict[str, Any] | None:
    if ledger is None and card.ledger is None:
        return None
    found: dict[str, Any] = {"name": card.ledger, "job": card.job, "charged": card.charged}
    if ledger is not None:
        found |= {
            "head": ledger.head,
            "total": cost_to_json(ledger.total),
            "charges": [
                {"what": c.what, "cost": cost_to_json(c.cost), "job": c.job, "time": c.time}
                for c in ledger.charges()
            ],
        }
    return found


def _domain(model: Any, card: Card) -> dict[str, Any]:
    rows = {"records": card.rows}
    if not isinstance(model, Model):
        return {**rows, "states": list(model.states)}
    if isinstance(model, NetworkIsing):
        return {**rows, "nodes": len(model.names)}
    return {**rows, "variables": {v.name: list(v.levels) for v in model.schema.variables}}


def _utility(model: Any) -> dict[str, Any] | None:
    """How precise the release is, and how far the model agrees with it; None where not known."""
    card = model.card
    if card is not None and card.intervals:
        intervals = {name: list(three) for name, three in card.intervals.items()}
        return {"level": card.level, "intervals": intervals}
    if not isinstance(model, Model) or model.measurements is None:
        return None
    found = findings(model, None, 0.95, 0.05)
    if not found.intervals:
        return None
    return {
        "level": 0.95,
        "noise_to_sampling": found.ratio,
        "as_precise_as_records_without_noise": found.like,
        "pairs": {
            v: found.edges.count(v) for v in ("clear", "uncertain", "absent", "not measured")
        },
        "model_against_released": [
            {
                "variables": int(order),
                "tables": int(count.replace(",", "")),
                "typical_gap": float(typical),
                "largest_gap": float(largest),
            }
            for order, count, typical, largest, _, _ in summary(found.fit, str)
        ],
    }


# -- pages and comparisons -------------------------------------------------------------------------


def card_page(model: Any, found: Mapping[str, Any]) -> str:
    """The card as one HTML page."""
    card = model.card
    cost = "none" if card is None or model.stamp is not None else words.budget_words(card.cost)
    page = common(model, card, f"Card for reviewers: {found['what']}")
    answered = [each["status"] != OPEN for part in found["questions"].values() for each in part]
    page["lead"] = (
        f"What was released, what it cost and what is promised. {sum(answered)} of {len(answered)} "
        "questions are answered from the model file; the others are open, and say who must answer."
    )
    page["tiles"] = [
        privacy_tile(card, model.stamp),
        {"name": "Answered", "value": f"{sum(answered)}", "note": f"of {len(answered)} questions"},
    ]
    page["tables"] = [
        table(
            "Mechanisms and their cost",
            "What read the records",
            ["What", "Noise", "Cost", "Proof"],
            [
                [each["what"], each["noise"] or "–", cost, each["proof"]]
                for each in found["mechanisms"]
            ],
            words=range(4),
        )
    ] * bool(found["mechanisms"] and card)
    page["tables"] += [
        table(
            title,
            f"Questions of {title}, in our words",
            ["Question", "Status", "Answer"],
            [[each["question"], each["status"], each["answer"]] for each in questions],
            words=(0, 1, 2),
        )
        for title, questions in found["questions"].items()
    ]
    page["methods"] = words.privacy_sentence(card, model.stamp)
    page["reading"] = ["The JSON file beside this page holds the same, for programs."]
    page["data"] = {"network": None, "edges": None}
    return render(page)


def read_card(path: str | os.PathLike[str]) -> dict[str, Any]:
    """A card that `privfield export --to card` wrote."""
    try:
        found = json.loads(read_bytes(path))
    except ValueError:
        found = None
    if not isinstance(found, dict) or found.get("format") != FORMAT or found.get("version") != 1:
        raise InputError(f"{os.fspath(path)!r} is no card of privfield export --to card.")
    return found


def compare_cards(
    first: Mapping[str, Any], second: Mapping[str, Any]
) -> list[tuple[str, str, str]]:
    """Where two cards differ: the place, and what each says there; questions repeat the rest."""
    one, two = ({k: v for k, v in card.items() if k != "questions"} for card in (first, second))
    left, right = dict(_leaves(one)), dict(_leaves(two))
    found = [(at, *_apart(left.get(at), right.get(at), at)) for at in {**left, **right}]
    return [each for each in found if each[1] != each[2]]


def _apart(one: Any, two: Any, place: str) -> tuple[str, str]:
    """Both as text: costs in full, estimates with as few digits as tell them apart."""
    few = (3, 5) if place.startswith("utility.") else ()
    shown = [(_plainly(one, digits), _plainly(two, digits)) for digits in (*few, 10)]
    return next((each for each in shown if each[0] != each[1]), shown[-1])


def _leaves(value: Any, place: str = "") -> Sequence[tuple[str, Any]]:
    if isinstance(value, Mapping):
        parts = [(f"{place}.{name}" if place else name, each) for name, each in value.items()]
    elif isinstance(value, list) and any(isinstance(each, list | Mapping) for each in value):
        parts = [(f"{place}[{number}]", each) for number, each in enumerate(value, 1)]
    else:
        return [(place, value)]
    return [leaf for name, each in parts for leaf in _leaves(each, name)]


def _plainly(value: Any, digits: int) -> str:
    """A list on one line, a cost in ρ as a number; whole parts of numbers in full."""
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "–"
    if isinstance(value, float) or re.fullmatch(r"\d+/\d+", str(value)):
        number = float(Fraction(value))
        return f"{number:.0f}" if abs(number) >= 10**digits else f"{number:.{digits}g}"
    return "–" if value is None else str(value)


def common_stamp(
    names: tuple[str, str], cards: tuple[Mapping[str, Any], Mapping[str, Any]]
) -> str | None:
    """Why one card or both protect nobody, and which where they do not say the same."""
    first, second = (card.get("stamp") for card in cards)
    if first == second:
        return None if first is None else str(first)
    told = zip(names, (first, second), strict=True)
    reasons = [f"{name}: {stamp.removeprefix(_HEAD)}" for name, stamp in told if stamp]
    return f"{_HEAD}{'; '.join(reasons)}"


def comparison_page(
    names: tuple[str, str], cards: tuple[Mapping[str, Any], Mapping[str, Any]]
) -> str:
    """Two cards side by side, where they differ, as one HTML page."""
    found = compare_cards(*cards)
    rows = [(re.sub(r"([._])", "\\1\u200b", name), *said) for name, *said in found]  # may break
    stamp = common_stamp(names, cards)
    page: Content = {
        "title": f"Cards of {names[0]} and {names[1]}",
        **banner(stamp),
        "lead": f"{counted(len(rows), 'difference')} between two cards for reviewers.",
        "tiles": [],
        "protected": [
            f"{name}: {card['guarantee']['words'] or 'no promise is known'}; "
            f"unit of privacy: one {card['unit']}."
            for name, card in zip(names, cards, strict=True)
        ],
        "cost": [],
        "precision": [],
        "citation": words.citation(__version__),
        "facts": [],
        "tables": [
            table(
                "Where they differ", "Entries that differ", ["Entry", *names], rows, words=(0, 1, 2)
            )
        ],
        "methods": "Two releases were compared by their cards.",
        "reading": ["Entries that are the same in both are not listed."],
        "data": {"network": None, "edges": None},
    }
    return render(page)


def write_card(model: Any, path: Path, page: Path, ledger: Ledger | None = None) -> None:
    """Both files of a card: JSON, and a page."""
    found = review_card(model, ledger)
    text = json.dumps(found, ensure_ascii=False, indent=2, allow_nan=False)
    write_bytes(path, f"{text}\n".encode())
    write_bytes(page, card_page(model, found).encode())
