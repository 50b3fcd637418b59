"""A plan in words: what to expect, what was assumed, what would help."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from privfield.mechanisms.edges.forecast import NO_SEARCH
from privfield.mechanisms.edges.passed_over import MOST_MEAN_RISK
from privfield.mechanisms.forecasting.choose import forecast_of, target_error
from privfield.mechanisms.forecasting.forecast import Answers, Forecast
from privfield.mechanisms.forecasting.reference import edges, typical_size
from privfield.mechanisms.forecasting.sizes import inference_size
from privfield.mechanisms.forecasting.study import Study, beside_scales
from privfield.mechanisms.peers.forecast import BOUND
from privfield.privacy.budgets import ApproxDP, Budget, PureDP, in_words
from privfield.words import bytes_text, number_text, rows_text, share_text

METRICS = {  # of the error, and of what `accuracy` is compared with
    "ising": ("typical error of a coupling (RMS)", "largest error of a coupling"),
    "ordinal": (
        "typical error of a weight per standard deviation (RMS)",
        "largest error of a weight per standard deviation",
    ),
    "pairwise": ("total variation of a table, mean over tables",) * 2,
    "polynomial": ("typical error of a coefficient (RMS)", "largest error of a coefficient"),
    "structure": ("chance of a wrong graph, or of none",) * 2,
    "chain": ("total variation of a row of the chain, mean over rows",) * 2,
    "peer": ("typical error of β, for an effect of about 0.5",) * 2,
}
_CHANCE = 0.075  # half more than the share of true edges among 5% that show by chance
_MOST_SETTLED = 0.005  # of the forecast's larger risk: below, selected pairs had their intervals
_DELTA = 1e-6  # offered where a budget has none


def noise_over_sampling(found: Forecast) -> float | None:
    """How large the error by noise is beside that by sampling, in the metric."""
    if found.plain_error is None or not found.sampling_error:
        return None
    return math.sqrt(max(0.0, (found.plain_error / found.sampling_error) ** 2 - 1))


def verdict(best: Forecast, study: Study) -> str:
    """What to expect, in a sentence."""
    if not best.available:
        return "None of the methods can be used as asked."
    if study.model == "structure":
        assert best.success is not None
        return f"The right graph comes out with a chance of {share_text(best.success)}."
    ratio = noise_over_sampling(best)
    if ratio is None:
        return "There is nothing to learn: no variable has two levels."
    if is_hopeless(best, study):
        rows = "people" if study.model == "peer" else "rows"
        return (
            f"The noise leaves next to nothing to learn: more {rows} or a larger budget are needed."
        )
    for most, text in (
        (0.3, "next to nothing beside sampling error"),
        (0.75, "less than sampling error"),
        (1.5, "about as much as sampling error"),
        (2.5, "about twice as much as sampling error"),
    ):
        if ratio <= most:
            return f"Privacy costs {text}."
    return f"Privacy costs about {ratio:,.0f} times as much as sampling error."


def is_hopeless(best: Forecast, study: Study) -> bool:
    """Whether the estimate would be little better than saying that nothing is connected.

    For a peer effect: whether its interval would hold about all effects that are sought.
    """
    if study.model == "peer":
        return best.plain_error is not None and best.plain_error > BOUND / 2
    pairs = max(1, math.comb(study.variables, 2))
    if best.found is not None and best.found < _CHANCE * edges(study.variables) / pairs:
        return True
    if best.expected_error is None or study.model not in ("ising", "ordinal", "polynomial"):
        return False
    size = typical_size(study.variables, study.coupling)
    return best.expected_error > 0.85 * size


def assumption(study: Study) -> str:
    """What forecasts had to assume."""
    if study.model == "chain":
        return (
            f"Assumed: {float(study.limit):g} transitions a person, all states visited about "
            "equally, no state nearly certain to follow another."
        )
    if study.model == "peer":
        return "Assumed: β of about 0.5 or less; stronger effects are usually estimated better."
    edge = f"{study.coupling:g}"
    if study.listed:
        return f"Assumed: every clique matters, with log-potentials of about {edge}."
    return (
        f"Assumed: each variable has about two neighbours, with couplings of about ±{edge}; "
        "all others are 0."
    )


def delta_remark(budget: Budget, n: int) -> str | None:
    """What to say of a δ that lets one person in n be shown whole."""
    delta = getattr(budget, "delta", 0)
    if delta * n < 1:
        return None
    return (
        f"δ = {float(delta):g} is not below 1/n = {1 / n:.2g}: showing all about one person in n, "
        f"chosen at random, would keep this promise. Take a δ well below, such as "
        f"1e-{len(str(n)) + 2}."
    )


def advice(
    ways: tuple[Forecast, ...],
    study: Study,
    needed_n: int | None,
    needed_budget: Budget | None,
    spent: Budget,
) -> list[str]:
    """What would help; the first of the ways is the best. `spent` is at each of several sites."""
    found, best = [], ways[0]
    remark = delta_remark(study.first_budget, study.n)
    if remark:
        found.append(remark)
    if study.accuracy is not None and best.available:
        found.append(_change(best, study, needed_n, needed_budget))
    if study.budget.is_pure and best.available:
        found.extend(_with_delta(best, study, spent))
    if best.found is not None and best.available and study.listed is None:
        found.append(_edges(best))
        found.extend([silence(best)] if silence(best) else [])
        found.extend(passed_over(ways, study))
    if scales_alone(study):
        found.append(scales_alone(study))
    tables = next((each for each in ways if each.name == "tables"), None)
    if tables is not None and "nothing" in tables.note:
        found.append(f"Tables: {tables.note}. {_instead(study)}")
    if tables is not None and not tables.available and study.model == "pairwise":
        found.append(_smaller(study))
    return found


def _instead(study: Study) -> str:
    ways = ["an (ε, δ) budget"] if study.budget.is_pure else ["a larger budget"]
    if study.is_binary:
        ways.append("moments")
    return f"Better: {', '.join([*ways, 'or fewer tables'])}."


def _edges(best: Forecast) -> str:
    """How many edges would show."""
    assert best.found is not None
    if best.note == NO_SEARCH:
        return f'Edges: {NO_SEARCH}. All pairs read "not measured".'
    text = f"Edges: {share_text(best.found)} of those assumed would show"
    if best.answers is not Answers.EVERYTHING:
        text += '; pairs that are not selected read "not measured"'
    return f"{text}."


def silence(best: Forecast) -> str:
    """Whether selected pairs would have intervals; empty where they would."""
    if best.most_risk <= _MOST_SETTLED:
        return ""
    verb = "would" if best.least_risk > 2 * MOST_MEAN_RISK else "may"
    return (
        f'Selected pairs {verb} read "not measured", too: links that the search may miss would '
        "show in them."
    )


def scales_alone(study: Study) -> str:
    """What a study gains without the few variables that have no order; empty if there are none.

    Of a study whose kind was left open, that is: one of pairs, without a list of them.
    """
    if study.model != "pairwise" or study.listed is not None or study.schema is None:
        return ""
    others = beside_scales(study.schema, study.budget)
    if not others:
        return ""
    shown = ", ".join(others[:4]) + ", …" * (len(others) > 4)
    has, them = ("has", "it") if len(others) == 1 else ("have", "them")
    return (
        f"{shown} {has} no order, unlike the other {study.variables - len(others)} variables. "
        f"Leave {them} out of the schema, and each pair will have one signed link (ordinal). To "
        "see whether links differ between groups, fit each group on its own and compare them."
    )


def passed_over(ways: Sequence[Forecast], study: Study) -> list[str]:
    """Why ways of which the forecast says less error are not the first, a sentence for each.

    Forecasts take noisy tables to be shrunk by the best amount, and selection to miss no more than
    in a network of strong edges. The choice does not trust either: see `choose.ranked`.
    """
    best = ways[0]
    found = []
    for each in ways[1:]:
        if not each.available or each.asks or not _errs_less(each, best):
            continue
        name, error = each.name.capitalize(), number_text(each.expected_error)
        if each.answers is Answers.EVERYTHING and study.guessed:
            why = "should there be few rows, single variables alone would do better: say --n"
            found.append(f"{name} may err less ({error}), but {why}.")
        elif each.answers is Answers.EVERYTHING:
            why = "only if shrunk by exactly the right amount; on real tables such noise costs more"
            found.append(f"{name} may err less ({error}), {why}.")
        elif each.answers is Answers.LITTLE:
            found.append(f"{name} may err less ({error}), but has no intervals.")
        else:
            why = "leaves the pairs that it does not select unmeasured"
            found.append(f"{name} may err less ({error}), but {why}.")
    return found


def _errs_less(each: Forecast, best: Forecast) -> bool:
    """By the digits that are shown."""
    if each.expected_error is None or best.expected_error is None:
        return False
    return float(f"{each.expected_error:.2g}") < float(f"{best.expected_error:.2g}")


def _change(
    best: Forecast, study: Study, needed_n: int | None, needed_budget: Budget | None
) -> str:
    _, target = METRICS[study.model]
    what = f"To reach {study.accuracy:g} ({target})"
    rows = None if needed_n is None else f"n = {rows_text(needed_n)}"
    spend = None if needed_budget is None else in_words(needed_budget)
    ways = [way for way in (rows, spend) if way is not None]
    if target_error(best) <= (study.accuracy or 0):
        enough = f"; {' or '.join(ways)} would do" if ways else ""
        return f"{what}: this is enough{enough}."
    if not ways:
        alone = number_text(best.sampling_error)
        return f"{what}: no budget is enough; without privacy the error is {alone}."
    if spend is None:
        return f"{what}: {rows}; no budget is enough for n = {study.n:,}."
    return f"{what}: {' or '.join(ways)}."


def _with_delta(best: Forecast, study: Study, spent: Budget) -> list[str]:
    """What a small δ would buy."""
    assert isinstance(study.budget, PureDP | ApproxDP) and isinstance(spent, PureDP | ApproxDP)
    delta = Fraction(_DELTA).limit_denominator(10**7)
    other, own = (ApproxDP(each.exact_epsilon, delta) for each in (study.budget, spent))
    there = forecast_of(replace(study, budget=other), best.name)
    if there.noise_sd is None or best.noise_sd is None:
        return []
    if there.noise_sd > best.noise_sd / 1.3:
        return []
    before, after = number_text(best.expected_error), number_text(there.expected_error)
    error = f" and the error from {before} to {after}" if after != before else ""
    return [
        f"With a small δ, {in_words(own)}, the noise falls from ±{number_text(best.noise_sd)} to "
        f"±{number_text(there.noise_sd)}{error}."
    ]


def _smaller(study: Study) -> str:
    size = inference_size(study)
    least = "" if size.complete else "at least "
    path = tuple(pairwise(range(study.variables)))
    tree = inference_size(replace(study, listed=path)).bytes
    return (
        f"Tables of these cliques: exact inference needs {least}{bytes_text(size.bytes)} "
        f"(treewidth {least}{size.treewidth}). What fits: fewer or smaller cliques (a tree of "
        f'{len(path)} pairs takes {bytes_text(tree)}), coarser levels, or cliques="learn".'
    )
