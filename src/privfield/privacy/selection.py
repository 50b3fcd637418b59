"""Private selection of one candidate out of many by integer scores, with exact probabilities.

docs/privacy/selection.md holds the proofs: privacy, and that no rounding changes a probability.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from numbers import Number, Rational

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfield.errors import InputError
from privfield.privacy.budgets import PI
from privfield.privacy.randomness import Entropy
from privfield.privacy.rounding import decimals, to_decimal

_BLOCK_ROWS = 256  # at most so many rows, and
_BLOCK_SCORES = 2**16  # so many scores (or one row) at once: temporaries stay in the cache
_LEAF = 256  # candidates whose weights are summed together before the running sum
_MAX_EXPONENT = 700.0  # weights below exp(-700) are rounded up to it: nothing underflows
_WEIGHT_ERROR = 2.0**-44  # of a sum of float weights, relative; assumes np.exp within 2^-45


def selection_scale_zcdp(range_sensitivity: Fraction | int, rho: Fraction | int) -> Fraction:
    """The scale at which one `exponential_mechanism` selection is rho-zCDP.

    This is range_sensitivity / sqrt(8 rho), rounded up by a relative 2^-58 at most.

    `range_sensitivity` is the largest value that max_s(change of score s) - min_s(change of
    score s) takes between neighbouring data sets, in the units of the integer scores. If each
    score changes by at most D, twice D will do; if all change in the same direction, D will.

    >>> selection_scale_zcdp(2, Fraction(1, 8))
    Fraction(2, 1)
    """
    sensitivity = _positive("range_sensitivity", range_sensitivity)
    return _root_above(sensitivity**2 / (8 * _positive("rho", rho)))


def selection_scale_gaussian(range_sensitivity: Fraction | int, rho: Fraction | int) -> Fraction:
    """The scale at which one `exponential_mechanism` tells no more than noise of μ²/2 = rho.

    This is range_sensitivity · sqrt(π / 16 rho), rounded up by a relative 2^-24 at most;
    `selection_scale_zcdp` explains `range_sensitivity`.
    """
    sensitivity = _positive("range_sensitivity", range_sensitivity)
    return _root_above(PI * sensitivity**2 / (16 * _positive("rho", rho)))


def _root_above(square: Fraction) -> Fraction:
    # on the grid 2^-k the root has about 60 bits; `k` may be negative
    k = 60 - (square.numerator.bit_length() - square.denominator.bit_length()) // 2
    root = math.isqrt(math.ceil(square * Fraction(4) ** k) - 1) + 1  # smallest with root² ≥ …
    return root / Fraction(2) ** k


def selection_scale_pure(range_sensitivity: Fraction | int, epsilon: Fraction | int) -> Fraction:
    """The scale at which one selection is epsilon-DP: range_sensitivity / epsilon, exactly.

    Holds for `permute_and_flip` and for `exponential_mechanism`; `selection_scale_zcdp` explains
    `range_sensitivity`.
    """
    return _positive("range_sensitivity", range_sensitivity) / _positive("epsilon", epsilon)


def exponential_mechanism(
    scores: ArrayLike, scale: Fraction | int, *, entropy: Entropy | None = None
) -> int:
    """Select candidate s with probability proportional to exp(score_s / scale), exactly.

    `scores` are integers, one per candidate.

    Privacy: with range sensitivity r, (r/scale)²/8-zCDP and (r/scale)-DP. Take the scale from
    `selection_scale_zcdp` or `selection_scale_pure`. Run time depends on the scores.

    >>> exponential_mechanism([0, 3, 10_000], Fraction(1, 2))
    2
    """
    table = _scores(scores, 1)[np.newaxis, :]
    return int(_select_rows(table, [_positive("scale", scale)], entropy)[0])


def exponential_mechanism_rows(
    scores: ArrayLike,
    scale: Fraction | int | Sequence[Fraction | int],
    *,
    entropy: Entropy | None = None,
) -> NDArray[np.int64]:
    """One `exponential_mechanism` selection for each row of a table of integer scores.

    The selections are independent. `scale` is one value for all rows or a sequence of one per row.

    Privacy per row as for `exponential_mechanism`; the costs of rows that read the same records
    add up.
    """
    table = _scores(scores, 2)
    return _select_rows(table, _scales(scale, len(table)), entropy)


def permute_and_flip(
    scores: ArrayLike, scale: Fraction | int, *, entropy: Entropy | None = None
) -> int:
    """Select one candidate under pure differential privacy, with exact probabilities.

    Looks at the candidates in random order and takes candidate s with probability
    exp((score_s - max score) / scale), once each.

    Privacy: (r/scale)-DP for scores of range sensitivity r (take the scale from
    `selection_scale_pure`). The expected score is never below that of `exponential_mechanism` at
    the same scale. For zCDP use `exponential_mechanism`: this mechanism is only (r/scale)²/2-zCDP.

    McKenna & Sheldon 2020. The usual scale 2D/epsilon is for scores that move by at
    most D. Adding one constant to all scores changes nothing here, so the change may be centred:
    then D is half its range, and 2D = r.
    """
    values: list[int] = _scores(scores, 1).tolist()
    step = _positive("scale", scale)
    source = Entropy.system() if entropy is None else entropy
    top = max(values)
    waiting = list(range(len(values)))
    while True:
        place = source.below(len(waiting))
        candidate = waiting[place]
        if bernoulli_exp((top - values[candidate]) / step, source):  # certain for the maximum
            return candidate
        waiting[place] = waiting[-1]
        waiting.pop()


def bernoulli_exp(exponent: Fraction, source: Entropy) -> bool:
    """True with probability exp(-exponent), exactly (Canonne, Kamath & Steinke 2020)."""
    whole = exponent.numerator // exponent.denominator
    for _ in range(whole):
        if not _bernoulli_exp_fraction(Fraction(1), source):
            return False
    return _bernoulli_exp_fraction(exponent - whole, source)


def _bernoulli_exp_fraction(exponent: Fraction, source: Entropy) -> bool:
    """The same for an exponent in [0, 1]: trial k succeeds with probability exponent / k."""
    trial = 1
    while source.below(exponent.denominator * trial) < exponent.numerator:
        trial += 1
    return trial % 2 == 1


def _select_rows(
    scores: NDArray[np.int64], scales: list[Fraction], entropy: Entropy | None
) -> NDArray[np.int64]:
    source = Entropy.system() if entropy is None else entropy
    rows, candidates = scores.shape
    rates = np.broadcast_to(np.array([_rate(scale) for scale in scales]), rows)
    chosen = np.empty(rows, dtype=np.int64)
    step = max(1, min(_BLOCK_ROWS, _BLOCK_SCORES // candidates))
    for start in range(0, rows, step):
        part = slice(start, start + step)
        words = source.words(len(chosen[part]))
        chosen[part], certain = _float_choice(scores[part], rates[part], words)
        for i in np.flatnonzero(~certain).tolist():
            scale = scales[start + i] if len(scales) > 1 else scales[0]
            chosen[start + i] = _exact_choice(scores[start + i], scale, int(words[i]), source)
    return chosen


def _float_choice(
    scores: NDArray[np.int64], rates: NDArray[np.float64], words: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """For each row the choice at U = word / 2^64, and whether it is certain despite rounding.

    Candidate k is right when C[k-1] <= U C[last] < C[k], where C is the running sum of weights.
    """
    rows, candidates = scores.shape
    leaves = -(-candidates // _LEAF)
    width = -(-candidates // leaves)
    # unsigned, because the gap between two int64 scores can exceed int64; the wrap-around is exact
    gaps = (scores.max(axis=1, keepdims=True) - scores).view(np.uint64)
    weights = np.empty((rows, leaves * width))
    used = weights[:, :candidates]
    np.multiply(gaps, -rates[:, np.newaxis], out=used)
    np.maximum(used, -_MAX_EXPONENT, out=used)
    np.exp(used, out=used)
    weights[:, candidates:] = 0.0  # padding; never certain, as no U falls on it

    # running sums first over leaves, then inside the leaf that U hits: one fast pass over weights
    tree = weights.reshape(rows, leaves, width)
    leaf_ends = np.cumsum(tree.sum(axis=2), axis=1)
    total = leaf_ends[:, -1]
    target = (words >> np.uint64(11)) * 2.0**-53 * total
    row = np.arange(rows)
    leaf = np.minimum((leaf_ends <= target[:, np.newaxis]).sum(axis=1), leaves - 1)
    start = np.where(leaf > 0, leaf_ends[row, leaf - 1], 0.0)
    ends = start[:, np.newaxis] + np.cumsum(tree[row, leaf], axis=1)
    place = np.minimum((ends <= target[:, np.newaxis]).sum(axis=1), width - 1)
    lower = np.where(place > 0, ends[row, place - 1], start)
    upper = ends[row, place]

    margin = 4.0 * (_WEIGHT_ERROR + (leaves + width) * 2.0**-52) * total
    certain = (target - lower >= margin) & (upper - target >= margin)
    return leaf * width + place, certain


def _exact_choice(scores: NDArray[np.int64], scale: Fraction, word: int, source: Entropy) -> int:
    """The choice at the real number U whose first 64 bits are `word`; draws more bits at need."""
    values: list[int] = scores.tolist()
    top = max(values)
    gaps = [top - value for value in values]
    bits, drawn = word, 64  # U lies in [bits, bits + 1) / 2^drawn
    while True:
        choice = _decided(gaps, scale, bits, drawn)
        if choice is not None:
            return choice
        bits = bits << 64 | source.bits(64)
        drawn += 64


def _decided(gaps: list[int], scale: Fraction, bits: int, drawn: int) -> int | None:
    """The choice if it is the same for all U in [bits, bits + 1) / 2^drawn, or None."""
    digits = drawn // 3 + 10  # 10^-digits is finer than 2^-drawn
    known = {gap: _weight_bounds(gap, scale, digits) for gap in set(gaps)}
    least = list(accumulate(known[gap][0] for gap in gaps))
    most = list(accumulate(known[gap][1] for gap in gaps))
    last = len(gaps) - 1
    for k in range(len(gaps)):
        if k == last or (bits + 1) * most[last] <= least[k] << drawn:
            clears_lower = k == 0 or most[k - 1] << drawn <= bits * least[last]
            return k if clears_lower else None
    return None  # pragma: no cover - the last candidate always ends the loop


def _weight_bounds(gap: int, scale: Fraction, digits: int) -> tuple[int, int]:
    """Integers around 10^digits exp(-gap / scale)."""
    if gap == 0:
        return 10**digits, 10**digits
    if gap > 3 * digits * scale:  # exp(-3) < 1/10
        return 0, 1
    # `exp` is correctly rounded, and with 20 spare digits all errors stay far below one unit
    context = decimals(digits + 20)
    exponent = to_decimal(gap / scale, context)
    weight = int(context.scaleb(context.exp(exponent.copy_negate()), digits))
    return max(weight - 1, 0), weight + 2


def _rate(scale: Fraction) -> float:
    """1 / scale as a float; capped, since any gap of 1 is then beyond `_MAX_EXPONENT` anyway."""
    return float(min(1 / scale, Fraction(1024)))


def _positive(name: str, value: object) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, Rational) or value <= 0:
        # only numbers are shown: an array here may be private data in the wrong place
        shown = repr(value) if isinstance(value, Number) else type(value).__name__
        raise InputError(f"{name} must be an int or Fraction above 0; got {shown}.")
    return Fraction(int(value.numerator), int(value.denominator))


def _scales(scale: object, rows: int) -> list[Fraction]:
    """One scale for all rows, or as many as rows."""
    if not isinstance(scale, Sequence):
        return [_positive("scale", scale)]
    if len(scale) != rows:
        raise InputError(f"scale must be one value or one per row ({rows}); got {len(scale)}.")
    return [_positive("scale", value) for value in scale]


def _scores(scores: ArrayLike, dimensions: int) -> NDArray[np.int64]:
    """Scores as int64; texts of errors show shape and type only, never a score."""
    try:
        table = np.asarray(scores)
    except ValueError:
        raise InputError("scores must have the same number of candidates in each row.") from None
    if table.ndim != dimensions or table.shape[-1] == 0:
        shape = "(candidates,)" if dimensions == 1 else "(rows, candidates)"
        raise InputError(
            f"scores must have shape {shape} with at least one candidate; got shape {table.shape}."
        )
    if table.dtype.kind not in "iu" or not np.can_cast(table.dtype, np.int64):
        raise InputError(
            "scores must be integers that fit int64 (round others to a public grid first); "
            f"got dtype {table.dtype}."
        )
    return table.astype(np.int64, copy=False)
