"""From noisy first states and transitions to a chain. No data here, so no privacy cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, wrightomega

from privfield.errors import InputError
from privfield.estimation.noisy_weights import posterior_means
from privfield.estimation.tied import NoisyPairs, directed, tied_em, tied_mle
from privfield.inference.tied_chain import TiedChain
from privfield.mechanisms.chains.measurements import ChainMeasurements
from privfield.models.chain import ChainModel
from privfield.models.mrf import MarkovRandomField
from privfield.privacy.noise import NoiseLaw
from privfield.schema import Schema
from privfield.solvers.projections import onto_simplex

Table = NDArray[np.float64]

_HALF = 0.5  # added to each cell where noise is not modelled, so that nothing is impossible
_STEP = 0.1  # how far a log-probability may move in one CGM step
_CGM_STEPS = 300
_FITTING = 50  # rounds of proportional fitting; a start for the prior need not be exact


def estimate_chain(
    measurements: ChainMeasurements, method: str = "auto"
) -> ChainModel | MarkovRandomField:
    """A chain from released tables, by one of three methods; of cut sequences an undirected one.

    "naive": each row projected onto numbers from 0 with the same sum, plus one half.
    "cgm": the tables that the noise law finds likely and that are close to a simple model
    (Bernstein et al. 2017), stopped when noise explains the rest. "auto": posterior means under a
    prior fitted to the released numbers, around independence of successive states or, as the
    numbers speak, independence of states that differ.
    """
    if not isinstance(measurements, ChainMeasurements):
        raise InputError(
            f"measurements must be ChainMeasurements; got {type(measurements).__name__}."
        )
    solve = METHODS[check_method(method)]
    if measurements.segment is not None:
        return _undirected(measurements, measurements.segment, method)
    initial = solve(measurements.initial, measurements.initial_law)
    transition = solve(measurements.transitions, measurements.transition_law)
    return ChainModel(
        measurements.states, _normalised(initial), _normalised(transition), stamp=measurements.stamp
    )


def _undirected(m: ChainMeasurements, length: int, method: str) -> MarkovRandomField:
    """The variables t1, t2, … of a segment, a potential of t1 and one that all pairs share.

    "naive" and "auto" match moments of tables made as for a directed chain, but "naive" projects
    the whole table of pairs at once, as the paper does. "cgm" is EM in this model. The ridge is the
    noise in a share of pairs: around 0 for "naive", around the directed chain for "auto".
    """
    chain = TiedChain(len(m.states), length)
    total, factor = _segments_seen(m, length)
    law = m.transition_law
    pair_law = NoiseLaw(law.name, law.scale * factor, law.grid * factor)
    tables = ((m.initial, m.initial_law), (m.transitions * factor, pair_law))
    ridge = max(_spread(pair_law), 1.0) / total
    if method == "naive":
        found = [_naive_whole(*table) for table in tables]
        theta = tied_mle(chain, _joined(found), ridge, np.zeros(chain.parameters))
    elif method == "auto" or m.noise == "none":
        found = [auto(*table) for table in tables]
        theta = tied_mle(chain, _joined(found), ridge, directed(*found))
    else:
        starts = [auto(*tables[0]), _start(*tables[1])]
        pairs = zip(tables, starts, strict=True)
        bearable = sum(_lost_in_noise(values, start, law) for (values, law), start in pairs)
        spreads = [np.full(values.size, _spread(law)) for values, law in tables]
        values = _joined(values for values, _ in tables)
        seen = NoisyPairs(values, np.concatenate(spreads), "laplace" in m.noise, total)
        theta = tied_em(chain, seen, directed(*starts), bearable)
    first, pair = chain.split(theta)
    names = [f"t{place}" for place in range(1, length + 1)]
    edges = list(pairwise(names))
    return MarkovRandomField(
        Schema(dict.fromkeys(names, m.states)),
        [(names[0],), *edges],
        [first, *[pair] * len(edges)],
        stamp=m.stamp,
    )


def _segments_seen(m: ChainMeasurements, length: int) -> tuple[float, float]:
    """About how many segments there are, and what makes the pairs as many as they have.

    Where both tables hold the same segments, they are counted in both and nothing is scaled.
    """
    first, pairs = float(m.initial.sum()), float(m.transitions.sum()) / (length - 1)
    if m.share != "segments":
        return max(first, 1.0), max(first, 1.0) / max(pairs, 1.0)
    noise = [m.initial_law.deviation**2 * m.initial.size]
    noise += [m.transition_law.deviation**2 * m.transitions.size / (length - 1) ** 2]
    weights = [1.0, 1.0] if m.noise == "none" else [1 / each for each in noise]
    return max(float(np.average([first, pairs], weights=weights)), 1.0), 1.0


def _joined(tables: Iterable[Table]) -> Table:
    return np.concatenate([table.ravel() for table in tables])


def _naive_whole(values: Table, law: NoiseLaw) -> Table:
    return naive(values.ravel(), law).reshape(values.shape)


def check_method(method: object) -> str:
    """The method of that name, or an `InputError`."""
    if not isinstance(method, str) or method not in METHODS:
        raise InputError(f"method must be one of {', '.join(map(repr, METHODS))}; got {method!r}.")
    return method


def _normalised(weights: Table) -> Table:
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


# -- naive -----------------------------------------------------------------------------------------


def naive(values: Table, law: NoiseLaw) -> Table:
    """Each row projected onto numbers from 0 with the same sum, plus one half in each cell."""
    rows = values.reshape(-1, values.shape[-1])
    found = [onto_simplex(row, max(row.sum(), 0.0)) + _HALF for row in rows]
    return np.array(found).reshape(values.shape)


# -- collective graphical model --------------------------------------------------------------------


def cgm(values: Table, law: NoiseLaw) -> Table:
    """EM from the simple model that the released table speaks for, until noise explains the rest.

    Each step maximises log p(values | n) − (N/s)·KL(n ‖ last n) over rows n of given sums N: one
    round of EM in a collective graphical model, or s rounds at once where noise is large.
    """
    laplace, spread = "laplace" in law.name, _spread(law)
    rows = np.atleast_2d(values)
    totals = np.maximum(rows.sum(axis=1, keepdims=True), 1.0)
    if spread < _HALF:  # hardly any noise: the released table is the answer
        return naive(values, law)
    start = np.atleast_2d(_start(values, law))
    found = start * totals / start.sum(axis=1, keepdims=True)
    bearable = _lost_in_noise(rows, found, law)
    for _ in range(_CGM_STEPS):
        found = _cgm_step(rows, found, totals, spread, laplace)
        left = np.abs(rows - found) / spread
        if (left if laplace else left**2).sum() <= bearable:
            break
    return np.asarray(found.reshape(values.shape) + _HALF)


def _spread(law: NoiseLaw) -> float:
    """b of Laplace or σ of Gaussian noise."""
    return float(law.deviation / np.sqrt(2 if "laplace" in law.name else 1))


def _start(values: Table, law: NoiseLaw) -> Table:
    """Equal first states; transitions of the better one of the two models of `auto`."""
    if values.ndim == 1:
        return _even(values, law)
    return max(_candidates(values, law), key=lambda each: each.evidence).means


def _lost_in_noise(values: Table, start: Table, law: NoiseLaw) -> int:
    """How many cells say nothing about the truth: their residuals are noise, of size 1 each.

    Where the truth is 0, or `start`, half of the numbers lie below 0, or within half of the noise
    of it. The rest is known better than that: a perfect fit has hardly a residual there.
    """
    below = int((values < 0).sum())
    near = int((np.abs(values - start) < law.margin(0.5)).sum())
    return min(2 * max(below, near), values.size)


def _cgm_step(values: Table, last: Table, totals: Table, spread: float, laplace: bool) -> Table:
    """One step for each row; `spread` is b of Laplace or σ of Gaussian noise."""

    def at(shift: Table) -> Table:
        if laplace:  # dual variables within ±reach: the value itself where it can be had
            reach = max(1 / spread, _STEP)
            return np.clip(values, last * np.exp(shift - reach), last * np.exp(shift + reach))
        variance = spread**2 / max(1.0, _STEP * spread)
        # w + log w = z is solved by Wright's omega
        return np.asarray(
            variance * wrightomega(shift + np.log(last / variance) + values / variance)
        )

    def over(shift: Table) -> NDArray[np.bool_]:
        return np.asarray(at(shift).sum(axis=1, keepdims=True) > totals)

    low, high = -np.ones(totals.shape), np.ones(totals.shape)
    while over(low).any():
        low = np.where(over(low), 2 * low, low)
    while not over(high).all():
        high = np.where(over(high), high, 2 * high)
    for _ in range(60):
        middle = (low + high) / 2
        above = over(middle)
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return np.asarray(np.maximum(at(high), 1e-12 * totals / values.shape[1]))


# -- auto ------------------------------------------------------------------------------------------


def auto(values: Table, law: NoiseLaw) -> Table:
    """Posterior means under priors fitted to the released numbers; nothing is tuned.

    A transition table has two candidate priors, which count as the released numbers speak for
    them: any state follows independently, or staying is a thing of its own (people linger) and
    only the other states follow independently.
    """
    if values.ndim == 1:
        return posterior_means(values, _even(values, law), law)[0]
    plain, lingering = _candidates(values, law)
    weight = expit(plain.evidence - lingering.evidence)
    return np.asarray(weight * plain.found + (1 - weight) * lingering.found)


class _Candidate(NamedTuple):
    """A model of transitions with few numbers, posterior means around it, and its log-evidence."""

    means: Table
    found: Table
    evidence: float


def _candidates(values: Table, law: NoiseLaw) -> tuple[_Candidate, _Candidate]:
    plain = _independent(values, law)
    return _Candidate(plain, *posterior_means(values, plain, law)), _lingering(values, law)


def _even(values: Table, law: NoiseLaw) -> Table:
    """Equal prior means with about the sum of the values, which noise may have made negative."""
    least = max(law.deviation * np.sqrt(values.size), _HALF)
    return np.full(values.shape, max(float(values.sum()), least) / values.size)


def _margin(values: Table, law: NoiseLaw, cells: int) -> Table:
    """Posterior means of sums of that many cells each."""
    noise = law if law.name == "none" else NoiseLaw("gaussian", law.deviation * np.sqrt(cells))
    return posterior_means(values, _even(values, noise), noise)[0]


def _independent(values: Table, law: NoiseLaw) -> Table:
    before = _margin(values.sum(axis=1), law, len(values))
    after = _margin(values.sum(axis=0), law, len(values))
    return np.asarray(np.outer(before, after) / after.sum())


def _lingering(values: Table, law: NoiseLaw) -> _Candidate:
    """A prior of its own for the diagonal; one number more is fitted, which costs evidence."""
    size = len(values)
    stays = np.eye(size, dtype=bool)
    moves = np.where(stays, 0.0, values)
    leave = _margin(moves.sum(axis=1), law, size - 1)
    arrive = _margin(moves.sum(axis=0), law, size - 1)
    visits = _margin(values.sum(axis=1), law, size)
    means = _quasi_independent(leave, arrive)
    means[stays] = _even(values[stays], law) * size * visits / visits.sum()
    found = np.empty(values.shape)
    found[~stays], first = posterior_means(values[~stays], means[~stays], law)
    found[stays], second = posterior_means(values[stays], means[stays], law)
    return _Candidate(means, found, first + second - float(np.log(size)))


def _quasi_independent(leave: Table, arrive: Table) -> Table:
    """A product of row and column factors off the diagonal with these margins, nearly."""
    arrive = arrive * leave.sum() / arrive.sum()
    columns = np.ones(len(leave))
    for _ in range(_FITTING):
        rows = leave / np.maximum(columns.sum() - columns, 1e-9 * columns.sum())
        columns = arrive / np.maximum(rows.sum() - rows, 1e-9 * rows.sum())
    return np.outer(rows, columns)


METHODS: dict[str, Callable[[Table, NoiseLaw], Table]] = {
    "auto": auto,
    "cgm": cgm,
    "naive": naive,
}
