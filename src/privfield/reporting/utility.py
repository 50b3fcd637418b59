"""What synthetic rows keep and lose against the released numbers and the model; it spends nothing.

Synthetic rows are public: they are counted exactly, and so would be any others.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from privfield.checks import check_level
from privfield.data.check import MOST_OUTSIDE, CheckReport, check
from privfield.data.counting.count import count_tables
from privfield.data.table import open_table
from privfield.errors import InputError
from privfield.estimation.uncertainty.coordinates import Numbers, Scope, numbers_of
from privfield.estimation.uncertainty.tails import quantile
from privfield.files import check_target, write_bytes
from privfield.inference.factors import Table, aligned
from privfield.models.base import Model
from privfield.reporting.on_models import is_small
from privfield.reporting.parts import Content, common, privacy_tile, table
from privfield.reporting.report import render
from privfield.schema import Schema
from privfield.words import counted, exact_text

_SHOWN = 30
_MOST_PAIRS = 20_000


@dataclass(frozen=True)
class Kept:
    """How far synthetic rows are from what was released about one or two variables.

    Distances are total variations, from 0 to 1: the share of rows that would have to change.
    `chance` is the distance that privacy noise and sampling of people would make; `outside` is the
    share of cells that lie further from the released number than its margin, which chance lets
    happen to 1 − level of them. None stands for "not known".
    """

    names: tuple[str, ...]
    to_model: float | None
    to_released: float | None
    chance: float | None
    outside: float | None


@dataclass(frozen=True, eq=False)
class Utility:
    """What synthetic rows keep, table by table, and how many break a rule of the schema."""

    model: Model
    rows: int
    kept: tuple[Kept, ...]
    forbidden: int
    level: float
    alarm: str = ""  # what is so wrong with the rows that the distances say nothing else

    def of(self, order: int) -> tuple[Kept, ...]:
        """Tables of so many variables."""
        return tuple(each for each in self.kept if len(each.names) == order)

    def summary(self) -> dict[str, Any]:
        """The numbers of the page, for programs."""
        tables = {}
        for order, name in ((1, "single"), (2, "pairs")):
            own = self.of(order)
            tables[name] = {"count": len(own)} | {
                field: _mean(own, field)
                for field in ("to_model", "to_released", "chance", "outside")
            }
        about = {"rows": self.rows, "forbidden": self.forbidden, "alarm": self.alarm}
        return {**about, "level": self.level, "stamp": self.model.stamp, **tables}

    def write(self, path: str | os.PathLike[str]) -> Path:
        """One self-contained HTML page."""
        target = check_target(path)
        write_bytes(target, render(_page(self)).encode())
        return target


def utility(model: Model, synthetic: Any, level: float = 0.95) -> Utility:
    """Compare synthetic rows with the model, and with the noisy tables that it was made from.

    `synthetic` is read by the model's schema, like any table. Give synthetic rows only: they are
    counted exactly, and what is found is not protected.
    """
    check_level(level)
    if not isinstance(model, Model):
        raise InputError(f"model must be a model of variables; got {type(model).__name__}.")
    schema = model.schema
    numbers = numbers_of(model, model.measurements)
    scopes = _scopes(model, numbers)
    rules = [tuple(schema.index(name) for name, _ in rule) for rule in schema.forbidden]
    rows_in = open_table(synthetic, schema.of_rows())
    alarm = _strange(check(synthetic, schema.of_rows()), schema) if rows_in.source.passes else ""
    counts = count_tables(rows_in.batches(), schema.shape, [*scopes, *rules])
    rows = int(counts[0].sum())
    if not rows:
        raise InputError("synthetic must hold rows; got none.")
    own = [np.asarray(each / rows) for each in counts[: len(scopes)]]
    exact = (
        [model.marginal([schema.names[v] for v in s]) for s in scopes] if is_small(model) else []
    )
    released = {} if numbers is None else dict(_released(numbers, scopes, schema.shape))
    kept = []
    for place, scope in enumerate(scopes):
        noisy = None
        if numbers is not None and scope in released:
            shares, deviation = released[scope]
            noisy = _against(own[place], shares, deviation, numbers, level)
        to_model = _distance(own[place], exact[place]) if exact else None
        names = tuple(schema.names[v] for v in scope)
        kept.append(Kept(names, to_model, *(noisy or (None, None, None))))
    broken = sum(
        int(np.asarray(count)[np.ix_(*[_codes(schema, *part) for part in rule])].sum())
        for rule, count in zip(schema.forbidden, counts[len(scopes) :], strict=True)
    )
    return Utility(model, rows, tuple(kept), broken, level, alarm)


def _strange(found: CheckReport, schema: Schema) -> str:
    """Whether a variable of the rows holds other levels than the model's."""
    if not found.rows:
        return ""
    worst = max(found.variables, key=lambda each: each.unknown)
    share, name = worst.unknown / found.rows, worst.name
    if share <= MOST_OUTSIDE:
        return ""
    levels = ", ".join(schema[name].levels[:4]) + ", …" * (len(schema[name].levels) > 4)
    return (
        f"These rows do not fit the model: {share:.0%} of “{name}” is none of its levels "
        f"({levels}). The distances say that, and nothing about what is kept."
    )


def _codes(schema: Schema, name: str, levels: Sequence[str]) -> list[int]:
    return [schema[name].code(level) for level in levels]


def _scopes(model: Model, numbers: Numbers | None) -> list[Scope]:
    """All variables, and the pairs that were counted or that the model joins."""
    own = () if numbers is None else numbers.scopes
    cliques = [*own, *(model.factors.cliques if is_small(model) else ())]
    pairs = {pair for clique in cliques for pair in combinations(sorted(clique), 2)}
    if len(pairs) > _MOST_PAIRS:
        raise InputError(
            f"utility compares up to {_MOST_PAIRS:,} pairs of variables; the model has "
            f"{len(pairs):,}."
        )
    return [*((v,) for v in range(len(model.schema))), *sorted(pairs)]


def _released(
    numbers: Numbers, scopes: Sequence[Scope], shape: Sequence[int]
) -> Iterator[tuple[Scope, tuple[Table, float]]]:
    """Noisy shares of each scope that was counted whole, and the deviation of a cell's noise.

    Levels beyond the model's `shape` are gaps: shares are those of people who answered.
    """
    parts = dict(zip(numbers.scopes, numbers.tables(numbers.sums / numbers.total), strict=True))
    noise = {scope: float(numbers.variances[at].mean()) for scope, at in numbers.places() if at}
    known = {tuple(sorted(scope)): scope for scope in parts}
    for scope in scopes:
        inside = [p for n in range(1, len(scope) + 1) for p in combinations(scope, n)]
        if not all(part in known for part in inside):
            continue
        cells = numbers.cells(scope)
        shares, variance = np.full([numbers.shape[v] for v in scope], 1 / cells), 0.0
        for part in inside:
            away = cells / numbers.cells(part)
            name = known[part]
            shares = shares + aligned(parts[name], name, scope) / away
            lengths = math.prod(1 - 1 / numbers.shape[v] for v in part)  # of a cell's contrasts
            variance += noise[name] * lengths / away**2
        answers = shares[tuple(slice(shape[v]) for v in scope)]
        answered = max(float(answers.sum()), 1 / numbers.total)
        yield scope, (answers / answered, math.sqrt(variance) / numbers.total / answered)


def _against(
    own: Table, noisy: Table, deviation: float, numbers: Numbers, level: float
) -> tuple[float, float, float]:
    """The distance to a noisy table, that of chance, and the share of cells too far off."""
    gap, share = np.abs(own - noisy), np.clip(noisy, 0, 1)
    variance = deviation**2 + numbers.alike * share * (1 - share) / numbers.total
    chance = float(np.sqrt(variance).sum()) * math.sqrt(2 / math.pi) / 2
    part = np.where(variance > 0, numbers.laplace * deviation**2 / np.maximum(variance, 1e-300), 0)
    margin = quantile(level, part) * np.sqrt(variance)
    return float(gap.sum() / 2), chance, float((gap > margin + 1e-12).mean())


def _distance(a: Table, b: Table) -> float:
    return float(np.abs(a - b).sum() / 2)


def _mean(kept: Sequence[Kept], field: str) -> float | None:
    found = [getattr(each, field) for each in kept if getattr(each, field) is not None]
    return fmean(found) if found else None


def _page(found: Utility) -> Content:
    model, card = found.model, found.model.card
    page = common(model, card, f"What {exact_text(found.rows)} synthetic rows keep")
    pairs = found.of(2)
    released = any(each.to_released is not None for each in found.kept)
    page["lead"] = (
        f"Synthetic rows of {counted(len(model.schema), 'variable')} against the model"
        + (" and the noisy numbers that it was made from." if released else ".")
    )
    page["precision"] = [
        "This page compares public things with public things, so it spends nothing. The rows were "
        "counted exactly: give synthetic rows only. Made from records, such a page would protect "
        "nobody."
    ]
    page["tiles"] = [
        privacy_tile(card, model.stamp),
        {"name": "Synthetic rows", "value": exact_text(found.rows), "note": "public"},
        _tile("Single variables", found.of(1)),
        *([_tile("Pairs", pairs)] if pairs else []),
    ]
    page["nothing"] = found.alarm
    page["tables"] = [_summary_table(found, released), *_worst(pairs, released)]
    page["reading"] = _reading(found, released)
    page["methods"] = _methods(found)
    page["data"] = {"network": None, "edges": None}
    return page


def _tile(name: str, kept: Sequence[Kept]) -> dict[str, str]:
    released, model = _mean(kept, "to_released"), _mean(kept, "to_model")
    chance = _mean(kept, "chance")
    if released is None or chance is None:
        return {"name": name, "value": _points(model), "note": "mean distance to the model"}
    note = f"mean distance to what was released; chance alone makes {_points(chance)}"
    return {"name": name, "value": _points(released), "note": note}


def _points(share: float | None) -> str:
    return "not known" if share is None else f"{100 * share:.2f}%"


_COLUMNS = (
    ("to_model", "From the model"),
    ("to_released", "From the released numbers"),
    ("chance", "Chance alone"),
    ("outside", "Cells beyond the margin"),
)


def _columns(released: bool) -> tuple[tuple[str, str], ...]:
    return _COLUMNS if released else _COLUMNS[:1]


def _summary_table(found: Utility, released: bool) -> Content:
    rows = []
    for order, name in ((1, "single variables"), (2, "pairs of variables")):
        own = found.of(order)
        if own:
            means = [_points(_mean(own, field)) for field, _ in _columns(released)]
            rows.append([name, f"{len(own):,}", *means])
    texts = [
        "Distances are total variations: the share of rows that would have to change for a table "
        "to agree. That from the model comes from drawing so many rows and no more; it falls as "
        "rows are added. That from the released numbers has their chance in it, which rows need "
        "not, and should not, reproduce: compare it with what chance alone makes, which is privacy "
        "noise and having sampled these people and not others."
    ]
    if found.model.schema.forbidden:
        broken = counted(found.forbidden, "row") if found.forbidden else "No row"
        verb = "breaks" if found.forbidden <= 1 else "break"
        texts.append(f"{broken} {verb} a rule of the schema about what cannot occur together.")
    titles = ["Tables", "How many", *(title for _, title in _columns(released))]
    return table("What is kept", "Mean distances of all tables", titles, rows, texts)


def _worst(pairs: Sequence[Kept], released: bool) -> list[Content]:
    """The pairs that lose most, beside what chance would do."""

    def loss(each: Kept) -> float:
        if each.to_released is None or each.chance is None:
            return each.to_model or 0.0
        return each.to_released / each.chance if each.chance else math.inf

    shown = sorted(pairs, key=loss, reverse=True)[:_SHOWN]
    if not shown:
        return []
    columns = _columns(released)
    left = len(pairs) - len(shown)
    caption = "Pairs that are furthest off" + " beside chance" * released
    caption += f"; {left:,} others are closer" * (left > 0)
    rows = [
        [" × ".join(each.names), *(_points(getattr(each, field)) for field, _ in columns)]
        for each in shown
    ]
    titles = ["Pair", *(title for _, title in columns)]
    return [table("Which pairs lose most", caption, titles, rows)]


def _reading(found: Utility, released: bool) -> list[str]:
    size = len(found.model.schema)
    others = size * (size - 1) // 2 - len(found.of(2))
    texts = []
    if released:
        texts.append(
            f"Margins cover privacy noise and sampling together ({found.level:.0%}): of tables "
            f"that are kept, at most about {1 - found.level:.0%} of cells lie beyond. Fewer do "
            "where the model follows the released numbers closely. More say that the model could "
            "not express something that the numbers show."
        )
    if others:
        texts.append(
            f"Nothing was counted about {counted(others, 'other pair')}, and the model does not "
            "join them: whether rows keep what the records say about them cannot be told without "
            "spending budget."
        )
    texts.append(
        "More synthetic rows than people add no knowledge. Analyses of one synthetic table look "
        "surer than they are; `privfield sample --copies` makes several for honest intervals."
    )
    return texts


def _methods(found: Utility) -> str:
    parts = [
        f"{exact_text(found.rows)} synthetic rows were compared with the released noisy tables, "
        "at no privacy cost."
    ]
    for order, name in ((1, "single variables"), (2, "pairs of variables")):
        own = found.of(order)
        value, chance = _mean(own, "to_released"), _mean(own, "chance")
        if value is not None and chance is not None:
            parts.append(
                f"The mean total variation distance over {len(own):,} {name} was "
                f"{_points(value)} (privacy noise and sampling alone: {_points(chance)})."
            )
        elif own:
            parts.append(
                f"The mean total variation distance from the model over {len(own):,} {name} was "
                f"{_points(_mean(own, 'to_model'))}."
            )
    return " ".join(parts)
