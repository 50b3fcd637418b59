"""Parity queries by a perturbed leader (FEM, sepFEM): docs/privacy/parities-sepfem.md."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.errors import InputError
from privfield.mechanisms.parities.answers import count_sets
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.randomness import Entropy
from privfield.privacy.released import tell
from privfield.privacy.selection import exponential_mechanism, selection_scale_zcdp
from privfield.progress import Progress, ProgressCallback
from privfield.solvers.parity_oracle.oracle import choose_oracle, maximise_each

# measured: docs/privacy/parities-sepfem.md, accuracy
_SAMPLES = 100  # states that stand for the distribution of a round
_PERTURBATION = 3.0  # in units of one chosen query
_ROUNDS_FACTOR = 0.1
_MOST_ROUNDS = 1000

_MOST_SAMPLES = 10_000
_MOST_SCORE = 1 << 61  # beyond it a score could leave int64, wrap around, and protect nobody


def sepfem(
    counts: NDArray[np.int64],
    variables: int,
    order: int,
    rows: int,
    rho: Fraction,
    *,
    adjacency: Adjacency,
    rounds: int | None = None,
    entropy: Entropy | None = None,
    rng: np.random.Generator | None = None,
    progress: ProgressCallback | None = None,
    variant: str = "sepfem",
    samples: int | None = None,
    oracle: str = "auto",
) -> tuple[NDArray[np.float64], dict[str, Any]]:
    """Answers to all `parity_sets` from their exact sums `counts`, and (public) how they came.

    Each round chooses, by the exponential mechanism, a parity or its negative whose sum is far
    above what the last round's states say, adds it to the objective, and draws `samples` states
    that maximise the objective plus random linear terms: two-sided (Laplace) for "sepfem",
    one-sided (exponential) for "fem". Answers are the mean over all rounds' states.

    Privacy: rho-zCDP for one row under `adjacency`, whatever the oracle finds. `rows` is public:
    their number under replace-one, a declared one under add-remove.

    Vietri, Tian, Bun, Steinke & Wu 2020.
    """
    method, draws = check_sepfem(variables, variant, samples, oracle, rows)
    sets = count_sets(variables, order)
    if counts.shape != (sets,):
        raise InputError(f"counts must have shape {(sets,)}; got {counts.shape}.")
    turns = default_rounds(variables, order, rows, rho, adjacency) if rounds is None else rounds
    source = np.random.default_rng() if rng is None else rng
    perturb = source.laplace if variant == "sepfem" else _one_sided(source)
    # scores are `draws` times as large as the sums, so that all are whole numbers
    scale = selection_scale_zcdp(draws * range_sensitivity(adjacency), Fraction(rho) / turns)
    sums_of = _ParitySums(variables, order)

    objective = np.zeros(sets)
    drawn = np.zeros(sets, np.int64)  # of `draws` states; none yet: the uniform distribution
    total = np.zeros(sets, np.int64)
    for turn in range(turns):
        chosen = exponential_mechanism(
            signed_scores(counts, drawn, rows, draws), scale, entropy=entropy
        )
        objective[chosen % sets] += 1 if chosen < sets else -1
        noise = perturb(0, _PERTURBATION, (draws, variables))
        found = maximise_each(objective, noise, variables, order, method=method, rng=source)
        drawn = sums_of(found.x)
        total += drawn
        tell(progress, Progress("choosing parities", turn + 1))
    about = {
        "rounds": turns,
        "samples": draws,
        "oracle": method,
        "oracle_proved": method != "tabu",
        "perturbation": "laplace" if variant == "sepfem" else "exponential",
        "perturbation_scale": _PERTURBATION,
    }
    return total / (draws * turns), about


def signed_scores(
    counts: NDArray[np.int64], drawn: NDArray[np.int64], rows: int, draws: int
) -> NDArray[np.int64]:
    """How far each parity, then each negative of one, is above what the drawn states say.

    In units of 1/`draws` of a row: draws · Σ_rows χ − rows · Σ_states χ, a whole number.
    """
    above = draws * counts - rows * drawn
    return np.concatenate([above, -above])


def range_sensitivity(adjacency: Adjacency) -> int:
    """The range by which one row moves the signed sums ±Σ χ.

    A row added moves one sum of a pair up by 1 and the other down by 1; a row replaced by 2.
    """
    if adjacency is Adjacency.ADD_REMOVE:
        return 2
    if adjacency is Adjacency.REPLACE_ONE:
        return 4
    raise InputError(
        "adjacency must be 'replace-one' or 'add-remove' for parities; got 'flip-outcome'."
    )


def default_rounds(
    variables: int, order: int, rows: int, rho: Fraction, adjacency: Adjacency
) -> int:
    """0.1 · p^{5/4} · n √ρ / ln(2 · parities), twice as many under add-remove; from 1 to 1000."""
    signal = rows * math.sqrt(rho) * 4 / range_sensitivity(adjacency)
    wanted = _ROUNDS_FACTOR * variables**1.25 * signal / math.log(2 * count_sets(variables, order))
    return int(min(max(wanted, 1), _MOST_ROUNDS))


def check_sepfem(
    variables: int, variant: object, samples: object, oracle: object, rows: int | None = None
) -> tuple[str, int]:
    """The oracle's method and the number of samples, or an `InputError`; before any charge.

    `rows` is public, if known: their number, or the declared one.
    """
    if variant not in ("sepfem", "fem"):
        raise InputError(f"variant must be 'sepfem' or 'fem'; got {variant!r}.")
    draws = _SAMPLES if samples is None else samples
    whole = isinstance(draws, int | np.integer) and not isinstance(draws, bool)
    if not whole or not 1 <= draws <= _MOST_SAMPLES:  # type: ignore[operator]
        raise InputError(
            f"samples must be a whole number from 1 to {_MOST_SAMPLES:,}, or None; got {samples!r}."
        )
    count: int = int(draws)  # type: ignore[call-overload]
    if rows is not None and rows * count > _MOST_SCORE:
        raise InputError(
            f"declared_rows times samples must be at most {_MOST_SCORE:.1e}; got "
            f"{rows * count:.1e}."
        )
    return choose_oracle(oracle, variables), count


def _one_sided(source: np.random.Generator) -> Any:
    """Exponential noise, called as Laplace noise is."""
    return lambda start, scale, shape: start + source.exponential(scale, shape)


class _ParitySums:
    """Sums of all parities over a few states, again and again."""

    def __init__(self, variables: int, order: int) -> None:
        from privfield.mechanisms.parities.counts import sets_of_size

        self._sizes = [sets_of_size(variables, size) for size in range(1, order + 1)]

    def __call__(self, x: NDArray[np.int8]) -> NDArray[np.int64]:
        from privfield.mechanisms.parities.counts import packed
        from privfield.mechanisms.parities.kernels import add_odd_rows

        bits = packed(x)
        odd = [np.zeros(len(sets), np.int64) for sets in self._sizes]
        for sets, found in zip(self._sizes, odd, strict=True):
            add_odd_rows(bits, sets, found)
        return np.asarray(len(x) - 2 * np.concatenate(odd))
