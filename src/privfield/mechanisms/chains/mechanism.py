"""Noisy first states and transitions of people who move: docs/privacy/chains.md."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.data.sequences.read import COLUMNS, Sequences, SequenceSource, StateSet
from privfield.errors import InputError
from privfield.mechanisms.chains.measurements import ChainMeasurements
from privfield.privacy.adjacency import Adjacency, Sensitivity
from privfield.privacy.budgets import ApproxDP, Budget, NonPrivate, PureDP, check_budget
from privfield.privacy.ledger import Ledger
from privfield.privacy.mechanism import release
from privfield.privacy.noise import NoiseLaw, add_noise, check_noise, check_seed, choose_noise
from privfield.privacy.released import stamp_of
from privfield.privacy.rounding import Number, exact
from privfield.progress import Progress, ProgressCallback

GRID = 2**20  # grid steps of a whole transition
DEFAULT_LIMIT = 4
MOST = 65_536  # the largest limit: sums stay far from the end of 64 bits


@dataclass(frozen=True)
class Weights:
    """What one unit may weigh, in whole grid steps: public, and all that privacy rests on.

    With K transitions and S segments, each transition weighs min(`whole`, ⌊`most` / K⌋) and each
    first state ⌊`start` / S⌋: together at most `most` and at most `start`.
    """

    whole: int
    most: int
    start: int

    def sensitivity(self, adjacency: Adjacency) -> Sensitivity:
        """Of both tables together: docs/privacy/chains.md."""
        units = 1 if adjacency is Adjacency.ADD_REMOVE else 2
        return Sensitivity(units * (self.most + self.start), units * (self.most**2 + self.start**2))


def measure_chain(
    sequences: Any,
    states: StateSet,
    budget: Budget | NonPrivate,
    limit: Number = DEFAULT_LIMIT,
    adjacency: str = "replace-one",
    *,
    people: Any = None,
    columns: tuple[str, str | None, str] = COLUMNS,
    unit: str = "person",
    noise: str = "auto",
    ledger: Ledger | None = None,
    job: str | None = None,
    insecure_seed: int | None = None,
    progress: ProgressCallback | None = None,
) -> ChainMeasurements:
    """Count first states and transitions, at most `limit` transitions a person, and add noise.

    The whole result is `budget`-private for one unit (all sequences of one id) under `adjacency`.
    Ledger, job and seed are as in `pf.measure`. Values never raise; gaps end a segment.
    """
    spend = check_budget(budget)
    neighbours = check_adjacency(adjacency)
    bound = check_limit(limit)
    check_columns(columns)
    if not isinstance(unit, str) or not unit.strip():
        raise InputError(f"unit must be non-empty text, such as 'person-day'; got {unit!r}.")
    if insecure_seed is not None:
        check_seed(insecure_seed)
    if progress is not None and not callable(progress):
        raise InputError(f"progress must be a function; got {type(progress).__name__}.")
    weights, law, cost = design(spend, neighbours, bound, len(states.names), noise)

    def prepare() -> Callable[[], bytes]:
        source = SequenceSource(states, sequences, people, columns)

        def run() -> bytes:
            _tell(progress, "reading")
            found = source.read()
            _tell(progress, "counting")
            tables = count_chain(found, len(states.names), weights)
            _tell(progress, "adding noise")
            if law.name != "none":
                tables = add_noise(tables, law, insecure_seed)
            initial, transitions = np.split(tables, [len(states.names)])
            return ChainMeasurements(
                states.names,
                initial / weights.start,
                transitions.reshape(len(initial), -1) / weights.whole,
                law.name,
                law.scale / weights.start,
                law.scale / weights.whole,
                1 / weights.start,
                1 / weights.whole,
                float(bound),
                cost,
                neighbours,
                unit,
                stamp_of(spend, insecure_seed),
            ).to_bytes()

        return run

    request = {
        "what": "chain",
        "states": asdict(states.variable),
        "rule": [list(states.rule.levels), states.rule.missing, states.rule.unknown],
        "weights": asdict(weights),
        "noise": [law.name, law.scale],
        "adjacency": str(neighbours),
        "insecure": insecure_seed is not None,
    }
    released = release(
        prepare,
        what=f"a chain of {len(states.names)} states with {law.name} noise",
        cost=cost,
        budget=spend,
        adjacency=neighbours,
        unit=unit,
        request=request,
        ledger=ledger,
        job=job,
    )
    return ChainMeasurements.from_bytes(released)


def design(
    budget: Budget | NonPrivate, adjacency: Adjacency, limit: Fraction, states: int, noise: str
) -> tuple[Weights, NoiseLaw, Budget | NonPrivate]:
    """Weights, noise law and cost from public arguments alone.

    How the budget is split between the tables, and which law is better: docs/privacy/chains.md.
    """
    kind = check_noise(noise)
    if isinstance(budget, NonPrivate):
        return _weights(limit, 1.0), NoiseLaw("none", 0.0), budget
    ratio = float(limit) / states
    shares = {"laplace": ratio ** (2 / 3), "gaussian": float(limit) ** 0.75 / states**0.5}
    pure = isinstance(budget, PureDP) or (isinstance(budget, ApproxDP) and not budget.exact_delta)
    options = [kind] if kind != "auto" else ["laplace"] if pure else ["laplace", "gaussian"]
    found = []
    for option in options:
        weights = _weights(limit, shares[option])
        law, cost = choose_noise(budget, weights.sensitivity(adjacency), option)
        first, step = law.deviation / weights.start, law.deviation / weights.whole
        loss = first**2 + step**2 * states**2 / float(limit)
        found.append((loss, weights, law, cost))
    _, weights, law, cost = min(found, key=lambda each: each[0])
    return weights, law, cost


def _weights(limit: Fraction, start: float) -> Weights:
    """Of a first state `start` transitions, rounded to 1/64 so that every machine agrees."""
    steps = max(1, round(64 * start)) * (GRID // 64)
    return Weights(GRID, int(limit * GRID), steps)


def count_chain(found: Sequences, states: int, weights: Weights) -> NDArray[np.int64]:
    """First states, then transitions row by row, in whole grid steps."""
    from privfield.data.sequences.kernels import add_people

    initial = np.zeros(states, np.int64)
    transitions = np.zeros((states, states), np.int64)
    for first, last in found.people():
        add_people(
            *(found.codes, found.offsets, found.owners, first, last),
            *(weights.whole, weights.most, weights.start, initial, transitions),
        )
    return np.concatenate([initial, transitions.ravel()])


def check_limit(limit: object) -> Fraction:
    """The most transitions that count of one unit, or an `InputError`."""
    number = exact(limit, "limit")
    if not 1 <= number <= MOST:
        raise InputError(f"limit must lie between 1 and {MOST:,}; got {limit}.")
    return number


def check_adjacency(adjacency: object) -> Adjacency:
    """Replace-one or add-remove, or an `InputError`."""
    found = Adjacency.parse(adjacency)
    if found is Adjacency.FLIP_OUTCOME:
        raise InputError(
            "adjacency must be 'replace-one' or 'add-remove' for chains; got 'flip-outcome'."
        )
    return found


def check_columns(columns: object) -> None:
    """Names of the columns of person, sequence (or None) and state, or an `InputError`."""
    names = list(columns) if isinstance(columns, tuple | list) else []
    if len(names) != 3 or not all(
        isinstance(name, str) or (name is None and place == 1) for place, name in enumerate(names)
    ):
        raise InputError(
            "columns must name the columns of person, sequence and state, in this order; the "
            f"second may be None. Got {columns!r}."
        )


def _tell(progress: ProgressCallback | None, stage: str) -> None:
    """How much is done is never said: how many states people have is private."""
    if progress is not None:
        progress(Progress(stage))
