"""What reviewers ask of a release, each question answered from its card or left open.

The questions follow the sections of NIST SP 800-226 and the fields that the Differential Privacy
Deployments Registry has in its highest tier; their wording is ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from privfield.models.card import Card
from privfield.privacy.adjacency import Adjacency
from privfield.reporting import sentences as words
from privfield.words import counted

NIST = "NIST SP 800-226"
REGISTRY = "DP Deployments Registry, tier 3"
OPEN = "open"
_NEIGHBOURS = {
    Adjacency.REPLACE_ONE: "bounded: one record is replaced by any other (replace-one)",
    Adjacency.ADD_REMOVE: "unbounded: one record is added or removed (add-remove)",
    Adjacency.FLIP_OUTCOME: "one node’s outcome is flipped; the network is public (flip-outcome)",
}
_SIDE = (
    "How long a run takes, and the memory it uses, may depend on the records: the machine is "
    "trusted, and must not be timed by an adversary. Error texts hold nothing of a record; that a "
    "run failed is seen."
)
_OWNER = "To be filled in by the data’s owner."
_ELSE = "What was done with them before, the data’s owner must say."
_QUERIES = (
    "One release: what is measured is fixed beforehand, or chosen by the mechanism within its "
    "cost. Questions to the model are answered from what was released, at no further cost."
)
_NO_CARD = "The model carries no card."

Question = dict[str, str]


def questions(found: Mapping[str, Any], card: Card) -> dict[str, list[Question]]:
    """By who asks; `found` is the card so far."""
    return {NIST: _nist(found, card), REGISTRY: _registry(found, card)}


def _question(question: str, answer: str | None, missing: str) -> Question:
    """Answered, or open with who must say."""
    if answer:
        return {"question": question, "status": "answered", "answer": answer}
    return {"question": question, "status": OPEN, "answer": missing}


def _nist(found: Mapping[str, Any], card: Card) -> list[Question]:
    """After the sections of SP 800-226, from the parameters down to how data are kept."""
    promise, missing = found["guarantee"], card.stamp or _NO_CARD
    unit = card.cost is not None
    noise = (card.noise or "").startswith("discrete")
    return [
        _question("Privacy parameters: how strong is the promise?", _strength(promise), missing),
        _question("Which variant of differential privacy?", promise["flavour"], missing),
        _question("What does δ mean here?", promise["delta_in_words"], missing),
        _question("Unit of privacy: whose data?", f"one {words.unit_words(card)}" * unit, _NO_CARD),
        _question(
            "Which data sets are neighbours?",
            None if card.adjacency is None else _NEIGHBOURS[card.adjacency],
            _NO_CARD,
        ),
        _question(
            "Other releases from the same data: are costs added up?",
            found["composition"],
            "No ledger was kept: who releases must say what else was released.",
        ),
        _question(
            "Mixed with releases without differential privacy?",
            None,
            f"Public without noise: {'; '.join(found['public'])}. Whether anything else was "
            "published from these data, the data’s owner must say.",
        ),
        _question("Algorithms: which, and where is the proof?", _algorithms(found), _NO_CARD),
        _question("Utility: how accurate is it?", _accuracy(found), "No law of errors is known."),
        _question(
            "Statistical bias?",
            "Noise weighs most on rare answers and small groups. The model pulls relations towards "
            "none, or towards a common size, where noise is large; intervals come from numbers "
            "that are not pulled.",
            "",
        ),
        _question("Systemic and human bias in what was collected?", None, _OWNER),
        _question("Query model: one release, or questions over time?", _QUERIES * unit, _NO_CARD),
        _question("Trust model: who sees records?", found["trust_model"], ""),
        _question(
            "Implementation: floating point and random numbers?",
            "Noise is added to whole numbers by exact samplers that draw from the operating "
            "system’s entropy; no seed." * (noise and found["stamp"] is None),
            "Not recorded for this release; the proof page says how it draws."
            if found["stamp"] is None
            else f"{found['stamp']}.",
        ),
        _question("Side channels: time, memory, errors?", _SIDE, ""),
        _question("Data security and access control?", None, _OWNER),
        _question("Exposure while data were collected?", None, _OWNER),
    ]


def _registry(found: Mapping[str, Any], card: Card) -> list[Question]:
    """What the three tiers of the registry ask for."""
    promise, data, missing = found["guarantee"], found["data"], card.stamp or _NO_CARD
    variables = data.get("variables")
    domain = None
    if variables is not None:
        domain = f"{counted(len(variables), 'categorical variable')}, listed under data.variables"
    return [
        _question("Curator", None, _OWNER),
        _question("Intended use", None, _OWNER),
        _question("Data product", found["what"], ""),
        _question("Date of publication", None, f"Made on {card.created}. {_OWNER}"),
        _question("Flavour of differential privacy", promise["flavour"], missing),
        _question("Privacy unit", f"one {card.unit}" * (card.cost is not None), _NO_CARD),
        _question("Privacy loss", promise["words"], missing),
        _question(
            "Deployment model",
            "central, one static release, not interactive" * (card.cost is not None),
            _NO_CARD,
        ),
        _question("Data domain", domain, "See the schema."),
        _question("Unprotected quantities", "; ".join(found["public"]), ""),
        _question(
            "Privacy unit in detail",
            None
            if card.adjacency is None
            else f"{words.unit_words(card)}; neighbours: {_NEIGHBOURS[card.adjacency]}",
            _NO_CARD,
        ),
        _question("Accounting: composition", found["composition"], "No ledger was kept."),
        _question("Accounting: post-processing", found["post_processing"], ""),
        _question("Implementation", f"{found['made']['with']}, {_algorithms(found)}", ""),
        _question(
            "Exploration, preparation and tuning on these data",
            None,
            f"The program reads records in the mechanisms named here only. {_ELSE}",
        ),
        _question("Security", f"{found['trust_model']} {_SIDE}", ""),
        _question("Why these parameters and this method?", None, _OWNER),
    ]


def _strength(promise: Mapping[str, Any]) -> str | None:
    if promise["epsilon"] is None:
        return None
    at = f", δ = {promise['delta']:g}" if promise["delta"] else ""
    return (
        f"ε = {promise['epsilon']:.4g}{at}: whoever has to guess which of two equally likely "
        "neighbours are the data is right at most "
        f"{words.percent_up(promise['right_guess_at_most'])} of the time."
    )


def _algorithms(found: Mapping[str, Any]) -> str:
    return "; ".join(
        f"{each['what']} ({each['noise'] or 'see the proof'}), proof: {each['proof']}"
        for each in found["mechanisms"]
    )


def _accuracy(found: Mapping[str, Any]) -> str | None:
    utility = found["utility"]
    if utility is None or "pairs" not in utility:
        return None if utility is None else "Intervals of all parameters, listed under utility."
    pairs = ", ".join(f"{count} {verdict}" for verdict, count in utility["pairs"].items())
    ratio = utility["noise_to_sampling"]
    text = "" if ratio is None else f"Privacy noise is {ratio:.2g} times the sampling error. "
    return (
        f"{text}Pairs of variables: {pairs}. How far the model is from what was released is under "
        "utility."
    )
