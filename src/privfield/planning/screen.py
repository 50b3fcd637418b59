"""A plan as one screen of text: at most 40 lines of 88 columns."""

from __future__ import annotations

import textwrap

from privfield.mechanisms.forecasting.forecast import Forecast
from privfield.planning.facts import PlanFacts
from privfield.privacy.budgets import in_words
from privfield.words import bytes_text, duration_text, number_text, rows_text

WIDTH = 88
_TITLES = {
    "ising": "an Ising model of",
    "ordinal": "an ordinal model of",
    "pairwise": "a pairwise model of",
    "polynomial": "a t-wise model of",
    "structure": "the graph of",
    "chain": "a chain",
    "peer": "a peer effect",
}
_PRIVACY = {
    "replace-one": "one {} replaced",
    "add-remove": "one {} added or removed",
    "flip-outcome": "one {} reversed; the network is public",
}


def screen_text(plan: PlanFacts) -> str:
    """The plan for people."""
    lines = [*_wrapped(_title(plan)), "", *_wrapped(_expectation(plan)), ""]
    best = plan.recommended
    if best.available:
        lines += [f"Use {best.name}:", *_code(best.call), ""]
    lines += _methods(plan)
    for advice in plan.advice:
        lines += _wrapped(advice, "- ")
    lines += _needs(plan)
    if plan.bounds:
        lines += [""]
    for bound in plan.bounds:
        lines += _wrapped(
            f"Proved: {bound.privacy} privacy takes at least {rows_text(bound.rows)} rows, by any "
            f"method, {bound.statement}."
        )
    if plan.table and len(lines) < 29:
        lines += ["", *_short_table(plan)]
    lines += ["", *_wrapped(plan.assumption + " No data was read.")]
    return "\n".join(lines)


def table_text(plan: PlanFacts) -> str:
    """Table 1 in Markdown."""
    if plan.sites > 1:
        return "Table 1 is about one table: leave out the sites."
    if not plan.table:
        return "Table 1 is about two-level variables."
    head = [
        "| rows needed | structure: proved | expected | growth | parameters: proved | "
        "expected | growth |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    body = [
        f"| {row.privacy} | {_least(row.structure_bound)} | {_about(row.structure_needed)} | "
        f"{_times(row.structure_growth)} | {_least(row.parameters_bound)} | "
        f"{_about(row.parameters_needed)} | {_times(row.parameters_growth)} |"
        for row in plan.table
    ]
    return "\n".join([*head, *body, "", *plan.table_notes])


def _title(plan: PlanFacts) -> str:
    what = _TITLES[plan.model]
    if plan.levels:
        gaps = plan.gaps == plan.variables  # everywhere: not counted as a level
        few, most = min(plan.levels) - gaps, max(plan.levels) - gaps
        levels = f"of {few} levels" if few == most else f"of {few} to {most} levels"
        many = f"{plan.variables:,} two-level variables"
        what += f" {many}" if most == 2 else f" {plan.variables:,} variables {levels}"
        if gaps:
            what += " and gaps"
        elif plan.gaps:
            what += f" (one level is a gap in {plan.gaps:,} of them)"
    noun = {"chain": "people", "peer": "nodes"}.get(plan.model, "rows")
    protected = _PRIVACY[str(plan.adjacency)].format(plan.unit)
    where = f" in {plan.sites} sites" if plan.sites > 1 else ""
    each = " each" if plan.sites > 1 else ""
    spent = f"{in_words(plan.budget)}{each} ({protected})"
    return f"Plan for {what}, {plan.n:,} {noun}{where}, {spent}"


def _expectation(plan: PlanFacts) -> str:
    best = plan.recommended
    if not best.available or plan.model == "structure":
        return plan.verdict
    text = (
        f"{plan.verdict} {plan.metric[0].upper()}{plan.metric[1:]}: about "
        f"{number_text(best.expected_error)}; without privacy {number_text(best.sampling_error)}."
    )
    if plan.metric != plan.target:
        text += f" {plan.target[0].upper()}{plan.target[1:]}: about "
        text += f"{number_text(best.largest_error)}."
    return text


def _methods(plan: PlanFacts) -> list[str]:
    both = plan.metric != plan.target
    largest = f"{'largest':>9}" if both else ""
    lines = [f"{'method':<22}{'error':>8}{largest}{'noise':>10}{'sampling':>10}"]
    lines[0] += f"{'memory':>10}{'time':>9}{'passes':>8}"
    for each in plan.methods:
        if each.available:
            lines.append(_method(each, both))
        else:
            first, *rest = textwrap.wrap(each.note, WIDTH - 24)
            lines += [f"{each.name:<22}  {first}", *(" " * 24 + part for part in rest)]
    asking = [each for each in plan.methods if each.available and each.asks]
    for each in asking:
        name = each.name.capitalize()
        lines += _wrapped(f"{name} is taken only if you ask for it ({each.asks}).")
    if plan.recommended.noise_sd is not None:
        lines += _wrapped(
            "Noise and sampling error: of one released number, in counts "
            f"({plan.recommended.name}: {plan.recommended.statistic})."
        )
    return lines


def _method(each: Forecast, both: bool) -> str:
    noise = "–" if each.noise_sd is None else f"±{number_text(each.noise_sd)}"
    sampling = "–" if each.sampling_sd is None else f"±{number_text(each.sampling_sd)}"
    largest = f"{number_text(each.largest_error):>9}" if both else ""
    return (
        f"{each.name:<22}{number_text(each.expected_error):>8}"
        f"{largest}{noise:>10}{sampling:>10}"
        f"{bytes_text(each.memory):>10}{duration_text(each.seconds):>9}{each.passes:>8}"
    )


def _needs(plan: PlanFacts) -> list[str]:
    best = plan.recommended
    text = f"- Memory: about {bytes_text(best.memory)}"
    if plan.max_memory is not None:
        fits = "within" if plan.fits else "more than"
        text += f", {fits} the {bytes_text(plan.max_memory)} allowed"
    return _wrapped(text + ".") if best.available else []


def _short_table(plan: PlanFacts) -> list[str]:
    lines = [f"{'Rows needed':<38}{'the graph':>24}{'all couplings':>24}"]
    for row in plan.table:
        graph = f"{_least(row.structure_bound)} {_about(row.structure_needed)}"
        numbers = f"{_least(row.parameters_bound)} {_about(row.parameters_needed)}"
        lines.append(f"  {row.privacy:<36}{graph:>24}{numbers:>24}")
    lines += _wrapped("≥ is proved for every method, ≈ is expected of ours. " + plan.table_notes[0])
    return lines


def _least(rows: float | None) -> str:
    return "–" if rows is None else f"≥ {rows_text(rows)}"


def _about(rows: float | None) -> str:
    return "–" if rows is None else f"≈ {rows_text(rows)}"


def _times(growth: float | None) -> str:
    return "–" if growth is None else f"{growth:.1f}×" if growth < 10 else f"{growth:,.0f}×"


def _wrapped(text: str, first: str = "") -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=" " * len(first))


def _code(call: str) -> list[str]:
    return textwrap.wrap(
        call,
        WIDTH - 4,
        initial_indent="    ",
        subsequent_indent="        ",
        break_long_words=False,
        break_on_hyphens=False,
    )
