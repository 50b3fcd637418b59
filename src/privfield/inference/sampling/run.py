"""From chains to draws: burn-in, thinning, and what can be said about convergence."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privfield.checks import check_whole
from privfield.errors import InputError
from privfield.inference.sampling.diagnostics import MIN_DRAWS, Diagnostic, diagnose, r_hat_limit

FloatArray = NDArray[np.float64]
States = NDArray[Any]
Collect: TypeAlias = Literal["states", "statistics"] | Callable[[States], Any]

MAX_BYTES = 1 << 32

_FIRST_STAGE = 50  # sweeps
_TIMES = 50  # a stage is long enough at this many autocorrelation times
_PILOT_SWEEPS = 20_000
_PILOT_UPDATES = 2e9  # of single variables: about half a minute
_FEWEST_PILOT_SWEEPS = 350  # three stages


class Chains(Protocol):
    """Several Markov chains that move together."""

    names: tuple[str, ...]
    count: int

    def advance(self, sweeps: int) -> None:
        """Run every chain `sweeps` sweeps on."""

    def statistics(self) -> FloatArray:
        """The statistics `names` of the present states, (chains, names)."""

    def states(self) -> States:
        """A copy of the present states, (chains, variables)."""

    def mark(self) -> None:
        """Measure overlaps from now on with the first chain's state at the mark before."""


@dataclass(frozen=True, eq=False)
class SampleResult:
    """Draws and how far to trust them.

    Rows go round the chains: row r is draw r // chains of chain r % chains. `states` (n, variables)
    is None unless states were collected; `collected` holds what a function returned; `statistics`
    maps names to n values. `burn_in` counts all sweeps before the first draw, those of the pilot
    run too; `thin` is the number of sweeps from draw to draw.

    `converged` is False unless every check passed, and `messages` says what did not pass or could
    not be checked. True is evidence, never proof: chains that all missed a part of the distribution
    agree.
    """

    states: States | None
    collected: NDArray[Any] | None
    statistics: Mapping[str, FloatArray]
    diagnostics: Mapping[str, Diagnostic]
    method: str
    chains: int
    burn_in: int
    thin: int
    converged: bool
    messages: tuple[str, ...]


@dataclass(frozen=True)
class _Pilot:
    sweeps: int
    thin: int
    problem: str | None


def sample_chains(
    chains: Chains,
    variables: int,
    n: int,
    *,
    method: str,
    burn_in: int | None,
    thin: int | None,
    collect: Collect,
) -> SampleResult:
    """Burn in, draw, diagnose. Arguments have been checked by `check_plan`."""
    if n == 0:
        return _no_draws(chains, method, thin, collect)
    messages: list[str] = []
    checked, agreed = False, True
    burnt = burn_in or 0
    chains.advance(burnt // 2)
    chains.mark()
    chains.advance(burnt - burnt // 2)
    if burn_in is None or thin is None:
        pilot = _run_pilot(chains, variables)
        burnt += pilot.sweeps
        thin = pilot.thin if thin is None else thin
        checked, agreed = True, pilot.problem is None
        messages += [] if pilot.problem is None else [pilot.problem]
    chains.mark()
    values, states, collected = _draw(chains, n, thin, collect)
    diagnostics = {name: diagnose(values[:, :, k].T) for k, name in enumerate(chains.names)}
    if values.shape[0] >= MIN_DRAWS:
        checked = True
        limit = r_hat_limit(chains.count, values.shape[0])
        for name, found in diagnostics.items():
            if not found.r_hat <= limit:
                agreed = False
                messages.append(
                    f"the chains disagree about {name}: split-R̂ is {found.r_hat:.3f}, above "
                    f"{limit:.3f}; run longer, or use another method"
                )
    else:
        messages.append(
            f"{values.shape[0]} draws per chain are too few to compare chains (at least "
            f"{MIN_DRAWS})" + ("; convergence rests on the pilot run" if checked else "")
        )
    if chains.count == 1:
        messages.append("a single chain cannot show what other starts would have found")
    flat = values.reshape(-1, len(chains.names))[:n]
    return SampleResult(
        states=states,
        collected=collected,
        statistics={name: flat[:, k].copy() for k, name in enumerate(chains.names)},
        diagnostics=diagnostics,
        method=method,
        chains=chains.count,
        burn_in=burnt,
        thin=thin,
        converged=checked and agreed,
        messages=tuple(messages),
    )


def _no_draws(chains: Chains, method: str, thin: int | None, collect: Collect) -> SampleResult:
    return SampleResult(
        states=chains.states()[:0] if collect == "states" else None,
        collected=np.empty(0) if callable(collect) else None,
        statistics={name: np.empty(0) for name in chains.names},
        diagnostics={name: Diagnostic(math.nan, math.nan) for name in chains.names},
        method=method,
        chains=chains.count,
        burn_in=0,
        thin=thin or 1,
        converged=False,
        messages=("no draws were asked for, so no chain was run",),
    )


def _run_pilot(chains: Chains, variables: int) -> _Pilot:
    """Stages of doubling length until one is long and calm; all of them are thrown away.

    A stage is judged on its own: τ is the largest integrated autocorrelation time of a statistic,
    draws / effective sample size. It passes when it has at least 50 τ sweeps and no split-R̂ is
    above its limit. Draws are then ⌈2τ⌉ − 1 sweeps apart, at most a 25th of the stage.
    """
    updates = max(variables, 1) * chains.count
    most = min(_PILOT_SWEEPS, max(_FEWEST_PILOT_SWEEPS, int(_PILOT_UPDATES / updates)))
    length, total = _FIRST_STAGE, 0
    while True:
        chains.mark()
        values = np.empty((length, chains.count, len(chains.names)))
        for sweep in range(length):
            chains.advance(1)
            values[sweep] = chains.statistics()
        total += length
        found = [diagnose(values[:, :, k].T) for k in range(len(chains.names))]
        time = max(1.0, *(length * chains.count / each.ess for each in found))
        r_hat = max(each.r_hat for each in found)
        thin = max(1, min(math.ceil(2 * time) - 1, length // (_TIMES // 2)))
        if length >= _TIMES * time and r_hat <= r_hat_limit(chains.count, length / time):
            return _Pilot(total, thin, None)
        if total + 2 * length > most:
            problem = (
                f"no convergence within {total} sweeps of burn-in: split-R̂ {r_hat:.3f}, "
                f"autocorrelation time about {time:.0f} sweeps"
            )
            return _Pilot(total, thin, problem)
        length *= 2


def _draw(
    chains: Chains, n: int, thin: int, collect: Collect
) -> tuple[FloatArray, States | None, NDArray[Any] | None]:
    """Statistics (draws, chains, names) of whole rounds, and n rows of what is collected."""
    rounds = -(-n // chains.count)
    values = np.empty((rounds, chains.count, len(chains.names)))
    kept: NDArray[Any] | None = None
    for draw in range(rounds):
        chains.advance(thin)
        values[draw] = chains.statistics()
        if collect == "statistics":
            continue
        present = chains.states()
        if callable(collect):
            present = np.asarray(collect(present))
            if present.shape[:1] != (chains.count,):
                raise InputError(
                    "collect must return one row per chain: an array whose first axis is "
                    f"{chains.count}; got shape {present.shape}"
                )
        if kept is None:
            kept = np.empty((n, *present.shape[1:]), dtype=present.dtype)
        first = draw * chains.count
        kept[first : first + chains.count] = present[: n - first]
    return (values, None, kept) if callable(collect) else (values, kept, None)


def check_plan(
    n: int,
    chains: int,
    burn_in: int | None,
    thin: int | None,
    collect: Collect,
    *,
    row_bytes: int,
    max_bytes: int,
) -> None:
    """Refuse numbers that make no sense, and results that would not fit."""
    check_whole(n, "n", 0)
    check_whole(chains, "chains", 1)
    if burn_in is not None:
        check_whole(burn_in, "burn_in", 0)
    if thin is not None:
        check_whole(thin, "thin", 1)
    if not callable(collect) and collect not in ("states", "statistics"):
        raise InputError(
            f'collect must be "states", "statistics" or a function of the states; got {collect!r}'
        )
    if collect == "states" and n * row_bytes > max_bytes:
        raise InputError(
            f"{n} states of {row_bytes} bytes need {n * row_bytes:,} bytes, above "
            f'max_bytes={max_bytes:,}: draw fewer, or pass collect="statistics" or a function that '
            "keeps less"
        )
