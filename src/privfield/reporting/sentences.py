"""What was protected, what it cost and how it was done: sentences with the numbers of the card."""

from __future__ import annotations

import math
from dataclasses import dataclass

from privfield._version import __version__
from privfield.models.card import GAPS, Card, guarantee
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import ApproxDP, Budget, NonPrivate, PureDP, in_words
from privfield.words import exact_text

_DELTA = 1e-6  # at which a cost in ρ is told in ε, where nothing else was asked for

ANSWERED = "among those who answered"

_NOISE = {
    "discrete-laplace": "Discrete Laplace",
    "discrete-gaussian": "Discrete Gaussian",
    "laplace": "Laplace",
    "gaussian": "Gaussian",
    "none": "No",
}


@dataclass(frozen=True)
class Promise:
    """ε and δ as the reader may use them; None where no promise is made or known."""

    epsilon: float | None
    delta: float


def promise_of(card: Card | None) -> Promise:
    """The (ε, δ) that was kept: what was asked for, or what the cost amounts to."""
    cost = None if card is None else card.cost
    if card is None or not isinstance(cost, Budget):
        return Promise(None, 0.0)
    asked = card.budget
    if isinstance(cost, PureDP):
        return Promise(cost.epsilon, 0.0)
    if isinstance(asked, ApproxDP) and cost <= asked:
        return Promise(asked.epsilon, asked.delta)
    if isinstance(cost, ApproxDP):
        return Promise(cost.epsilon, cost.delta)
    delta = max(_DELTA, 2 * cost.as_cost().delta)
    return Promise(cost.epsilon_at(delta), delta)


def unit_words(card: Card) -> str:
    """Whose data is protected, as a noun."""
    if card.unit == "row":
        return "row of the data (one person’s answers, if each person has one row)"
    return card.unit


def among_answered(card: Card | None) -> bool:
    """Whether gaps are no answers: the model speaks of people who gave one."""
    return card is not None and GAPS in card.notes


def protected(card: Card | None, stamp: str | None) -> list[str]:
    """What the promise means for a person in the data, and what it does not cover."""
    if stamp is not None:
        return [
            f"Nothing. {stamp}. Treat this page like the data themselves, and do not publish it."
        ]
    if card is None or card.cost is None:
        return [
            "This model carries no card, so this page cannot say what was protected. Ask whoever "
            "made it for its privacy cost before you pass it on."
        ]
    found = [_meaning(card), _limits(card)]
    if card.levels_are_public:
        found.append(
            "The levels of the variables were read off the data because the data’s owner declared "
            "them public; the promise does not cover which levels occur."
        )
    return found


def _meaning(card: Card) -> str:
    promise = promise_of(card)
    if promise.epsilon is None:
        return f"One {unit_words(card)} is protected; how strongly is not known."
    noun = card.unit.split(" (")[0]
    if card.adjacency is Adjacency.FLIP_OUTCOME:
        who, secret = "the outcome of each node of the network", "one node’s outcome"
    elif card.adjacency is Adjacency.ADD_REMOVE:
        who, secret = f"each {unit_words(card)}", f"whether one particular {noun} is in the data"
    else:
        who = f"each {unit_words(card)}"
        whose = noun if noun == "row" else f"{noun}’s data"
        secret = f"which of two equally likely versions of one {whose} is the true one"
    best = success(promise)
    scale = f"ε\u00a0=\u00a0{promise.epsilon:.3g}"
    if promise.delta > 0:
        scale += f", δ\u00a0=\u00a0{promise.delta:g}"
    text = (
        f"Protected is {who}. Imagine someone who knows everything else and has to guess {secret}. "
        "By tossing a coin they are right 50% of the time. With all that was released they "
        f"are right at most {percent_up(best)} of the time ({scale})."
    )
    if best > 0.95:
        text += " That is a weak promise: it leaves room for near certainty."
    return text


def success(promise: Promise) -> float:
    """The best chance to tell two equally likely neighbours apart: (e^ε + δ)/(1 + e^ε).

    (ε, δ)-privacy bounds the total variation by (e^ε − 1 + 2δ)/(e^ε + 1) (Kairouz et al. 2015).
    """
    if promise.epsilon is None or promise.epsilon > 700:
        return 1.0
    odds = math.exp(promise.epsilon)
    return min(1.0, (odds + promise.delta) / (1 + odds))


def percent_up(share: float) -> str:
    """Rounded up, so that no promise is larger than the one that was made."""
    step = 1000 if share > 0.99 else 100
    return f"{math.ceil(share * step - 1e-9) * 100 / step:g}%"


def _limits(card: Card) -> str:
    if card.adjacency is Adjacency.FLIP_OUTCOME:
        return (
            "Not protected are the network, who is in it, and what follows about one node from the "
            "others: friends of positives are likelier positive."
        )
    size = {
        Adjacency.REPLACE_ONE: " Not protected is how many rows there are.",
        Adjacency.ADD_REMOVE: " That someone took part at all is protected too.",
    }.get(card.adjacency or Adjacency.REPLACE_ONE, "")
    if card.adjacency is Adjacency.REPLACE_ONE and card.unit != "row":
        size = " Not protected is how many people there are."
    return (
        "What holds for people in general is meant to be learned, and may be applied to anyone, "
        "whether they took part or not. Names and levels of the variables are public. People whose "
        "answers depend on each other, such as members of a family, are protected one by one, not "
        f"as a group.{size}"
    )


def cost(card: Card | None) -> list[str]:
    """What was spent, of what, and where it is written down."""
    if card is None or card.cost is None:
        return []
    if isinstance(card.cost, NonPrivate):
        return ["No privacy budget was spent: no noise was added, for study only."]
    found = [f"Spent: {guarantee(card.cost, card.budget)}."]
    if isinstance(card.budget, ApproxDP) and isinstance(card.cost, PureDP):
        found[0] = found[0][:-1] + f", within the budget of {budget_words(card.budget)}."
    if card.ledger is not None:
        job = "" if card.job is None else f" as job “{card.job}”"
        time = "" if card.charged is None else f" on {moment(card.charged)}"
        found.append(f"The charge is in the ledger “{card.ledger}”{job}{time}.")
    found.append(
        "This page was computed from the released numbers alone. Making it, and everything "
        "else that is computed from the model, costs nothing more."
    )
    return found


def moment(time: str) -> str:
    """A time as people read it."""
    return time.replace("T", " ").replace("+00:00", " UTC")


def budget_words(budget: Budget | NonPrivate | None) -> str:
    """A budget as in a paper."""
    return "none" if budget is None or isinstance(budget, NonPrivate) else in_words(budget)


def privacy_sentence(card: Card | None, stamp: str | None) -> str:
    """The sentence of a methods paragraph that states the guarantee."""
    if stamp is not None:
        return f"{stamp}: no privacy guarantee is claimed."
    if card is None or not isinstance(card.cost, Budget):
        return "The privacy guarantee of the source is not recorded in the model file."
    relation = "" if card.adjacency is None else f", “{card.adjacency}” neighbours"
    noise = ""
    if card.noise in _NOISE:
        noise = f" {_NOISE[card.noise]} noise was added to the released statistics."
    return (
        f"The release satisfies {guarantee(card.cost, card.budget)} (unit of privacy: one "
        f"{card.unit}{relation}).{noise}"
    )


def rows_words(card: Card | None, rows: float | None) -> str:
    """From how many rows, where that is public."""
    count = rows if card is None or card.rows is None else card.rows
    return "" if count is None else f" from {exact_text(count)} record{'s' * (count != 1)}"


def software(card: Card | None) -> str:
    """What made a model, and how."""
    version = __version__ if card is None else card.version
    how = "" if card is None or card.method is None else f" ({card.method})"
    return f"privfield {version}{how}"


def citation(version: str) -> str:
    """How to cite the software."""
    return (
        f"The privfield maintainers. privfield: graphical models from sensitive data under "
        f"differential privacy. Version {version}."
    )
