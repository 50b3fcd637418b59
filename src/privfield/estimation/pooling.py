"""Several sites, one model: noisy numbers travel, people's records stay at home.

Every site measures its own people. What they released about the same variables is added up with
weights: people of a site whose noise is large count less. With N_s people and noise of variance v_s
at site s, the weights w_s ∝ N_s/(N_s f + v_s) make the sum as precise as it can be; they are scaled
so that it speaks for all N people. Its sampling variance f·Σ w_s² N_s then exceeds f·N, by what
unequal weights cost; that part is counted as noise. f is the variance of a statistic of one person
that is as even as can be: nothing about records enters.

Products of scores that each site standardised by its own counts do not add up. What they say about
one common field does: see `items/pooled.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from privfield.algebra.contrasts import Scope
from privfield.checks import length_of
from privfield.errors import InputError
from privfield.estimation.estimate import estimate
from privfield.estimation.tables.interactions import among_answered, interactions
from privfield.estimation.uncertainty.coordinates import tables_of
from privfield.inference.factors import Table
from privfield.mechanisms.items.sums import ItemSums, PooledItems
from privfield.mechanisms.moments.moments import Moments
from privfield.mechanisms.tables.measurements import Measurements
from privfield.models.base import Model
from privfield.models.card import Card, Site, attach
from privfield.models.ising import SPIN_LEVELS, IsingModel
from privfield.privacy.budgets import NON_PRIVATE, Cost, NonPrivate
from privfield.schema import Schema
from privfield.stamps import stamp_of
from privfield.words import counted

Release = Moments | Measurements
Pooled = Moments | Measurements | PooledItems


def pool(sites: Sequence[Any], *, names: Sequence[str] | None = None, overlap: bool = False) -> Any:
    """One model from what several sites released about their own people; it costs nothing more.

    `sites` are models that carry what was released (`pf.load`), or noisy tables and moments
    themselves, all of the same variables, levels and neighbours; cliques and noise may differ.
    Scores of items go with scores of items.
    Each person must be in one site only: then the promise is the weakest of those of the sites.
    With `overlap` a person may be in all of them, and the costs add up. `names` are the sites'.
    """
    releases = [_release(site, number) for number, site in enumerate(_several(sites), 1)]
    labels = [f"site {n}" for n in range(1, len(releases) + 1)]
    if names is not None:
        if length_of(names) is None:
            raise InputError(f"names must list those of the sites; got {type(names).__name__}.")
        labels = [*names]
    if len(labels) != len(releases) or not all(isinstance(each, str) for each in labels):
        raise InputError(f"names must name each of {len(releases)} sites; got {len(labels)}.")
    pooled = merged(releases, overlap)
    schema = _common_schema(sites)
    model = estimate(pooled)
    if isinstance(pooled, PooledItems) and all(isinstance(site, IsingModel) for site in sites):
        model = attach(model.to_ising(), measurements=pooled, ended=model.ended)
    if isinstance(model, IsingModel) and schema is not None and not schema.forbidden:
        named = IsingModel(model.weights, model.field, schema=schema, stamp=model.stamp)
        model = attach(named, None, pooled, model.solution, model.ended)
    cards = [getattr(site, "card", None) for site in sites]
    return attach(model, _card(pooled, releases, cards, labels, overlap))


def merged(releases: Sequence[Release | ItemSums], overlap: bool = False) -> Pooled:
    """What several sites released, as if one had released it about all their people."""
    _check_alike(releases)
    costs: list[Any] = [each.cost for each in releases]
    cost = reduce(add, costs) if overlap and None not in costs else _largest(costs)
    items = [each for each in releases if isinstance(each, ItemSums)]
    if items:
        return PooledItems.of(items, cost)
    stamp = stamp_of(*releases)
    moments = [each for each in releases if isinstance(each, Moments)]
    if len(moments) == len(releases):
        return _moments(moments, cost, stamp)
    return _tables([each for each in releases if not isinstance(each, ItemSums)], cost, stamp)


def _several(sites: object) -> Sequence[Any]:
    if not isinstance(sites, Sequence) or isinstance(sites, str) or len(sites) < 2:
        raise InputError("sites must be a list of at least two models or releases.")
    return sites


def _release(site: object, number: int) -> Release | ItemSums:
    found = tables_of(site.measurements if isinstance(site, Model) else site)
    if not isinstance(found, Moments | Measurements | ItemSums):
        raise InputError(
            f"sites: number {number} must be a model that carries noisy tables, moments or scores, "
            f"or these themselves; got {type(site).__name__}."
        )
    return found


def _common_schema(sites: Sequence[Any]) -> Schema | None:
    """That of the sites which name their levels, all in one order; None where none does.

    Moments hold no names; models of them do, unless they were fitted to bare signs.
    """
    found: Schema | None = None
    for number, site in enumerate(sites, 1):
        own = getattr(site, "schema", None)
        if own is None or all(v.answers == SPIN_LEVELS for v in own.variables):
            continue
        found = own if found is None else found
        for variable in own.variables:
            if variable.answers != found[variable.name].answers:
                raise InputError(
                    f"sites: number {number} must have the levels of the others, in their order; "
                    f"those of {variable.name!r} differ."
                )
    return found


def _check_alike(releases: Sequence[Release | ItemSums]) -> None:
    first = releases[0]
    seen: dict[bytes, int] = {}
    for number, each in enumerate(releases, 1):
        same = seen.setdefault(each.to_bytes(), number)
        if same != number:
            raise InputError(
                f"sites: number {number} is the same release as number {same}: name each site once."
            )
        if isinstance(each, ItemSums) != isinstance(first, ItemSums):
            raise InputError(
                f"sites: number {number} must have scores of items if the first has, and only then."
            )
        _check_variables(number, _variables(each), _variables(first))
        if each.adjacency is not first.adjacency:
            raise InputError(
                f"sites: number {number} protects {each.adjacency} neighbours, the first "
                f"{first.adjacency}: they must be the same."
            )


def _check_variables(number: int, own: dict[str, int], first: dict[str, int]) -> None:
    if own.keys() != first.keys():
        raise InputError(f"sites: number {number} must have the variables of the first.")
    if list(own) != list(first):
        raise InputError(
            f"sites: number {number} must have the variables of the first in the same order."
        )
    for name, levels in own.items():
        if levels != first[name]:
            raise InputError(
                f"sites: number {number} must have as many levels as the first; {name!r} has "
                f"{levels} instead of {first[name]}."
            )


def _variables(release: Release | ItemSums) -> dict[str, int]:
    """Names, and how many levels: moments have two, the second +1."""
    if isinstance(release, Moments):
        return dict.fromkeys(release.names, 2)
    return {v.name: len(v.answers) for v in release.schema.variables}


def _largest(costs: Sequence[Any]) -> Any:
    """The weakest promise: that of people in one site each."""
    if any(cost is None for cost in costs):
        return None
    if any(isinstance(cost, NonPrivate) for cost in costs):
        return NON_PRIVATE
    for cost in costs:
        if all(other <= cost for other in costs):
            return cost
    parts = [cost.as_cost() for cost in costs]
    also: list[Fraction | None] = []
    for facts in (
        [part.exact_epsilon for part in parts],
        [part.exact_gaussian for part in parts],
    ):
        known = [fact for fact in facts if fact is not None]
        also.append(max(known) if len(known) == len(parts) else None)
    rho, delta = max(part.exact_rho for part in parts), max(part.exact_delta for part in parts)
    return Cost(rho, delta, *also)


def weights(people: Table, variances: Table, spread: float) -> tuple[Table, float]:
    """What a site's sums count, and the noise of their sum; `spread` is f of the module's text."""
    found = people / (spread * people + variances)
    found = found * people.sum() / float(found @ people)
    noise = float(found**2 @ (variances + spread * people)) - spread * float(people.sum())
    return found, max(noise, 0.0)


# -- moments ---------------------------------------------------------------------------------------


def _moments(releases: Sequence[Moments], cost: Any, stamp: str | None) -> Moments:
    people = np.array([each.rows for each in releases])
    variances = np.array([each.law.deviation**2 for each in releases])
    share, noise = weights(people, variances, 1.0)
    public = all(each.total is not None for each in releases)
    total = round(float(people.sum()))
    laplace = any("laplace" in each.noise for each in releases)
    return Moments(
        releases[0].names,
        _whole([each.pairs for each in releases], share),
        _whole([each.singles for each in releases], share),
        "none" if noise == 0 else "laplace" if laplace else "gaussian",
        math.sqrt(noise / 2 if laplace else noise),
        total if public else None,
        None if public else total,
        cost,
        releases[0].adjacency,
        stamp,
    )


def _whole(parts: Sequence[Any], share: Table) -> Any:
    return np.rint(sum(w * part for w, part in zip(share, parts, strict=True))).astype(np.int64)


# -- tables ----------------------------------------------------------------------------------------


def _tables(releases: Sequence[Release], cost: Any, stamp: str | None) -> Measurements:
    """Interactions of all sites, each from those that measured it, in counts of all people."""
    schema = next(each.schema for each in releases if isinstance(each, Measurements)).answered()
    sites = [_parts(each) for each in releases]
    total = sum(people for people, *_ in sites)
    public = all(deviation == 0 for _, deviation, _ in sites)
    cliques, tables, noises = [], [], []
    for scope in sorted({s for *_, parts in sites for s in parts}, key=lambda s: (len(s), s)):
        own = [(people, *parts[scope]) for people, _, parts in sites if scope in parts]
        people = np.array([each[0] for each in own])
        variances = np.array([each[2] for each in own])
        share, noise = weights(people, variances, 1 / own[0][1].size)
        up = total / float(people.sum())
        table = up * sum(w * each[1] for w, each in zip(share, own, strict=True))
        # those who were not asked vary, too: N people are spoken for by fewer
        noise = up**2 * noise + (up**2 * float(people.sum()) - total) / table.size
        cliques.append(tuple(schema.names[v] for v in scope))
        tables.append(table)
        noises.append(noise)
    if not public:
        cliques.append(())
        tables.append(np.array(total))
        noises.append(sum(deviation**2 for _, deviation, _ in sites))
    laplace = any("laplace" in each.noise for each in releases)
    exact = not any(noises)
    return Measurements(
        schema,
        tuple(cliques),
        tuple(tables),
        "none" if exact else "laplace" if laplace else "gaussian",
        tuple(0.0 if exact else math.sqrt(max(v, 1e-9) / (1 + laplace)) for v in noises),
        round(total) if public else None,
        cost,
        releases[0].adjacency,
        stamp=stamp,
        centred=(True,) * len(cliques),
    )


def _parts(release: Release) -> tuple[float, float, dict[Scope, tuple[Table, float]]]:
    """People, how well their number is known, and each interaction with its noise."""
    if isinstance(release, Measurements):
        found = among_answered(interactions(release))
        noise = 0.0 if release.noise == "none" else 1.0
        parts = zip(found.scopes, found.values, found.variances, strict=True)
        known = {scope: (value, noise * variance) for scope, value, variance in parts}
        return max(found.total, 1.0), found.total_deviation, known
    variance = release.law.deviation**2
    signs = np.array([-1.0, 1.0])
    known = {}
    for i, single in enumerate(release.singles.tolist()):
        known[(i,)] = single / 2 * signs, variance / 2
        for j in range(i):
            known[(j, i)] = release.pairs[j, i] / 4 * np.outer(signs, signs), variance / 4
    deviation = 0.0 if release.total is not None else math.sqrt(variance)
    return release.rows, deviation, known


# -- what is promised ------------------------------------------------------------------------------


def _card(
    pooled: Pooled,
    releases: Sequence[Release | ItemSums],
    cards: Sequence[Card | None],
    labels: Sequence[str],
    overlap: bool,
) -> Card:
    known = [card for card in cards if card is not None]
    units = {"row" if card is None else card.unit for card in cards}  # whose is not known: a row's
    budgets = [card.budget for card in known]
    budget = None if overlap or len(known) < len(cards) else _largest(budgets)
    sites = tuple(
        Site(label, _people(release), (card or _bare(release)).promise())
        for label, release, card in zip(labels, releases, cards, strict=True)
    )
    if overlap:
        rule = "A person may be in several sites: the costs add up."
    else:
        rule = "Each person is in one site: the promise is the weakest of the sites’."
    return Card(
        unit=units.pop() if len(units) == 1 else "row",
        adjacency=pooled.adjacency,
        cost=pooled.cost,
        budget=budget,
        method=f"pooled from {counted(len(labels), 'site')}",
        noise=_added(releases) or pooled.noise,
        rows=pooled.total,
        levels_are_public=any(card.levels_are_public for card in known),
        notes=tuple(dict.fromkeys((rule, *(note for card in known for note in card.notes)))),
        sites=sites,
    )


def _added(releases: Sequence[Release | ItemSums]) -> str | None:
    """The law of the noise that every site added, where it is one and the same."""
    names = {
        release.laws[0].name if isinstance(release, ItemSums) else release.noise
        for release in releases
    }
    return names.pop() if len(names) == 1 else None


def _bare(release: Release | ItemSums) -> Card:
    return Card(adjacency=release.adjacency, cost=release.cost, stamp=release.stamp)


def _people(release: Release | ItemSums) -> int | float:
    """How many people, as a whole number where that is public."""
    people = release.rows if isinstance(release, ItemSums) else _parts(release)[0]
    return people if release.total is None else round(people)
