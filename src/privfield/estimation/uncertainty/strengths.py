"""How strong an edge is, with interval and verdict: from contrasts of a pair to one number."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, overload

import numpy as np

from privfield.checks import shown
from privfield.errors import InputError
from privfield.estimation.uncertainty.coordinates import Scope, contrasts
from privfield.estimation.uncertainty.tails import erfc, normal_quantile
from privfield.html import table_html
from privfield.inference.factors import Table
from privfield.schema import Schema, Variable
from privfield.stamps import Stamped, own_stamp, stamped
from privfield.words import counted

NEGLIGIBLE = 0.05
_MOST_NEGLIGIBLE = 100.0  # no strength that can be told from infinite is above
VERDICTS = ("clear", "uncertain", "absent", "not measured")
USELESS = 5.0  # strengths beyond are no limits: odds ratios above e²⁰
UNKNOWN = "no interval"
_MOST_DROP = 0.2  # of a count: with more, intervals of strengths were too long in simulations
_SHOWN = 20
_NAMED = 5


@dataclass(frozen=True, repr=False)
class EdgeInterval(Stamped):
    """How strongly two variables are related when all others are held fixed.

    Where both variables have two levels, `estimate` is the weight W of an Ising model: a quarter
    of the log odds ratio. Where both are ordered (declared so, two levels or bins) it is the same
    for the linear trend: a quarter of the log odds ratio between their extreme levels. Otherwise it
    has no sign: the root mean square of the centred table of log-potentials, which is |W| for two
    levels. Where an interaction of both with a third variable was measured, it is the mean
    over the levels of that, each counting the same.

    `estimate`, `low`, `high` and `p` (of the hypothesis that there is no such edge) come from the
    released numbers and are not shrunk; ends may be infinite. They are None where no interval is
    known. `fitted` is the same strength in the model, which is shrunk so that it predicts well.
    `steps` is the product of the numbers of steps of two ordered variables, 1 for two levels each.
    """

    first: str
    second: str
    estimate: float
    low: float | None
    high: float | None
    signed: bool
    p: float | None = None
    fitted: float = 0.0
    verdict: str = UNKNOWN
    steps: int = 1
    stamp: str | None = own_stamp()

    @property
    def text(self) -> str:
        """All fields but the stamp."""
        told = (f"{name}={getattr(self, name)!r}" for name in _COLUMNS)
        return f"EdgeInterval({', '.join(told)})"

    def step_odds(self, strength: float) -> float:
        """The odds ratio of such a strength, between neighbouring levels of both variables."""
        return math.exp(min(4 * strength / self.steps, 700))


_COLUMNS = tuple(field.name for field in fields(EdgeInterval) if field.name != "stamp")


class Edges(Stamped, Sequence[EdgeInterval]):
    """Edges with their verdicts; `pairs` is how many pairs of variables there are in all.

    `known` is False where no interval is known for the way in which they were estimated.
    `unsettled` counts pairs that noise does not hide and that are called "not measured" all the
    same: links that private selection may have missed would show in them. `entangled` counts those
    of variables that all but determine each other. `larger` has the names in each interaction of
    three variables and more that was measured. `note` says all three.
    """

    def __init__(
        self,
        rows: Sequence[EdgeInterval],
        level: float,
        pairs: int,
        known: bool = True,
        unsettled: int = 0,
        larger: Sequence[tuple[str, ...]] = (),
        entangled: int = 0,
    ) -> None:
        self.rows, self.level, self.pairs, self.known = tuple(rows), level, pairs, known
        self.unsettled, self.larger, self.entangled = unsettled, tuple(larger), entangled

    @property
    def note(self) -> str:
        """Why pairs are called "not measured" though noise is not the reason, or never absent."""
        words = unsettled_words(self.unsettled), entangled_words(self.entangled)
        return " ".join(filter(None, (*words, larger_words(self.larger))))

    @overload
    def __getitem__(self, place: int) -> EdgeInterval: ...
    @overload
    def __getitem__(self, place: slice) -> Edges: ...
    def __getitem__(self, place: int | slice) -> EdgeInterval | Edges:
        if isinstance(place, slice):
            known = self.known, self.unsettled, self.larger, self.entangled
            return stamped(Edges(self.rows[place], self.level, self.pairs, *known), self)
        return self.rows[place]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[EdgeInterval]:
        return iter(self.rows)

    def count(self, verdict: Any) -> int:
        """How many pairs have that verdict; pairs that are not listed were not measured."""
        listed = sum(row.verdict == verdict for row in self.rows)
        others = self.pairs - len(self.rows) if verdict == VERDICTS[-1] else 0
        return int(listed + (others if self.known else 0))

    def to_pandas(self) -> Any:
        """A row for each edge."""
        import pandas as pd

        rows = [[getattr(row, name) for name in _COLUMNS] for row in self.rows]
        return stamped(pd.DataFrame(rows, columns=list(_COLUMNS)), self)

    def _repr_html_(self) -> str:
        order = sorted(self.rows, key=lambda row: (_rank(row.verdict), -abs(row.estimate)))
        rows = [(r.first, r.second, *_numbers(r), r.verdict) for r in order]
        head = ("first", "second", "estimate", "low", "high", "verdict")
        title = f"{self._counts()}. {self.note}".removesuffix(". ")
        return table_html(self._headed(title), head, rows)

    def _counts(self) -> str:
        counts = ", ".join(f"{self.count(v):,} {v}" for v in VERDICTS if self.count(v))
        counts = counts if self.known else "no interval is known for this method"
        if self.known and self.pairs and not self.rows:  # not "nothing is related"
            counts += ". No pair was measured, so none is listed; there may be links all the same"
        return f"{counted(self.pairs, 'pair')} of variables: {counts}"

    @property
    def text(self) -> str:
        """How many there are of each verdict, and the first of them."""
        lines = [self._counts()]
        order = sorted(self.rows, key=lambda row: (_rank(row.verdict), -abs(row.estimate)))
        for row in order[:_SHOWN]:
            numbers = "" if row.verdict == VERDICTS[-1] else f"  {row.estimate:.2f}"
            if numbers and row.low is not None and row.high is not None:
                numbers += f" ({range_text(row.low, row.high, '{:.2f}'.format)})"
            lines.append(f"{row.first} – {row.second}{numbers}  {row.verdict}")
        if len(order) > _SHOWN:
            lines.append(f"and {len(order) - _SHOWN:,} more: .to_pandas() has all")
        return "\n".join([*lines, *([self.note] if self.note else [])])


def range_text(low: float, high: float, show: Callable[[float], str]) -> str:
    """An interval in words; ends that are too far away to tell anything are no limits."""
    if abs(high) > USELESS and abs(low) > USELESS:
        return "no useful limits"
    if abs(high) > USELESS:
        return f"at least {show(low)}" if low else "no useful upper limit"
    if abs(low) > USELESS:
        return f"at most {show(high)}"
    return f"{show(low)} to {show(high)}"


def unsettled_words(count: int) -> str:
    """Why so many chosen pairs have no interval."""
    if not count:
        return ""
    has = "has" if count == 1 else "have"
    return (
        f"{counted(count, 'pair')} that private selection chose {has} no interval: links that it "
        "may have missed would show there."
    )


def entangled_words(count: int) -> str:
    """Why pairs of variables that all but determine each other have no interval."""
    if not count:
        return ""
    return (
        f"{counted(count, 'pair')} of variables that all but determine each other, or of two "
        "such and a third: which of them are linked directly cannot be told."
    )


def larger_words(scopes: Sequence[tuple[str, ...]]) -> str:
    """What strengths mean inside these interactions."""
    if not scopes:
        return ""
    named = "; ".join(" × ".join(scope) for scope in scopes[:_NAMED])
    more = f"; and {len(scopes) - _NAMED:,} more" * (len(scopes) > _NAMED)
    return (
        f"Three or more variables were measured together ({named}{more}): how strongly two of them "
        "are linked may depend on the others. Their strength is the mean over the levels of those, "
        "and may be near 0 where links are strong, so that none of these pairs is called absent."
    )


def _rank(verdict: str) -> int:
    return VERDICTS.index(verdict) if verdict in VERDICTS else len(VERDICTS)


def judged(
    rows: Sequence[EdgeInterval],
    measured: Sequence[bool],
    level: float,
    negligible: float,
    tests: int | None = None,
    dependent: Collection[tuple[str, str]] = (),
) -> list[EdgeInterval]:
    """The edges with their verdicts: all are judged together.

    "clear" edges are those of which on average at most 1 − `level` are false (Benjamini & Hochberg
    1995); "absent" those whose interval lies within ±`negligible`. `tests` is how many pairs might
    have been tested, where some were left out because of what they looked like. `dependent` pairs
    are linked more or less by the levels of others: a mean near zero does not make them absent.
    """
    ranked = sorted(
        (row.p, number)
        for number, (row, known) in enumerate(zip(rows, measured, strict=True))
        if known and row.p is not None
    )
    last, count = 0, tests or len(ranked)
    for rank, (chance, _) in enumerate(ranked, 1):
        if chance <= (1 - level) * rank / count:
            last = rank
    standing = {number for _, number in ranked[:last]}
    found = []
    for number, (row, known) in enumerate(zip(rows, measured, strict=True)):
        if not known:
            verdict = "not measured"
        elif row.low is None or row.high is None:
            verdict = UNKNOWN
        elif (
            -negligible <= row.low
            and row.high <= negligible
            and (row.first, row.second) not in dependent
        ):
            verdict = "absent"
        else:
            verdict = "clear" if number in standing else "uncertain"
        found.append(replace(row, verdict=verdict))
    return found


def check_negligible(value: object) -> float:
    """A strength that is too weak to matter, or an `InputError`."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value <= _MOST_NEGLIGIBLE:  # type: ignore[operator]
        raise InputError(f"negligible must be a number from 0 to 100; got {shown(value)}.")
    return float(value)  # type: ignore[arg-type]


def structural(schema: Schema) -> set[Scope]:
    """Pairs of variables that the schema itself ties together: no noise is in that."""
    rules = [tuple(sorted(schema.index(name) for name, _ in rule)) for rule in schema.forbidden]
    return {rule for rule in rules if len(rule) == 2}


def plain_edge(schema: Schema, scope: Scope, fitted: Table) -> EdgeInterval:
    """From a pair's coordinates in a model: no interval is known."""
    pair = [schema.variables[v] for v in scope]
    signed = all(variable.is_ordered for variable in pair)
    answer = float(strength_of(schema, scope, fitted))
    names = pair[0].name, pair[1].name
    steps = _steps(pair) if signed else 1
    return EdgeInterval(*names, answer, None, None, signed, fitted=answer, steps=steps)


def strength_of(schema: Schema, scope: Scope, values: Table) -> Table:
    """From a pair's coordinates, the last axis of `values`: with a sign where both are ordered.

    It is that among people who answered both.
    """
    pair = [schema.variables[v] for v in scope]
    if any(own < levels for levels, own in map(_sizes, pair)):  # else nothing changes
        values = values @ _answered(*map(_sizes, pair))
    if all(variable.is_ordered for variable in pair):
        return np.asarray(values @ trend(*(len(variable.answers) for variable in pair)))
    return np.asarray(np.linalg.norm(values, axis=-1) / _scale(pair))


def edge_interval(
    plain: EdgeInterval,
    schema: Schema,
    scope: Scope,
    law: tuple[Table, Table],
    level: float,
    degrees: float = math.inf,
    *,
    difference: bool = False,
) -> EdgeInterval:
    """With mean and covariance of a pair's contrasts that are not both of two levels.

    A trend is normal. Without a sign, |m|² is nearly u² times a noncentral χ² number with tr(V)/u²
    degrees of freedom (Satterthwaite 1946), and the interval of its noncentrality is that of the
    strength: it starts at zero where chance alone would do. u² = E[θᵀVθ]/E|θ|² over what θ may be,
    not over m alone: a small m along what is hardly known is no sign of precision. The p-value is
    that of mᵀV⁻¹m, which weighs what is known better; where it rejects, so does the interval.
    Where there is a link, its upper end is no lower than with the count of one cell followed down
    (`_rare_end`), unless the contrasts are a `difference` of two tables.
    Laplace noise has longer tails, those of Student's t with so many `degrees` of freedom.
    """
    from scipy.special import chdtr, chdtrc, chndtrinc, stdtr, stdtrit

    pair = [schema.variables[v] for v in scope]
    kept = _answered(*map(_sizes, pair))
    mean, covariance = law[0] @ kept, kept.T @ law[1] @ kept
    if not mean.size:  # one answer, or none
        return plain
    if plain.signed:
        weights = trend(*(len(variable.answers) for variable in pair))
        spread = math.sqrt(max(1e-300, float(weights @ covariance @ weights)))
        middle, reach = float(weights @ mean), normal_quantile(level) * spread
        chance = erfc(middle / spread)
        if degrees < math.inf:
            unit = spread * math.sqrt(1 - 2 / degrees)
            reach = unit * float(stdtrit(degrees, (1 + level) / 2))
            chance = 2 * float(stdtr(degrees, -abs(middle) / unit))
        ends = middle - reach, middle + reach
        return replace(plain, estimate=middle, low=ends[0], high=ends[1], p=chance)
    values, vectors = np.linalg.eigh(covariance)
    values = np.maximum(values, 1e-12 * max(float(values.max()), 1e-300))
    wald = float(((vectors.T @ mean) ** 2 / values).sum())
    length = max(float(mean @ mean), 1e-300)
    both = length + float(values.sum())
    along = float(mean @ covariance @ mean + (values**2).sum()) / both
    square, size = length / along, float(values.sum()) / along
    tail = (1 - level) / 2

    def least(number: float, degrees: float) -> float:
        known = chdtr(degrees, number) > 1 - tail
        return float(chndtrinc(number, degrees, 1 - tail)) if known else 0.0

    wald = _as_normal(wald, len(mean), degrees)
    low = along * least(_as_normal(square, size, degrees), size)
    low = max(low, float(values[0]) * least(wald, len(mean)))
    high = along * float(chndtrinc(max(square, size), size, tail))  # no shorter than by no edge
    best = min(max(length - float(values.sum()), low), high)
    estimate, low, high = (math.sqrt(max(x, 0.0)) / _scale(pair) for x in (best, low, high))
    if low > 0 and not difference:
        high = max(high, _rare_end(mean, covariance, pair, normal_quantile(level)))
    return replace(plain, estimate=estimate, low=low, high=high, p=float(chdtrc(len(mean), wald)))


def _rare_end(mean: Table, covariance: Table, pair: Sequence[Variable], quantile: float) -> float:
    """The largest strength when the count of one cell is smaller than it looks.

    Sums are linear in counts, and a strength in their logarithms. A count that may be a share t
    smaller is −log(1 − t) smaller as a logarithm, not t: the law of the logarithms is too short on
    this side, by a factor that is used up to `_MOST_DROP`; all else moves along with that cell.
    """
    sizes = [len(variable.answers) for variable in pair]
    rows = np.kron(contrasts(sizes[0]), contrasts(sizes[1]))
    along = rows @ covariance
    spread = np.sqrt(np.maximum((along * rows).sum(axis=1), 1e-300))
    own = math.prod(1 - 1 / size for size in sizes)  # what of a cell's logarithm is interaction
    drop = np.clip(quantile * spread / own, 1e-9, _MOST_DROP)
    far = -np.log1p(-drop) / drop * quantile / spread
    return float(np.linalg.norm(mean - far[:, None] * along, axis=1).max() / _scale(pair))


def _as_normal(square: float, size: float, degrees: float) -> float:
    """What is as rare among χ² numbers as a square is among those of Student's t."""
    from scipy.special import chdtri, fdtrc

    if degrees == math.inf:
        return square
    chance = float(fdtrc(size, degrees, square / size / (1 - 2 / degrees)))
    return min(square, float(chdtri(size, max(chance, 1e-300))))


def student_degrees(noise: float, sampling: Table, laplace: float, shape: tuple[int, int]) -> float:
    """Of a t law with the fourth moment of a pair's contrasts, when Laplace noise is on each cell.

    `noise` is its variance, `sampling` the covariance of the contrasts by sampling. A cell's part s
    of the variance adds 3s² to that of the squared length (Mardia 1970). `laplace` is ½ for tables.
    """
    rows = np.kron(contrasts(shape[0]), contrasts(shape[1]))
    size = rows.shape[1]
    share = noise * np.linalg.inv(noise * np.eye(size) + sampling)
    parts = np.einsum("ci,ij,cj->c", rows, share, rows)
    excess = 3 * (2 * laplace) ** 2 * float((parts**2).sum())
    return 4 + 2 * size * (size + 2) / excess if excess > 1e-9 else math.inf


def null_error(covariance: Table, scope: Scope, shape: Sequence[int]) -> float:
    """The standard error of the best known contrast, in units of a strength."""
    cells = math.prod(shape[v] for v in scope)
    return math.sqrt(max(float(np.linalg.eigvalsh(covariance)[0]), 0.0) / cells)


def _scale(pair: Sequence[Variable]) -> float:
    return math.sqrt(math.prod(len(variable.answers) for variable in pair))


def _steps(pair: Sequence[Variable]) -> int:
    return math.prod(max(len(variable.answers) - 1, 1) for variable in pair)


def _sizes(variable: Variable) -> tuple[int, int]:
    return len(variable.levels), len(variable.answers)


@lru_cache(maxsize=256)
def _answered(first: tuple[int, int], second: tuple[int, int]) -> Table:
    """What takes coordinates of all levels to those of the answers: the first so many levels."""
    parts = [contrasts(levels)[:own].T @ contrasts(own) for levels, own in (first, second)]
    return np.asarray(np.kron(*parts), np.float64)


@lru_cache(maxsize=256)
def trend(first: int, second: int) -> Table:
    """What takes coordinates to the coefficient of u·v, with scores u, v from −1 to 1."""
    parts = []
    for levels in (first, second):
        score = np.linspace(-1, 1, levels)
        parts.append(contrasts(levels).T @ score / (score @ score))
    return np.outer(*parts).ravel()


def _numbers(row: EdgeInterval) -> tuple[float | str | None, ...]:
    """Estimate and ends, for eyes: of a pair that was not measured, they would be noise."""
    return ("", "", "") if row.verdict == VERDICTS[-1] else (row.estimate, row.low, row.high)
