"""β and its interval from one released number: the likelihood of the noisy statistic.

Plausible is every β under which neither tail of the released number's law beyond the released value
is below (1 − level)/2: a set that holds the true β with probability `level` over outcomes and
privacy noise together, whatever the size of the network, up to Monte-Carlo error. The law of a
noisy σᵀJσ rises with β, so that set is an interval. The law of a noisy root need not: where
neighbours begin to agree, the equation grows steeper and a root far out rarer, so that a root may
be plausible under weak and under strong effects and not between. The interval spans them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.data.network.public import PublicNetwork
from privfield.errors import InputError
from privfield.estimation.peers.bank import Bank
from privfield.estimation.peers.noise import Root, count_noise, crossing_law, root_of
from privfield.estimation.peers.reweighting import Curve
from privfield.mechanisms.peers.release import LocalRelease, ObjectiveRelease, StatisticRelease
from privfield.progress import ProgressCallback
from privfield.stamps import Stamped, own_stamp

FloatArray = NDArray[np.float64]
Counted = StatisticRelease | LocalRelease

_WHOLE_LADDER = 5_000  # nodes up to which the curve is simulated for every β
_COARSE = 12  # stations of the first look at larger networks
_REACH = 4.5  # standard deviations to either side that a local window covers
_POINTS = 96
_SHALLOW = 0.8
SEPARATE = "Separate ranges of β"
EMPTY = 1e-9  # intervals that are no longer hold nothing
NOTHING = (
    "Nothing can be learned from this number about a peer effect: the interval holds all effects "
    "that were looked for. That is no evidence that there is none. More people or a larger "
    "privacy budget would be needed."
)


@dataclass(frozen=True, eq=False, repr=False)
class PeerEstimate(Stamped):
    """β with its interval, the likelihood that they come from, and their Monte-Carlo errors.

    `parameters` maps names to (estimate, low, high); `grid` and `log_likelihood` are for plots (the
    profile likelihood of β where there are more parameters). `pieces` are the separate ranges of
    plausible β that the interval spans, where there are several.
    """

    parameters: dict[str, tuple[float, float, float]]
    level: float
    bound: float
    grid: FloatArray
    log_likelihood: FloatArray
    monte_carlo: tuple[float, float, float]
    stations: int
    messages: tuple[str, ...]
    least: float = 0.0
    pieces: tuple[tuple[float, float], ...] = ()
    stamp: str | None = own_stamp()

    @property
    def text(self) -> str:
        """Each parameter with its interval."""
        each = self.parameters.items()
        return "\n".join(
            f"{name} {at:.4g} ({low:.4g} to {high:.4g}, {self.level:.0%})"
            for name, (at, low, high) in each
        )

    @property
    def beta(self) -> float:
        """The estimate: where the likelihood of the release is largest in [least, bound]."""
        return self.parameters["beta"][0]

    @property
    def interval(self) -> tuple[float, float]:
        """Low and high end of β's interval."""
        return self.parameters["beta"][1:]

    @property
    def outside(self) -> bool:
        """Whether no β in [least, bound] makes the released number plausible."""
        return self.interval[1] - self.interval[0] <= EMPTY

    @property
    def unlimited(self) -> bool:
        """Whether all β in [least, bound] are in the interval: the release rules none out."""
        low, high = self.interval
        whole = low <= self.least + EMPTY and high >= self.bound - EMPTY
        return whole and not self.pieces

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader of the model has to know about the interval."""
        if self.pieces:
            return (separate_text(self.pieces),)
        return (NOTHING,) if self.unlimited else ()

    def with_root(self, root: float) -> PeerEstimate:
        """With a root in place of the likeliest β, which a note keeps."""
        note = f"The root is shrunk by its ridge: it is likeliest under β = {self.beta:.3g}."
        parameters = {"beta": (root, *self.interval)}
        return replace(self, parameters=parameters, messages=(note, *self.messages))


def root_bank(root: Root, network: PublicNetwork) -> Bank:
    """A bank for one released root, which says what to keep of each draw."""
    return Bank(network, at=(root.point - root.step, root.point))


def estimate_from_root(
    release: ObjectiveRelease | Root, network: PublicNetwork, **options: Any
) -> PeerEstimate:
    """`estimate_peer_effect` for objective perturbation, with a bank of its own."""
    root = root_of(release) if isinstance(release, ObjectiveRelease) else release
    return estimate_peer_effect(root, root_bank(root, network), **options)


def estimate_peer_effect(
    release: Counted | Root,
    bank: Bank,
    *,
    bound: float = 5.0,
    least: float = 0.0,
    level: float = 0.95,
    progress: ProgressCallback | None = None,
) -> PeerEstimate:
    """β in [least, bound] and its interval from what was released: post-processing, no data.

    A stamped release leaves nothing in a shared `bank`: where it simulates could show unprotected
    numbers.
    """
    if release.stamp is not None:
        bank = bank.apart()
    if release.digest != bank.network.digest:
        raise InputError("release comes from another network than the curve.")
    if isinstance(release, StatisticRelease) and release.names != ("H",):
        raise InputError("release has more statistics than one; use estimate_with_covariates.")
    low, high = _simulate(release, bank, (least, bound), (1 - level) / 2, progress)
    while True:
        curve, groups = bank.curves(low, high)
        found = _Inversion(curve, release, bank, level, (low, high))
        wider = (
            max(least, 2 * low - high) if found.open_below and low > least else low,
            min(bound, 2 * high - low) if found.open_above and high < bound else high,
        )
        if wider == (low, high):
            break
        low, high = wider
        bank.fill(low, high, progress)
    others = [_Inversion(each, release, bank, level, (low, high), found.grid) for each in groups]
    return PeerEstimate(
        {"beta": (found.beta, found.low, found.high)},
        level,
        bound,
        found.grid,
        found.log_likelihood,
        standard_errors([(each.beta, each.low, each.high) for each in others]),
        len(bank.stations),
        _messages(found, bank, (least, bound), low, high),
        least,
        tuple(found.pieces if len(found.pieces) > 1 else ()),
    )


def _simulate(
    release: Counted | Root,
    bank: Bank,
    bounds: tuple[float, float],
    cut: float,
    progress: ProgressCallback | None,
) -> tuple[float, float]:
    """Fill the bank where it is needed: everywhere, or around the released value."""
    if bank.is_exact or bank.network.nodes <= _WHOLE_LADDER:
        bank.fill(*bounds, progress)
        return bounds
    if isinstance(release, Root):
        centre, noise = round(float(np.clip(release.point, *bounds)), 9), 0.0
    else:
        value = release.value if isinstance(release, LocalRelease) else release.values[0]
        noise = 0.0 if isinstance(release, LocalRelease) else release.deviations[0]
        centre = _locate(value, bank, bounds, progress)
    spread = max(float(bank.at(centre).draws[:, 0].std()), 1e-9)
    width = _REACH * 2 * np.hypot(spread, noise) / spread**2
    ends = (max(bounds[0], round(centre - width, 9)), min(bounds[1], round(centre + width, 9)))
    if isinstance(release, Root):
        far = _plausible(release, bank, bounds, cut, progress)
        ends = (min(ends[0], *far), max(ends[1], *far)) if far else ends
    bank.fill(*ends, progress)
    return ends


def _plausible(
    root: Root,
    bank: Bank,
    bounds: tuple[float, float],
    cut: float,
    progress: ProgressCallback | None,
) -> list[float]:
    """Some β far and near under which a root is not quite implausible."""
    found = []
    for beta in np.round(np.linspace(*bounds, _COARSE), 9).tolist():
        draws = bank.at(beta, progress).draws
        tails = crossing_law(root, draws[:, 0], draws[:, -2:])[1:]
        if min(float(tail.mean()) for tail in tails) > cut / 10:
            found.append(beta)
    return found


def _locate(
    value: float, bank: Bank, bounds: tuple[float, float], progress: ProgressCallback | None
) -> float:
    """A β whose simulated statistics are about the released one: a bracket, then secants."""
    low, high = bounds
    for beta in np.round(np.linspace(*bounds, _COARSE), 9).tolist():
        high = beta  # from below, each station starting where the last one ended
        if bank.at(beta, progress).draws[:, 0].mean() >= value:
            break
        low = beta
    if high in (bounds[0], low):
        return high
    while high - low > bank.gap(low):
        ends = [float(bank.at(beta).draws[:, 0].mean()) for beta in (low, high)]
        share = (value - ends[0]) / max(ends[1] - ends[0], 1e-300)
        middle = round(low + float(np.clip(share, 0.1, 0.9)) * (high - low), 9)
        draws = bank.at(middle, progress).draws[:, 0]
        if abs(draws.mean() - value) < draws.std():
            return middle
        low, high = (low, middle) if draws.mean() >= value else (middle, high)
    return low


class _Inversion:
    """Likelihood and tails of one curve along β."""

    def __init__(
        self,
        curve: Curve,
        release: Counted | Root,
        bank: Bank,
        level: float,
        ends: tuple[float, float],
        grid: FloatArray | None = None,
    ) -> None:
        self._curve = curve
        self._cut = (1 - level) / 2
        self.loud = False
        self._none = isinstance(release, StatisticRelease) and release.laws[0].name == "none"
        if isinstance(release, Root):
            self._logs, *tails = crossing_law(release, curve.values, curve.draws[:, -2:])
        else:
            self._logs, *tails = self._of_count(release, bank.network)
        self._tails = np.column_stack(tails)
        self.grid = self._refined(ends) if grid is None else grid
        below, above = self._tails_at(self.grid).T
        self.log_likelihood = self._log_likelihood(self.grid)
        fit = np.minimum(below, above)
        self.beta = peak(self.grid, self.log_likelihood)
        self.pieces = _pieces(self.grid, fit, self._cut)
        self.low = self.high = self.beta  # holds nothing
        if self.pieces:
            self.low, self.high = self.pieces[0][0], self.pieces[-1][1]
            self.beta = float(np.clip(self.beta, self.low, self.high))
        # whether β beyond the ends may be plausible, too
        self.open_below = bool(above[0] > self._cut)
        self.open_above = bool(below[-1] > self._cut)
        self.touches_below = bool(fit[0] > self._cut)
        self.touches_above = bool(fit[-1] > self._cut)
        self.too_low = not self.pieces and bool(below[0] < self._cut)
        self.too_high = not self.pieces and bool(above[-1] < self._cut)

    def _of_count(
        self, release: Counted, network: PublicNetwork
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """log P of the released count, and both tails of the statistic, for each draw."""
        noisy = release.count if isinstance(release, LocalRelease) else release.counts[0]
        counts = np.rint((network.total - self._curve.values / network.unit) / 4)
        pulls = np.rint(self._curve.draws[:, -1] / network.unit)
        noise = count_noise(release)
        self._value = (network.total - 4 * noisy) * network.unit
        # beyond what even outcomes that all agree, or all differ, make plausible
        most = int(np.abs(network.integers.data).sum())
        ends = np.array([most - network.total, network.total + most]) / 4 + [noisy, -noisy]
        widest = np.full(2, float(network.largest_row_sum))
        self.loud = bool((noise.at_least(-ends, widest) < self._cut).any())
        # H falls as the count rises: P(H̃ ≤ h̃) is P(count + noise ≥ released count)
        return (
            noise.log_mass(noisy - counts, pulls),
            noise.at_least(noisy - counts, pulls),
            noise.at_least(counts - noisy, pulls),
        )

    def _tails_at(self, betas: FloatArray) -> FloatArray:
        return self._curve.averages(betas, self._tails)

    def _log_likelihood(self, betas: FloatArray) -> FloatArray:
        if self._none:
            return betas * self._value / 2 - self._curve.log_partition(betas)
        return self._curve.log_averages(betas, self._logs)

    def _refined(self, ends: tuple[float, float]) -> FloatArray:
        """Points where the released value is not quite implausible, closest where it is not."""
        betas = np.linspace(*ends, _POINTS // 2 + 1)
        if len(self._curve.betas) > 1:
            middle = (self._curve.betas[1:] + self._curve.betas[:-1]) / 2
            betas = np.union1d(betas, np.concatenate([self._curve.betas, middle]))
            betas = betas[(betas >= ends[0]) & (betas <= ends[1])]
        alive = self._tails_at(betas).min(axis=1) > self._cut / 10
        alive[int(np.argmax(self._log_likelihood(betas)))] = True
        spans = [
            (betas[max(first - 1, 0)], betas[min(last + 1, len(betas) - 1)])
            for first, last in _runs(alive)
        ]
        between = betas[(betas > spans[0][0]) & (betas < spans[-1][1])]
        fine = [np.linspace(*span, 2 * _POINTS + 1) for span in spans]
        if len(spans) == 1:
            return fine[0]
        return np.unique(np.concatenate([between, *fine]))


def _runs(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First and last place of each run of True."""
    change = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    return [(int(a), int(b) - 1) for a, b in zip(change[::2], change[1::2], strict=True)]


def _pieces(grid: FloatArray, fit: FloatArray, cut: float) -> list[tuple[float, float]]:
    """The ranges of the grid in which `fit` is at least `cut`; ends lie between two points.

    Ranges between which it falls just short of the cut are one: so far simulation may be off.
    """
    found = []
    inside = fit >= cut
    for first, last in _runs(~inside):
        between = first > 0 and last < len(fit) - 1
        inside[first : last + 1] |= between and fit[first : last + 1].min() > _SHALLOW * cut
    for first, last in _runs(inside):
        before, after = slice(max(first - 1, 0), first + 1), slice(last, last + 2)
        low = crossing(grid[before], fit[before], cut, rising=True)
        high = crossing(grid[after], fit[after], cut, rising=False)
        found.append((low, high))
    return found


def peak(grid: FloatArray, values: FloatArray) -> float:
    """The largest point, by a parabola through the best three."""
    k = int(np.argmax(values))
    if k in (0, len(grid) - 1):
        return float(grid[k])
    left, right = grid[k] - grid[k - 1], grid[k + 1] - grid[k]
    up, down = (values[k] - values[k - 1]) / left, (values[k + 1] - values[k]) / right
    if up <= down:
        return float(grid[k])
    top = 0.5 * (grid[k - 1] + grid[k]) + up * 0.5 * (left + right) / (up - down)
    return float(np.clip(top, grid[k - 1], grid[k + 1]))


def crossing(grid: FloatArray, tail: FloatArray, cut: float, *, rising: bool) -> float:
    """Where a tail crosses the cut; an end of the grid where it does not."""
    order = tail if rising else tail[::-1]
    betas = grid if rising else grid[::-1]
    order = np.maximum.accumulate(order)
    k = int(np.searchsorted(order, cut, side="left"))
    if k == 0 or k == len(order):
        return float(betas[min(k, len(order) - 1)])
    share = (cut - order[k - 1]) / max(order[k] - order[k - 1], 1e-300)
    return float(betas[k - 1] + share * (betas[k] - betas[k - 1]))


def separate_text(pieces: Sequence[tuple[float, float]]) -> str:
    """That the interval spans more than one range."""
    ranges = ", ".join(f"{low:.3g} to {high:.3g}" for low, high in pieces)
    return f"{SEPARATE} make the released number plausible ({ranges}): the interval spans them."


def standard_errors(others: Sequence[Sequence[float]]) -> tuple[float, float, float]:
    """Of estimate, low and high, from those of independent sets of chains."""
    if not others:
        return 0.0, 0.0, 0.0
    error = np.std(others, axis=0, ddof=1) / np.sqrt(len(others))
    return float(error[0]), float(error[1]), float(error[2])


def _messages(
    found: _Inversion, bank: Bank, bounds: tuple[float, float], low: float, high: float
) -> tuple[str, ...]:
    notes = []
    least, most = bounds
    if found.loud:
        notes.append(
            "Whatever the outcomes, such a number is rare: privacy noise was unusually large."
        )
    elif found.too_low:
        without = "outcomes without any peer effect" if least == 0 else f"β = {least:g}"
        notes.append(
            f"The released statistic is lower than {without} would make plausible: neighbours "
            "differ more, or the model does not fit."
        )
    elif found.too_high:
        notes.append(
            f"The released statistic is higher than β = {most:g} makes plausible: raise the bound."
        )
    if found.touches_above:
        notes.append(f"The interval reaches the bound {most:g}: stronger effects fit as well.")
    if found.touches_below and least < 0:
        notes.append(f"The interval reaches the bound {least:g}: stronger effects fit as well.")
    if len(found.pieces) > 1:
        notes.append(separate_text(found.pieces))
    stuck = [each.beta for each in bank.window(low, high) if not each.agreed]
    inside = [beta for beta in stuck if found.grid[0] <= beta <= found.grid[-1]]
    if inside:
        notes.append(
            f"Markov chains did not agree at {len(inside)} values of β near the estimate "
            f"(such as {inside[0]:.3g}): the curve may be off there."
        )
    return tuple(notes)
