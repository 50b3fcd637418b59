"""β together with a field or covariates, from the noisy statistics (σᵀJσ, Σσ, Σxσ, …).

P(σ) ∝ exp(½ β σᵀJσ + Σ_k γ_k Σ_i x_ki σ_i). The parameters that match the released statistics are
found by Newton steps with simulated means and covariances (Geyer & Thompson 1992). Stations along
the ridge of the likelihood are then pooled, and the likelihood of the *noisy* statistics is
maximised. β's interval is by profile likelihood, the others' by
its curvature at every plausible β: both are for large networks, unlike the interval of one
parameter.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from privfield.data.network.covariates import Covariate
from privfield.data.network.public import PublicNetwork
from privfield.errors import InputError
from privfield.estimation.peers.noise import AdditiveNoise
from privfield.estimation.peers.one import PeerEstimate, standard_errors
from privfield.estimation.peers.reweighting import mixture_costs
from privfield.estimation.peers.stations import GROUPS, Simulator, Station
from privfield.mechanisms.peers.release import StatisticRelease
from privfield.progress import ProgressCallback, tell

FloatArray = NDArray[np.float64]

_LARGEST_FIELD = 10.0
_STEPS = 60  # Newton steps, shortened ones counted too
_SHORTEST = 1 / 64
_LONGEST = 2.5  # of a step, in standard deviations of the statistics
_SETTLED = 0.2
_REACH = 3.5  # standard errors of β that stations cover on either side
_SPACING = 1.5  # between stations, in standard deviations of the statistics
_MOST_STATIONS = 41
_FEWEST_NEAR = 20.0  # draws near the released statistics, or the model does not produce them
_POINTS = 41
_CLIMB_STEPS = 40
_LEAST_BEND = 1e-8  # of the log-likelihood, per draw's variance: less is flat


def estimate_with_covariates(
    release: StatisticRelease,
    network: PublicNetwork,
    covariates: Sequence[Covariate],
    *,
    bound: float = 5.0,
    least: float = 0.0,
    level: float = 0.95,
    seed: int = 0,
    progress: ProgressCallback | None = None,
) -> PeerEstimate:
    """All parameters and their intervals from one release: post-processing, no data."""
    if release.digest != network.digest:
        raise InputError("release comes from another network.")
    if release.names != ("H", *(each.name for each in covariates)) or not covariates:
        raise InputError(f"covariates must be those of the release, {release.names[1:]}.")
    columns = np.stack([each.values for each in covariates])
    simulator = Simulator(network, columns, seed=seed)
    halves = np.array([0.5] + [1.0] * len(covariates))  # β multiplies H/2
    target = np.array(release.values) * halves
    noise = np.array(release.deviations) * halves
    box = _Box(bound, len(covariates), least)
    middle, settled = _match(simulator, target, halves, box, release, network, progress)
    stations = _ridge(simulator, middle, noise, halves, box, progress)
    pool = _Pool(stations, release, halves)
    found = _maximise(pool, box, level, stations)
    typical = pool.near(found.peak) >= _FEWEST_NEAR
    if not typical:  # no draw comes near, so their noise says nothing: match the means instead
        pool = _Pool(stations, release, halves, matched=True)
        found = _maximise(pool, box, level, stations)
    others = []
    for group in range(GROUPS):
        part = _Pool(stations, release, halves, group, matched=not typical)
        others.append(_maximise(part, box, level, stations).triples()[0])
    names = ["beta", *(each.name for each in covariates)]
    return PeerEstimate(
        dict(zip(names, found.triples(), strict=True)),
        level,
        bound,
        found.grid,
        found.profile,
        standard_errors(others),
        len(stations),
        _messages(found, stations, settled, typical, (least, bound)),
        least,
    )


class _Box:
    """β in [least, bound], everything else within ±10."""

    def __init__(self, bound: float, covariates: int, least: float = 0.0) -> None:
        self.low = np.array([least] + [-_LARGEST_FIELD] * covariates)
        self.high = np.array([bound] + [_LARGEST_FIELD] * covariates)

    def clip(self, theta: FloatArray) -> FloatArray:
        return np.clip(theta, self.low, self.high)

    def step(self, theta: FloatArray, curvature: FloatArray, slope: FloatArray) -> FloatArray:
        """A Newton step that leaves out parameters pushing against their limits."""
        free = ~(((theta <= self.low) & (slope < 0)) | ((theta >= self.high) & (slope > 0)))
        move = np.zeros_like(theta)
        if free.any():
            part = curvature[np.ix_(free, free)]
            scale = np.sqrt(np.maximum(np.diag(part), 1e-12))
            ridge = part / np.outer(scale, scale) + 1e-9 * np.eye(len(part))
            move[free] = np.linalg.solve(ridge, slope[free] / scale) / scale
        return move


def _match(
    simulator: Simulator,
    target: FloatArray,
    halves: FloatArray,
    box: _Box,
    release: StatisticRelease,
    network: PublicNetwork,
    progress: ProgressCallback | None,
) -> tuple[FloatArray, bool]:
    """Parameters at which the simulated means are the released statistics."""
    theta = np.zeros(len(target))
    if release.names[1] == "field":
        theta[1] = np.arctanh(np.clip(target[1] / network.nodes, -0.98, 0.98))
    base, move, share, promise = theta, np.zeros(len(target)), 1.0, 0.0
    for step in range(_STEPS):
        values = simulator.station(tuple(theta)).draws * halves
        tell(progress, "finding the parameters", step + 1)
        slope = target - values.mean(axis=0)
        # the log-likelihood is concave: a slope that turned around along the way is an overshoot
        if share > _SHORTEST and float(slope @ move) < -promise / 2:
            share /= 2
            theta = box.clip(base + share * move)
            continue
        cover = np.atleast_2d(np.cov(values.T))
        move = box.step(theta, cover, slope)
        length = float(np.sqrt(move @ cover @ move))
        if length < _SETTLED:
            return box.clip(theta + move), True
        move = move * min(1.0, _LONGEST / length)
        base, share, promise = theta, 1.0, float(slope @ move)
        theta = box.clip(theta + move)
    return theta, False


def _ridge(
    simulator: Simulator,
    middle: FloatArray,
    noise: FloatArray,
    halves: FloatArray,
    box: _Box,
    progress: ProgressCallback | None,
) -> list[Station]:
    """Stations along the direction in which β and the rest trade off, ±3.5 standard errors."""
    values = simulator.station(tuple(middle)).draws * halves
    cover = np.atleast_2d(np.cov(values.T)) + 1e-9 * np.eye(len(middle))
    inverse = np.linalg.inv(cover)
    errors = inverse + inverse @ np.diag(noise**2) @ inverse  # (C (C + V)⁻¹ C)⁻¹
    along = errors[:, 0] / errors[0, 0]
    reach = _REACH * np.sqrt(errors[0, 0])
    ends = [
        max(-reach, box.low[0] - middle[0]),
        min(reach, box.high[0] - middle[0]),
    ]
    length = float(np.sqrt(along @ cover @ along))
    count = int(np.clip(np.ceil((ends[1] - ends[0]) * length / _SPACING) + 1, 5, _MOST_STATIONS))
    stations = []
    for place, shift in enumerate(np.linspace(ends[0], ends[1], count)):
        stations.append(simulator.station(tuple(box.clip(middle + shift * along))))
        tell(progress, "simulating the likelihood", place + 1)
    return stations


class _Pool:
    """Draws of all stations with the weights that make them speak for any parameters near by."""

    def __init__(
        self,
        stations: Sequence[Station],
        release: StatisticRelease,
        halves: FloatArray,
        group: int | None = None,
        matched: bool = False,
    ) -> None:
        """With `matched`, as if the released statistics had no noise."""
        parts = [each.of(group) * halves for each in stations]
        self.values = np.concatenate(parts)
        self._costs = mixture_costs(np.array([each.parameters for each in stations]), parts)
        spread = self.values.std(axis=0)
        self.units: FloatArray = np.where(spread > 0, spread, 1.0)
        self._noise = np.zeros(len(self.values))
        exact = matched or all(law.name == "none" for law in release.laws)
        self._exact = np.array(release.values) * halves if exact else None
        if not exact:
            for k, law in enumerate(release.laws):
                raw = self.values[:, k] / halves[k]
                counts = np.rint((raw - release.origins[k]) / release.steps[k])
                self._noise += AdditiveNoise(law).log_mass(release.counts[k] - counts)

    def at(self, theta: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Log-likelihood, slope and curvature (minus the second derivative)."""
        exponents = self.values @ theta - self._costs
        log_free, mean_free, cover_free = self._moments(exponents)
        if self._exact is not None:
            return float(self._exact @ theta) - log_free, self._exact - mean_free, cover_free
        log_tied, mean_tied, cover_tied = self._moments(exponents + self._noise)
        return log_tied - log_free, mean_tied - mean_free, cover_free - cover_tied

    def near(self, theta: FloatArray) -> float:
        """How many draws the released statistics rest on: the effective number of tied weights."""
        if self._exact is not None:
            return float(len(self.values))
        exponents = self.values @ theta - self._costs + self._noise
        weights = np.exp(exponents - exponents.max())
        return float(weights.sum() ** 2 / (weights**2).sum())

    def errors(self, theta: FloatArray) -> FloatArray:
        """Standard errors of the parameters other than β, β given; large where it is flat."""
        unit = self.units[1:]
        curvature = self.at(theta)[2][1:, 1:] / np.outer(unit, unit)
        if not np.isfinite(curvature).all():
            return np.full(len(unit), np.inf)
        bends, axes = np.linalg.eigh(curvature)
        return np.asarray(np.sqrt((axes**2) @ (1 / np.maximum(bends, _LEAST_BEND))) / unit)

    def _moments(self, exponents: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        top = exponents.max()
        weights = np.exp(exponents - top)
        total = weights.sum()
        weights /= total
        mean = weights @ self.values
        apart = self.values - mean
        return float(top + np.log(total)), mean, (apart * weights[:, None]).T @ apart


class _Maximum:
    """Where the likelihood peaks, the profile of β, and intervals."""

    def __init__(
        self,
        peak: FloatArray,
        path: FloatArray,
        errors: FloatArray,
        profile: FloatArray,
        place: int,
        box: _Box,
        level: float,
    ) -> None:
        """`path` holds the best parameters at each β, the peak at `place`; `errors` those given β.

        `errors` are without β's.
        """
        from scipy.special import chdtri

        grid = path[:, 0]
        self.peak, self.grid, self.profile = peak, grid, profile
        cut = float(chdtri(1, 1 - level)) / 2
        drop = profile[place] - profile - cut
        # all values that some plausible β allows: β near its limits is taken into account
        reach = errors * np.sqrt(2 * np.maximum(-drop, 0.0))[:, None]
        inside = drop <= 0
        lows, highs = path[:, 1:] - reach, path[:, 1:] + reach
        self._lows = np.maximum(lows[inside].min(axis=0), box.low[1:])
        self._highs = np.minimum(highs[inside].max(axis=0), box.high[1:])
        self.low, self.open_below = _edge(grid[: place + 1][::-1], drop[: place + 1][::-1])
        self.high, self.open_above = _edge(grid[place:], drop[place:])

    def triples(self) -> list[tuple[float, float, float]]:
        parts = zip(self.peak[1:], self._lows, self._highs, strict=True)
        rest = [(float(p), float(low), float(high)) for p, low, high in parts]
        return [(float(self.peak[0]), self.low, self.high), *rest]


def _edge(betas: FloatArray, drop: FloatArray) -> tuple[float, bool]:
    """The first point where the profile has dropped enough, and whether there was none."""
    past = np.flatnonzero(drop > 0)
    if not past.size:
        return float(betas[-1]), True
    k = int(past[0])
    if k == 0:
        return float(betas[0]), False
    share = -drop[k - 1] / (drop[k] - drop[k - 1])
    return float(betas[k - 1] + share * (betas[k] - betas[k - 1])), False


def _maximise(pool: _Pool, box: _Box, level: float, stations: Sequence[Station]) -> _Maximum:
    """Profile the likelihood along β, polish its best point, and put that point into the profile.

    So the estimate is where the profile is largest, and lies inside every interval.
    """
    places = np.array([each.parameters for each in stations])
    order = np.argsort(places[:, 0])
    free = np.ones(places.shape[1], dtype=bool)
    free[0] = False
    grid = np.linspace(places[:, 0].min(), places[:, 0].max(), _POINTS)
    points: list[FloatArray] = []
    for beta in grid:
        ridge = [np.interp(beta, places[order, 0], places[order, c]) for c in range(len(free))]
        starts = [box.clip(np.array([beta, *ridge[1:]]))]
        if points:
            starts.append(np.array([beta, *points[-1][1:]]))
        points.append(_climb(pool, box, max(starts, key=lambda each: pool.at(each)[0]), free))
    profile = np.array([pool.at(theta)[0] for theta in points])
    inside = _Box(float(grid[-1]), len(free) - 1, float(grid[0]))  # no draws speak for other β
    peak = _climb(pool, inside, points[int(np.argmax(profile))], np.ones_like(free))
    keep = grid != peak[0]
    place = int(np.searchsorted(grid[keep], peak[0]))
    path = np.insert(np.array(points)[keep], place, peak, axis=0)
    profile = np.insert(profile[keep], place, pool.at(peak)[0])
    errors = np.array([pool.errors(theta) for theta in path])
    return _Maximum(peak, path, errors, profile, place, box, level)


def _climb(pool: _Pool, box: _Box, theta: FloatArray, free: NDArray[np.bool_]) -> FloatArray:
    """Newton with halved steps, or steps uphill; parameters that are not free stay. Never raises.

    Parameters are in units in which the draws have deviation 1. The likelihood need not be concave
    and may be flat: eigenvalues have a floor.
    """
    value, slope, curvature = pool.at(theta)
    for _ in range(_CLIMB_STEPS):
        blocked = ((theta <= box.low) & (slope <= 0)) | ((theta >= box.high) & (slope >= 0))
        open_ = free & ~blocked
        if not open_.any() or not np.isfinite(slope).all() or not np.isfinite(curvature).all():
            break
        unit = pool.units[open_]
        uphill = slope[open_] / unit
        bends, axes = np.linalg.eigh(curvature[np.ix_(open_, open_)] / np.outer(unit, unit))
        floor = max(1e-6 * float(np.abs(bends).max()), _LEAST_BEND)
        for way in (axes @ ((axes.T @ uphill) / np.maximum(bends, floor)), uphill):
            move = np.zeros_like(theta)
            move[open_] = way / unit
            found = _shorten(pool, theta, box.clip(theta + move) - theta, value)
            if found is not None:
                break
        else:
            break
        move, trial = found
        gain = trial[0] - value
        theta = box.clip(theta + move)
        value, slope, curvature = trial
        if gain < 1e-8:
            break
    return theta


def _shorten(
    pool: _Pool, theta: FloatArray, move: FloatArray, value: float
) -> tuple[FloatArray, tuple[float, FloatArray, FloatArray]] | None:
    """Halve a step until it leads up; None where it never does."""
    for _ in range(20):
        trial = pool.at(theta + move)
        if trial[0] > value:
            return move, trial
        move = move / 2
    return None


def _messages(
    found: _Maximum,
    stations: Sequence[Station],
    settled: bool,
    typical: bool,
    bounds: tuple[float, float],
) -> tuple[str, ...]:
    notes = []
    if not settled:
        notes.append(
            "No parameters within the bounds reproduce the released statistics: privacy noise is "
            "large here, or the model does not fit."
        )
    elif not typical:
        notes.append(
            "Outcomes drawn from the best model hardly ever have statistics near the released "
            "ones: the model does not fit. The estimate matches them on average; do not trust the "
            "interval."
        )
    least, most = bounds
    if found.peak[0] >= most or (found.open_above and found.high >= most):
        notes.append(f"The interval of β reaches the bound {most:g}.")
    elif found.open_above or (found.open_below and found.low > least):
        notes.append("The interval of β is cut off where the simulation ends.")
    stuck = [each for each in stations if not each.agreed]
    if stuck:
        notes.append(f"Markov chains did not agree at {len(stuck)} of {len(stations)} stations.")
    return tuple(notes)
