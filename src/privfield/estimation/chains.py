"""From noisy first states and transitions to a chain. No data here, so no privacy cost."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, wrightomega

from privfield.errors import InputError
from privfield.estimation.noisy_weights import posterior_means
from privfield.mechanisms.chains.measurements import ChainMeasurements
from privfield.models.chain import ChainModel
from privfield.privacy.noise import NoiseLaw
from privfield.solvers.projections import onto_simplex

Table = NDArray[np.float64]

_HALF = 0.5  # added to each cell where noise is not modelled, so that nothing is impossible
_STEP = 0.1  # how far a log-probability may move in one CGM step
_CGM_STEPS = 300
_FITTING = 50  # rounds of proportional fitting; a start for the prior need not be exact


def estimate_chain(measurements: ChainMeasurements, method: str = "auto") -> ChainModel:
    """A chain from released tables, by one of three methods.

    "naive": each row projected onto numbers from 0 with the same sum, plus one half.
    "cgm": the tables that the noise law finds likely and that are close to uniform (Bernstein et
    al. 2017), stopped when the noise explains the rest. "auto": posterior means under a prior
    fitted to the released numbers, around independence of successive states or, as the numbers
    speak, independence of states that differ.
    """
    if not isinstance(measurements, ChainMeasurements):
        raise InputError(
            f"measurements must be ChainMeasurements; got {type(measurements).__name__}."
        )
    solve = METHODS[check_method(method)]
    initial = solve(measurements.initial, measurements.initial_law)
    transition = solve(measurements.transitions, measurements.transition_law)
    return ChainModel(
        measurements.states, _normalised(initial), _normalised(transition), stamp=measurements.stamp
    )


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
    """Entropic steps from uniform toward the released table, until noise explains the rest.

    Each step maximises log p(values | n) − (N/s)·KL(n ‖ last n) over tables n of sum N: one round
    of EM in a collective graphical model, or s rounds at once where noise is large.
    """
    flat = values.ravel()
    total = max(float(flat.sum()), 1.0)
    found = np.full(flat.size, total / flat.size)
    spread = law.deviation / np.sqrt(2 if "laplace" in law.name else 1)
    if spread < _HALF:  # hardly any noise: the released table is the answer
        return np.asarray(onto_simplex(flat, total).reshape(values.shape) + _HALF)
    for _ in range(_CGM_STEPS):
        found = _cgm_step(flat, found, total, spread, "laplace" in law.name)
        left = np.abs(flat - found) / spread
        if (left if "laplace" in law.name else left**2).mean() <= 1:
            break
    return np.asarray(found.reshape(values.shape) + _HALF)


def _cgm_step(values: Table, last: Table, total: float, spread: float, laplace: bool) -> Table:
    """One step; `spread` is b of Laplace or σ of Gaussian noise."""

    def at(shift: float) -> Table:
        if laplace:  # dual variables within ±reach: the value itself where it can be had
            reach = max(1 / spread, _STEP)
            return np.clip(values, last * np.exp(shift - reach), last * np.exp(shift + reach))
        variance = spread**2 / max(1.0, _STEP * spread)
        # w + log w = z is solved by Wright's omega
        return np.asarray(
            variance * wrightomega(shift + np.log(last / variance) + values / variance)
        )

    low, high = -1.0, 1.0
    while at(low).sum() > total:
        low *= 2
    while at(high).sum() < total:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if at(middle).sum() > total else (middle, high)
    return np.maximum(at(high), 1e-12 * total / values.size)


# -- auto ------------------------------------------------------------------------------------------


def auto(values: Table, law: NoiseLaw) -> Table:
    """Posterior means under priors fitted to the released numbers; nothing is tuned.

    A transition table has two candidate priors, which count as the released numbers speak for
    them: any state follows independently, or staying is a thing of its own (people linger) and
    only the other states follow independently.
    """
    if values.ndim == 1:
        return posterior_means(values, _even(values, law), law)[0]
    plain, evidence = posterior_means(values, _independent(values, law), law)
    lingering, other = _lingering(values, law)
    weight = expit(evidence - other + np.log(len(values)))  # one number more was fitted there
    return np.asarray(weight * plain + (1 - weight) * lingering)


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


def _lingering(values: Table, law: NoiseLaw) -> tuple[Table, float]:
    """Posterior means with a prior of its own for the diagonal, and their log-evidence."""
    size = len(values)
    stays = np.eye(size, dtype=bool)
    moves = np.where(stays, 0.0, values)
    leave = _margin(moves.sum(axis=1), law, size - 1)
    arrive = _margin(moves.sum(axis=0), law, size - 1)
    visits = _margin(values.sum(axis=1), law, size)
    found = np.empty(values.shape)
    off, first = posterior_means(values[~stays], _quasi_independent(leave, arrive)[~stays], law)
    lingered = _even(values[stays], law) * size * visits / visits.sum()
    on, second = posterior_means(values[stays], lingered, law)
    found[~stays], found[stays] = off, on
    return found, first + second


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
