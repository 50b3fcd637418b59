"""From a model to what its page says: tables as rows of text, figures as plain data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from privfield.estimation.items.edges import ItemUncertainty
from privfield.estimation.uncertainty.counted import MarginalInterval
from privfield.estimation.uncertainty.intervals import Uncertainty
from privfield.estimation.uncertainty.strengths import VERDICTS
from privfield.models.base import Model
from privfield.models.card import Card
from privfield.models.ordinal import OrdinalModel
from privfield.models.polynomial import PolynomialMRF
from privfield.reporting import drawing
from privfield.reporting import sentences as words
from privfield.reporting.asking import asking
from privfield.reporting.centrality_table import centrality_table, communities, find_centrality
from privfield.reporting.edge_table import edge_table
from privfield.reporting.findings import Findings, summary
from privfield.reporting.parts import Content, bars, common, privacy_tile, table
from privfield.words import counted, exact_text

_MOST_ROWS = 2000
_MOST_BARS = 2000
NOTHING = (
    "Nothing can be learned from these numbers about which variables are related: no pair was "
    "measured, or privacy noise drowns what was. That is no evidence that they are unrelated. More "
    "records or a larger privacy budget would be needed."
)
_CHOSEN = (
    "Chosen pairs. Private selection chose which pairs were counted, by what they looked like. A "
    "link that was not chosen shows in pairs that were: a chosen pair may stand for a connection "
    "by way of another variable. Intervals take all other pairs as unlinked. So there are none "
    "where the search may have missed a link as strong as those it found that would show in the "
    "pair; such pairs are called not measured."
)
_MOST_NAMED = 5
_NO_SHARES = " Noise hides how common each answer is, too."
_ORDERS = {1: "single variables", 2: "pairs of variables", 3: "three variables together"}


def graph_page(
    model: Model,
    card: Card | None,
    found: Findings,
    level: float,
    negligible: float,
    title: str | None,
) -> Content:
    """The page of a model with variables and edges."""
    page = common(model, card, title)
    rows = None if card is None else card.rows
    if rows is None and found.total_is_public:
        rows = found.total
    page["lead"] = (
        f"A graphical model of {counted(len(model.schema), 'variable')}"
        + words.rows_words(card, rows)
        + (f", made on {card.created}." if card is not None else ".")
    )
    page["tiles"] = [privacy_tile(card, model.stamp), *_tiles(found, rows)]
    page["precision"] = _precision(found)
    picture = None
    central = find_centrality(model, found, level)
    page["nothing"] = _unsolved(model) or _same_answers(model, found) or _nothing(found)
    if not found.hopeless:
        questions = {variable.name: variable.question for variable in model.schema.variables}
        picture = drawing.draw_network(
            *(model.schema.names, found.edges, found.marginals, level, questions),
            communities(central),
        )
        if picture is not None and found.edges:
            page["network"] = _network(picture, found)
        page["edges"] = edge_table(found, picture)
    answers = not found.hopeless or bool(found.edges.unsettled)  # chosen pairs were counted well
    if answers and len(model.schema) > 1:
        page["asking"] = asking(model, found.total if rows is None else rows, rows is not None)
    page["centrality"] = None if central is None else centrality_table(central, level)
    page["marginals"] = _marginal_table(model, found.marginals, level)
    fit = _fit(found) if answers else None
    several = (_sites(card), _higher(model), fit)
    page["tables"] = [each for each in several if each is not None]
    page["methods"] = _methods(model, card, found, rows)
    page["reading"] = _reading(found, level, negligible)
    page["data"] = {
        "network": None if "network" not in page else drawing.for_page(picture),  # type: ignore[arg-type]
        "edges": page["edges"]["data"] if page.get("edges") else None,
        "stamp": model.stamp,
        "asking": page["asking"]["data"] if page.get("asking") else None,
    }
    return page


def _unsolved(model: Model) -> str | None:
    """Where the model must not be trusted, as the warning of its estimate says."""
    if model.solution is None or model.solution.trusted:
        return None
    return (
        f"The estimate is {model.solution.words()}. Do not rely on the numbers of this page. Fewer "
        "variables, or rare levels merged with others, would help; that costs a new release."
    )


def _nothing(found: Findings) -> str | None:
    if not found.hopeless:
        return None
    if found.edges.unsettled:
        return _go_together(found)
    return NOTHING + _NO_SHARES * (not any(marginal.measured for marginal in found.marginals))


def _go_together(found: Findings) -> str:
    """Where private selection found pairs, and none of them has an interval."""
    pairs = [f"{edge.first} – {edge.second}" for edge in found.edges]
    shown = ", ".join(pairs[:_MOST_NAMED]) + ", …" * (len(pairs) > _MOST_NAMED)
    which = "Whether they" if len(pairs) == 1 else "Which of them"
    missed, hidden = "links that the search may have missed would show", "there"
    if len(pairs) > found.edges.unsettled:
        others = "the other" if len(pairs) == found.edges.unsettled + 1 else "the others"
        hidden = f"in {found.edges.unsettled:,} of them, and noise or rare answers hide {others}"
    return (
        f"Private selection chose {counted(len(pairs), 'pair')} of variables that seem to go "
        f"together ({shown}). {which} are linked directly, and how strongly, cannot be learned "
        f"from these numbers: {missed} {hidden}. More records "
        "or a larger privacy budget would be needed, or all pairs counted instead of chosen ones."
    )


def _same_answers(model: Model, found: Findings) -> str | None:
    answers = found.same_answers(model.schema)
    if not answers:
        return None
    shown = ", ".join(f"“{answer}”" for answer in answers[:3])
    return (
        f"Almost everybody has the same answer ({shown}) in every variable, so nothing can be "
        "learned about which are related. Check that the levels of the schema are those of the "
        "file: `privfield check` counts, for you only, what does not fit."
    )


def _tiles(found: Findings, rows: float | None) -> list[dict[str, str]]:
    tiles = []
    if rows is not None:
        tiles.append({"name": "Records", "value": exact_text(rows), "note": "a public number"})
    elif found.total is not None:
        note = "estimated from noisy numbers"
        tiles.append({"name": "Records", "value": f"≈ {found.total:,.0f}", "note": note})
    if not found.intervals:
        edges = sum(edge.estimate != 0 for edge in found.edges)
        note = f"of {counted(found.edges.pairs, 'pair')}; no intervals are known"
        tiles.append({"name": "Linked in the model", "value": f"{edges:,}", "note": note})
    elif found.hopeless:
        note = "no pair could be measured: nothing can be learned about which are related"
        if found.edges.unsettled:
            note = "chosen pairs seem to go together; which are linked cannot be told"
        tiles.append({"name": "Clear edges", "value": "none", "note": note})
    else:
        others = [f"{found.edges.count(v):,} {v}" for v in VERDICTS[1:] if found.edges.count(v)]
        note = ", ".join([*others, f"of {counted(found.edges.pairs, 'pair')}"])
        clear = f"{found.edges.count('clear'):,}"
        tiles.append({"name": "Clear edges", "value": clear, "note": note})
    if found.like is not None and found.ratio:
        value = f"≈ {_rounded(found.like)}" if found.like >= 1 else "less than 1"
        tiles.append({"name": "As precise as", "value": value, "note": "records without noise"})
    return tiles


def _rounded(value: float) -> str:
    short = float(f"{value:.2g}")
    return f"{short:,.0f}" if value >= 10 else f"{short:g}"


def _precision(found: Findings) -> list[str]:
    if found.ratio is None or found.like is None or found.total is None:
        return []
    if found.ratio < 0.005:
        return ["Privacy noise is negligible here against the scatter of sampling people."]
    pairs = any(len(part.names) == 2 for part in found.fit)
    about = "the relation between two variables" if pairs else "each variable on its own"
    times = _rounded(found.ratio)
    return [
        f"For {about}, privacy noise was {'about' if times == '1' else f'{times} times'} as "
        "large as the scatter that comes from having sampled these people and not others. "
        "Estimates are about as precise as those from "
        f"{_rounded(found.like) + ' records' if found.like >= 1 else 'less than one record'} "
        "without privacy noise."
    ]


def _network(picture: drawing.Drawing, found: Findings) -> Content:
    signed = any(d.edge.signed for d in picture.edges)
    plain = any(not d.edge.signed for d in picture.edges)
    legend = []
    if signed:
        legend += [
            _key(drawing.POSITIVE, 5, 0.9, "", "go together (positive)"),
            _key(drawing.NEGATIVE, 5, 0.9, "9 5", "more of one, less of the other (negative)"),
        ]
    if plain:
        legend.append(_key(drawing.UNSIGNED, 5, 0.9, "", "related (no sign)"))
    if found.edges.count("uncertain"):
        legend.append(_key("currentColor", 1.2, 0.6, "", "thin and pale: uncertain"))
    text = (
        "Two variables are joined when they are related while all others are held fixed. Thicker "
        "is stronger. "
    )
    if not found.intervals:
        text += "No intervals are known for this model, so edges carry no verdict."
    else:
        text += (
            "Clear edges stand out when all are judged together. Edges that are absent are not "
            "drawn, nor are pairs that were not measured: a gap in the picture may be either."
        )
    if picture.groups:
        text += (
            " Colours and circled numbers are communities, found in the estimated network; no "
            "interval is known for them."
        )
    if picture.hides_uncertain:
        text += f" At first, {found.edges.count('uncertain'):,} uncertain edges are hidden."
    if picture.left_out:
        text += f" The {picture.left_out:,} weakest edges are left out of the picture."
    return {
        "text": text,
        "alt": drawing.alt_text(picture),
        "svg": drawing.as_svg(picture),
        "legend": legend,
        "told": "interval" if found.intervals else "strength",
        "ticks": [
            {"name": name, "checked": name == "clear" or not picture.hides_uncertain}
            for name in VERDICTS[:2]
            if found.edges.count(name)
        ],
    }


def _key(color: str, width: float, opacity: float, dash: str, name: str) -> dict[str, Any]:
    return {"color": color, "width": width, "opacity": opacity, "dash": dash, "name": name}


def _higher(model: Model) -> Content | None:
    """Interactions of three and more variables, of models that list them."""
    if not isinstance(model, PolynomialMRF):
        return None
    large = [(m, v) for m, v in model.coefficients.items() if len(m) > 2 and v]
    if not large:
        return None
    large.sort(key=lambda item: -abs(item[1]))
    shown = large[:_MOST_ROWS]
    caption = "Coefficients of products of variables (−1 and +1), the largest first"
    if len(shown) < len(large):
        caption += f"; {len(large) - len(shown):,} smaller ones are not listed"
    rows = [
        [" × ".join(model.names[v] for v in monomial), drawing.minus(value, "+.3f")]
        for monomial, value in shown
    ]
    return table(
        "Interactions of three and more variables", caption, ["Variables", "Strength"], rows
    )


def _marginal_table(
    model: Model, marginals: Sequence[MarginalInterval], level: float
) -> Content | None:
    if not any(marginal.measured for marginal in marginals):
        return None
    intervals = any(marginal.low is not None for marginal in marginals)
    groups, listed = [], 0
    for marginal in marginals:
        levels = model.schema[marginal.name].levels
        chosen = range(1, 2) if len(levels) == 2 else range(len(levels))
        listed += len(chosen)
        if listed <= _MOST_BARS:
            groups.append(bars(marginal, levels, chosen, model.schema[marginal.name].question))
    left = len(marginals) - len(groups)
    binary = any(len(v.levels) == 2 for v in model.schema.variables)
    return {
        "heading": "Each variable on its own",
        "text": "How the levels of each variable are shared out, "
        + f"{words.ANSWERED}, " * _among_answered(model, model.card)
        + ("by the released counts." if intervals else "in the model.")
        + (" Of variables with two levels only the second is shown." if binary else "")
        + " “Not measured” is what noise hides altogether."
        * any(not marginal.measured for marginal in marginals),
        "caption": f"Shares{f', with {level:.0%} intervals' if intervals else ''}",
        "intervals": intervals,
        "groups": groups,
        "left_out": f"{counted(left, 'more variable')} {'is' if left == 1 else 'are'} not listed."
        * bool(left),
    }


def _fit(found: Findings) -> Content | None:
    if not found.fit:
        return None
    texts = [
        "Looking costs nothing: the model behind “Strength”, which is not shrunk, is compared with "
        "the released noisy numbers, not with the data. A difference of about 1 or less is what "
        "noise and sampling alone would do. Much larger ones say that the model cannot express "
        "something that the numbers show."
    ]
    if found.simulated is not None:
        texts.append(
            f"The model is too large for exact answers here; {found.simulated:,} simulated people "
            "stand in for them."
        )
    if not found.agreed:
        texts.append(
            "Warning: the simulated people did not settle down, so intervals on this page may be "
            "wrong."
        )
    return table(
        "Does the model fit what was released?",
        "Differences between model and released numbers, in standard deviations of noise and "
        "sampling together",
        [
            *("About", "How many", "Typical difference", "Largest", "Largest for"),
            "Privacy noise ÷ sampling",
        ],
        summary(found.fit, lambda n: _ORDERS.get(n, f"{n} variables")),
        texts,
        (0, 4),
    )


def _sites(card: Card | None) -> Content | None:
    """Who gave what to a pooled model."""
    if card is None or not card.sites:
        return None
    rows = [
        [
            site.name,
            f"{'' if isinstance(site.people, int) else '≈ '}{site.people:,.0f}",
            site.promise or "not known",
        ]
        for site in card.sites
    ]
    return table(
        "The sites",
        "What each site measured and promised",
        ["Site", "People", "Promise"],
        rows,
        [
            "Records stayed at their site; noisy numbers travelled. A site counts the more, the "
            "more people it has and the less noise it added.",
            *card.notes[:1],
        ],
        words=(0, 2),
    )


def _methods(
    model: Model,
    card: Card | None,
    found: Findings,
    rows: float | None,
) -> str:
    kind = "binary" if all(size == 2 for size in model.schema.shape) else "categorical"
    field = "Markov random field"
    if isinstance(model, OrdinalModel):
        kind, field = "ordinal", "ordinal Markov random field"
    parts = [
        f"We estimated a graphical model ({field}) of "
        f"{counted(len(model.schema), f'{kind} variable')}{words.rows_words(card, rows)} with "
        f"{words.software(card)}.",
        words.privacy_sentence(card, model.stamp),
    ]
    level, edges = found.edges.level, found.edges
    if found.intervals:
        parts.append(
            "The model was fitted to the noisy statistics alone, shrinking interactions as far as "
            "sampling and privacy noise demand."
        )
    if found.intervals and not found.hopeless:
        parts.append(
            f"Strengths and their intervals ({level:.0%}, not adjusted for multiple comparisons) "
            "account for sampling and privacy noise together; each pair was judged without "
            f"assumptions about itself, all others under {_prior(found)}."
        )
    if edges.note:
        parts.append(edges.note)
    if found.hopeless:
        parts.append(f"Of {counted(edges.pairs, 'pair')} of variables none could be measured.")
        return " ".join(parts)
    if found.intervals and edges.pairs:
        measured = edges.pairs - edges.count("not measured")
        parts.append(
            f"Of {counted(edges.pairs, 'pair')} of variables, {measured:,} could be measured; of "
            f"these, {edges.count('clear'):,} stand out at a false discovery rate of "
            f"{1 - level:.0%} (Benjamini and Hochberg), {edges.count('absent'):,} are absent or "
            f"negligible, and {edges.count('uncertain'):,} are uncertain."
        )
    if _among_answered(model, card):
        parts.append(
            "Missing answers were not imputed and no record was left out: estimates are from "
            "available cases, among those who answered."
        )
    if found.edges and all(edge.signed for edge in found.edges):
        between = " between the lowest and the highest level of both variables"
        parts.append(
            "Edge weights are a quarter of the conditional log odds ratio"
            f"{between * any(size > 2 for size in model.schema.shape)}."
        )
    return " ".join(parts)


def _among_answered(model: Model, card: Card | None) -> bool:
    """Some learners take a gap as one more level; their models have it."""
    return words.among_answered(card) and not model.schema.has_gaps


def _prior(found: Findings) -> str:
    """What is assumed about other pairs than the one that is judged."""
    if isinstance(found.law, ItemUncertainty):
        return "a weak prior (expectation propagation)"
    if isinstance(found.law, Uncertainty) and found.law.judging is not found.law.law:
        return "a wide normal prior, with variances found by expectation propagation"
    return "a spike-and-slab prior (expectation propagation)"


def _reading(found: Findings, level: float, negligible: float) -> list[str]:
    texts = [
        "Strength. For two variables with two levels each it is the weight W of an Ising model "
        "with states −1 and +1: a quarter of the log odds ratio between them, all other variables "
        "held fixed. W = 0.25 means that the odds of one are multiplied by e ≈ 2.7 when the other "
        "changes. Where both variables are ordered, it is the same between their lowest and "
        "highest levels, along a straight trend; the odds ratio is that of one step up on both "
        "scales. Where a variable has three or more levels "
        "without an order there is no sign: it is the typical size (root mean square) of the "
        "entries of the pair’s centred log-linear interaction."
    ]
    if not found.intervals:
        return [
            *texts,
            "No intervals: the method or the file does not hold what they need. Edges are shown "
            "as estimated.",
        ]
    ends = [f"{math.exp(end):.3g}" for end in (-4 * negligible, 4 * negligible)]
    bound = f"for yes/no an odds ratio of {ends[0]} to {ends[1]}"
    texts += [
        "Verdicts. Clear: the edge stands out when all are judged together; of the edges called "
        f"clear, on average at most {1 - level:.0%} are not there. Absent: the whole interval lies "
        f"within ±{negligible:g} ({bound}), so that the edge is too weak to matter. Uncertain: "
        "neither; the data, with this much privacy noise, cannot say. Not measured: private "
        "selection did not look at the pair, or may have missed links that would show in it, or "
        "the noise leaves no information about it.",
        "Intervals take the tables that were counted as enough to describe the people, and people "
        "as independent. An end that is too far away to tell anything is called no limit. A "
        "strength without a sign cannot be negative: where chance alone would do, its interval "
        "starts at 0.",
    ]
    if isinstance(found.law, Uncertainty) and found.law.selected:
        texts.append(_CHOSEN)
    return texts
