"""Two releases side by side: whether links differ, where, and by how much. It costs no privacy."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from privfield._version import __version__
from privfield.checks import check_level, check_rng, length_of, shown
from privfield.errors import InputError
from privfield.estimation.estimate import estimate
from privfield.estimation.items.edges import ItemUncertainty
from privfield.estimation.uncertainty.centrality import CentralityDifference, centrality_differences
from privfield.estimation.uncertainty.centrality_rows import label
from privfield.estimation.uncertainty.comparing import ShareDifference, difference
from privfield.estimation.uncertainty.coordinates import tables_of
from privfield.estimation.uncertainty.intervals import Uncertainty
from privfield.estimation.uncertainty.strengths import (
    NEGLIGIBLE,
    UNKNOWN,
    VERDICTS,
    Edges,
    check_negligible,
)
from privfield.files import check_target, write_bytes
from privfield.models.base import Model
from privfield.models.card import Card
from privfield.privacy.released import Released
from privfield.reporting import sentences as words
from privfield.reporting.drawing import minus
from privfield.reporting.edge_table import edge_table
from privfield.reporting.findings import Findings, known
from privfield.reporting.parts import Content, banner, table
from privfield.reporting.report import render
from privfield.stamps import Stamped, own_stamp, stamp_of, stamped
from privfield.words import counted

_SHOWN = 10
HOPELESS = (
    "Nothing can be learned about differences: noise drowns every link in one group or in both. "
    "That is no evidence that the groups are alike."
)
_BOTH = (
    "People who are in one of the two groups are protected by that group’s promise. For people who "
    "are in both, as in two waves of one study, the two costs add up; one ledger for both releases "
    "keeps count. If who is in which group is itself a private answer, both groups must have been "
    "released under add-remove, which keeps their sizes private; a person who changes groups then "
    "moves both releases, and the two costs add up as well."
)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Stamped):
    """How two groups differ, from what was released about each.

    `p` is the chance that links look so different when they are the same, whatever the shares of
    answers; `links` is how many pairs were measured in both groups; `shares` are the differences of
    answers.
    """

    names: tuple[str, str]
    p: float
    links: int
    _edges: Edges
    shares: tuple[ShareDifference, ...]
    level: float
    cards: tuple[Card | None, Card | None]
    _central: Callable[[], Sequence[CentralityDifference]] = tuple
    stamp: str | None = own_stamp()

    def edges(self) -> Edges:
        """Differences of strengths, first less second, with intervals and judged together."""
        return self._edges

    @cached_property
    def centrality(self) -> tuple[CentralityDifference, ...]:
        """Differences of what `model.centrality()` has intervals for in both groups."""
        return tuple(self._central())

    @property
    def differ(self) -> bool:
        """Whether the links differ by more than chance, all taken together."""
        return self.p < 1 - self.level

    @property
    def hopeless(self) -> bool:
        """Whether noise leaves no information about any link of one group or the other."""
        return self._edges.count("not measured") == self._edges.pairs

    def verdict(self) -> str:
        """In a sentence."""
        if not self.links:
            return "No link was measured in both groups: nothing can be said about differences."
        if self.hopeless and not self.differ:
            return HOPELESS
        found = "The links differ" if self.differ else "No difference between the links was found"
        told = f"{found} ({counted(self.links, 'link')} compared as one, {p_text(self.p)})."
        return told if self.differ else f"{told} {self._not_equal()}"

    def _not_equal(self) -> str:
        """What was not found may be there: how well half of the differences are known, or worse."""
        rows = [row for row in self._edges if row.verdict not in (UNKNOWN, VERDICTS[-1])]
        widths = sorted(
            np.inf if row.low is None or row.high is None else row.high - row.low for row in rows
        )
        half = widths[len(widths) // 2] / 2 if widths else np.inf
        if not np.isfinite(half) or not all(row.signed for row in rows):
            return "That does not make them equal."
        rest = "the difference is" if len(widths) == 1 else "half of the differences are"
        return f"That does not make them equal: {rest} uncertain by ±{half:.2g} or more."

    def to_pandas(self) -> Any:
        """A row for each link."""
        return self._edges.to_pandas()

    @property
    def text(self) -> str:
        """The verdict, and the differences."""
        lines = f"Strengths of {self.names[0]} less those of {self.names[1]}:"
        return "\n".join([self.verdict(), lines, self._edges.text])

    def write(self, path: str | os.PathLike[str]) -> Path:
        """One self-contained HTML page."""
        target = check_target(path)
        write_bytes(target, render(_page(self)).encode())
        return target


def compare(
    first: Model | Released,
    second: Model | Released,
    *,
    names: Sequence[str] = ("first", "second"),
    level: float = 0.95,
    negligible: float = NEGLIGIBLE,
    rng: np.random.Generator | None = None,
) -> Comparison:
    """Compare two groups, sites or waves by what was released about them; it costs nothing more.

    Both are models, or what was released itself, of the same variables and levels. They come from
    noisy tables, moments or scores of items; scores go with scores, unless all variables have two
    levels. `rng` is for models so large that their statistics are simulated.
    """
    check_level(level)
    check_negligible(negligible)
    own = () if length_of(names) is None else tuple(names)
    if len(own) != 2 or not all(isinstance(each, str) and each for each in own):
        raise InputError(f"names must be two names for the groups; got {shown(names)}.")
    random = None if rng is None else check_rng(rng)
    one, two = (estimate(each) if isinstance(each, Released) else each for each in (first, second))
    laws = _law(one, "first"), _law(two, "second")
    _check_same(one, two)
    _check_scores(*laws)
    _check_other(one, two)
    found = difference(*laws, level, negligible, random)
    if found is None:
        raise InputError("no common links explain both groups, so they cannot be compared.")
    return Comparison(
        (own[0], own[1]),
        found.p,
        found.links,
        stamped(found.edges, one, two),
        found.shares,
        level,
        (one.card, two.card),
        partial(centrality_differences, (one, two), laws, level),
        stamp=stamp_of(one, two),
    )


def p_text(p: float) -> str:
    """A p-value in few digits, as papers write it."""
    return "p < 0.0001" if p < 1e-4 else f"p = {p:.2g}"


def _law(model: object, name: str) -> Uncertainty | ItemUncertainty:
    if not isinstance(model, Model):
        kind = type(model).__name__
        raise InputError(f"{name} must be a privfield model, or what was released; got {kind}.")
    found = known(model)
    if found is None:
        raise InputError(
            f"{name}: nothing is known about how far its links may be off. Models from noisy "
            "tables, moments or scores, with what was released inside, can be compared."
        )
    return found


def _check_same(first: Model, second: Model) -> None:
    one, two = first.schema, second.schema
    for name in one.names:
        if name not in two.names:
            raise InputError(f"second must have the variables of first; it lacks {name!r}.")
        if one[name].levels != two[name].levels:
            raise InputError(f"second must have the levels of first; those of {name!r} differ.")
    if one.names != two.names:
        raise InputError("second must have the variables of first, in the same order.")


def _check_other(first: Model, second: Model) -> None:
    """Two groups have two releases, whose noise differs."""
    one, two = (tables_of(model.measurements) for model in (first, second))
    if one.to_bytes() == two.to_bytes():
        raise InputError(
            "second is the same release as first: fit a model to each group, then compare the two."
        )


def _check_scores(
    first: Uncertainty | ItemUncertainty, second: Uncertainty | ItemUncertainty
) -> None:
    items = [each for each in (first, second) if isinstance(each, ItemUncertainty)]
    if len(items) == 1 and set(first.model.schema.shape) != {2}:
        raise InputError(
            "second must be of the kind of first: weights of ordinal models and tables of pairs "
            "are compared each with their own kind."
        )
    if len(items) == 2:
        scores = [each.law.field.sums.model_scores for each in items]
        if not all(map(np.allclose, *scores)):
            raise InputError(
                "second must have the scores of first: their weights mean other things."
            )


def _page(found: Comparison) -> Content:
    first, second = found.names
    groups = list(zip(found.names, found.cards, strict=True))
    page: Content = {
        "title": f"{first} and {second}: do they differ?",
        **banner(found.stamp),
        "lead": found.verdict(),
        "nothing": found.verdict() if found.hopeless and not found.differ else None,
        "tiles": _tiles(found),
        "protected": [
            f"{name}: {text}"
            for name, card in groups
            for text in words.protected(card, found.stamp)[:1]
        ],
        "cost": [_BOTH],
        "precision": [],
        "citation": words.citation(__version__),
        "facts": [(name, "unknown" if c is None else c.promise()) for name, c in groups],
        "edges": _links(found),
        "tables": [_answers(found), *_variables(found)],
        "methods": (
            f"We compared the networks of {first} and {second}, each released on its own, with "
            f"{words.software(found.cards[0])}. Equality of all links was tested by efficient "
            "scores with thresholds profiled out, sampling and privacy noise included (the sum "
            f"and the largest of the scores, calibrated together): {p_text(found.p)}. "
            "Differences of single links were judged together at a false discovery rate of "
            f"{1 - found.level:.0%} (Benjamini and Hochberg)."
        ),
        "reading": [
            "“All links as one” asks whether any link differs at all. How common answers are may "
            "differ between the groups without any link being different; that is in the table of "
            "answers.",
            "An interval that holds zero does not say that there is no difference. “Absent” does: "
            "the whole interval is too close to zero to matter.",
            "The two groups are taken as different people. In two waves of the same people answers "
            "go together: intervals are longer than need be then, p is too large, and differences "
            "may be missed.",
        ],
    }
    edges = page["edges"]
    data = None if edges is None else edges["data"]
    page["data"] = {"network": None, "edges": data, "stamp": found.stamp}
    return page


def _tiles(found: Comparison) -> list[Content]:
    compared = f"of {counted(found.links, 'link')} measured in both"
    return [
        {
            "name": "All links as one",
            "value": f"{p_text(found.p)}",
            "note": "how likely so large a difference is if there is none",
        },
        {
            "name": "Clear differences",
            "value": f"{found.edges().count('clear'):,}",
            "note": compared,
        },
    ]


def _links(found: Comparison) -> Content | None:
    edges = None
    if not found.hopeless:
        edges = edge_table(Findings(found.edges(), (), intervals=True), None)
    if edges is None:
        return None
    first, second = found.names
    return edges | {
        "heading": f"Links: {first} less {second}",
        "column": "Difference",
        "caption": f"Difference of strengths, with its {found.level:.0%} interval",
        "texts": [
            *[_above_zero(first, second)] * any(edge.signed for edge in found.edges()),
            "Verdicts judge all differences together: of those called clear, on average at most "
            f"{1 - found.level:.0%} are none.",
        ],
    }


def _above_zero(first: str, second: str) -> str:
    """What the sign of a difference means, and its odds ratio."""
    return (
        f"Above zero, the link is more positive, or less negative, among {first} than among "
        f"{second}. “Odds ratio” is that of {first} divided by that of {second}."
    )


def _variables(found: Comparison) -> list[Content]:
    if not found.centrality:
        return []
    rows = [
        [
            *(each.name, label(each.measure), minus(each.estimate, "+.2f")),
            f"{minus(each.low, '+.2f')} to {minus(each.high, '+.2f')}",
        ]
        for each in found.centrality
    ]
    return [
        table(
            f"Centrality: {found.names[0]} less {found.names[1]}",
            f"Differences of single variables, with {found.level:.0%} intervals, each on its own",
            ["Variable", "Measure", "Difference", "Interval"],
            rows,
            words=(0, 1),
        )
    ]


def _answers(found: Comparison) -> Content:
    def points(value: float) -> str:
        return minus(100 * value, "+.1f")

    rows = [
        [
            *(each.name, each.level, points(each.estimate)),
            f"{points(each.low)} to {points(each.high)}",
        ]
        for each in found.shares
    ]
    return table(
        f"Answers: {found.names[0]} less {found.names[1]}",
        f"Differences of shares in percentage points, with {found.level:.0%} intervals"
        + f", {words.ANSWERED}" * any(map(words.among_answered, found.cards)),
        ["Variable", "Level", "Difference", "Interval"],
        rows,
        words=(0, 1),
    )
