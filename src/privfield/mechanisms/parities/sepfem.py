"""Parity queries by a perturbed leader (FEM, sepFEM): docs/privacy/parities-sepfem.md."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.checks import check_whole_or_none, is_word, shown
from privfield.errors import InputError
from privfield.mechanisms.parities.answers import Method, ParityAnswers, count_sets
from privfield.mechanisms.parities.base import ParityRounds, ParitySums, small_signs
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.laws import Choice
from privfield.privacy.mechanism import World
from privfield.privacy.randomness import Randomness
from privfield.privacy.rounding import exact
from privfield.privacy.selection import selection_scale_zcdp
from privfield.privacy.terms import Terms
from privfield.solvers.parity_oracle.oracle import choose_oracle, maximise_each

# measured: docs/privacy/parities-sepfem.md, accuracy
_SAMPLES = 100  # states that stand for the distribution of a round
_WINDOW = 8  # rounds whose states are scored together
_PERTURBATION = 0.5  # times √rounds, in units of one chosen query,
_LEAST_PERTURBATION = 3.0  # but not less
_WARMING = 5  # one round in so many, the first ones, is no part of the answers
_ROUNDS_FACTOR = 0.3
_MOST_ROUNDS = 2000  # at p = 10, fewer beyond, but 1,000 at least: up to about a minute
_MOST_CHOICES = 64  # parities of a round, where there may be no more rounds

MOST_SAMPLES = 10_000
MOST_WINDOW = 100
MOST_CHOICES = 1000
_MOST_PERTURBATION = 10**6
_MOST_SCORE = 1 << 61  # beyond it a score could leave int64, wrap around, and protect nobody


@dataclass(frozen=True, eq=False)
class PerturbedLeader(ParityRounds):
    """A game between badly answered parities and states that answer them.

    Each round chooses, by the exponential mechanism, a parity or its negative whose sum is far
    above what the states of the last `window` rounds say, adds it to the objective, and draws
    `samples` states that maximise the objective plus random linear terms of the scale
    `perturbation`: two-sided (Laplace) for "sepfem", one-sided (exponential) for "fem". With
    `choices` above 1 it chooses one parity in each of so many random groups. Answers are the mean
    over the states of all rounds but the first fifth. The promise holds whatever the oracle finds.
    Vietri, Tian, Bun, Steinke & Wu 2020.
    """

    noun = "parities by a perturbed leader"
    page = "parities-sepfem.md"

    _: KW_ONLY
    variant: str = "sepfem"
    choices: int | None = None
    samples: int | None = None
    window: int | None = None
    perturbation: float | None = None
    oracle: str = "auto"

    def __post_init__(self) -> None:
        if not is_word(self.variant, ("sepfem", "fem")):
            raise InputError(f"variant must be 'sepfem' or 'fem'; got {self.variant!r}.")
        super().__post_init__()
        choices = check_whole_or_none(self.choices, "choices", 1, MOST_CHOICES)
        object.__setattr__(self, "choices", choices)
        samples = check_whole_or_none(self.samples, "samples", 1, MOST_SAMPLES)
        object.__setattr__(self, "samples", samples)
        window = check_whole_or_none(self.window, "window", 1, MOST_WINDOW)
        object.__setattr__(self, "window", window)
        object.__setattr__(self, "perturbation", check_perturbation(self.perturbation))
        choose_oracle(self.oracle, self.variables)
        # of a declared number, if it counts
        largest = self.public_rows(0) * self.states * self.rounds_seen
        if largest > _MOST_SCORE:
            raise InputError(
                f"declared_rows times samples times window must be at most {_MOST_SCORE:.1e}; got "
                f"{largest:.1e}."
            )

    @property
    def method(self) -> Method:
        """Its name among the methods."""
        return "fem" if self.variant == "fem" else "sepfem"

    @property
    def states(self) -> int:
        """How many are drawn in a round."""
        return self.samples or _SAMPLES

    @property
    def rounds_seen(self) -> int:
        """How many rounds' states parities are scored against."""
        return self.window or _WINDOW

    def turns(self, rows: int) -> int:
        """How many rounds there are for that public number of rows."""
        return self.rounds or self._defaults(rows)[0]

    def each_turn(self, rows: int) -> int:
        """How many parities a round chooses; one where rounds are given and choices are not."""
        most = count_sets(self.variables, self.order)
        usual = self._defaults(rows)[1] if self.rounds is None else 1
        return min(self.choices or usual, most)

    def _defaults(self, rows: int) -> tuple[int, int]:
        public = (self.variables, self.order, rows, self.row_rho, self.terms.adjacency)
        return default_rounds(*public)

    @property
    def settings(self) -> dict[str, Any]:
        """With what the oracle is told."""
        return {
            **super().settings,
            "choices": self.choices,
            "samples": self.samples,
            "window": self.window,
            "perturbation": self.perturbation,
            "oracle": self.oracle,
        }

    def _answer(
        self, counts: NDArray[np.int64], rows: int, randomness: Randomness
    ) -> ParityAnswers:
        adjacency, sets, draws = self.terms.adjacency, len(counts), self.states
        divisor = self.public_rows(rows)
        oracle = choose_oracle(self.oracle, self.variables)
        turns, each = self.turns(divisor), self.each_turn(divisor)
        spread = self.perturbation or default_perturbation(turns * each)
        rng = np.random.default_rng(randomness.public_seed())
        sums = ParitySums(self.variables, self.order)
        objective = np.zeros(sets)
        recent: deque[NDArray[np.int64]] = deque(maxlen=self.rounds_seen)
        total = np.zeros(sets, np.int64)
        for turn in range(turns):
            # scores are `seen` times as large as the sums, so that all are whole numbers
            seen = max(1, draws * len(recent))  # no states yet: the uniform distribution
            scores = signed_scores(counts, sum(recent, np.zeros(sets, np.int64)), divisor, seen)
            rho = self.row_rho / (turns * each)
            scale = selection_scale_zcdp(seen * range_sensitivity(adjacency), rho)
            groups = random_groups(sets, each, rng)
            chosen = randomness.draw("which parity", Choice((scale,) * each), scores[groups])
            signed = groups[np.arange(each), chosen]
            np.add.at(objective, signed % sets, np.where(signed < sets, 1, -1))
            found = maximise_each(
                *(objective, self._perturbations(spread, rng), self.variables, self.order),
                method=oracle,
                rng=rng,
            )
            recent.append(sums.of([found.x])[0])
            if turn >= turns // _WARMING:
                total += recent[-1]
            self.terms.tell("choosing parities", turn + 1)
        about = {
            "rounds": turns,
            "choices": each,
            "samples": draws,
            "window": self.rounds_seen,
            "oracle": oracle,
            "oracle_proved": oracle != "tabu",
            "perturbation": "laplace" if self.variant == "sepfem" else "exponential",
            "perturbation_scale": spread,
        }
        used = draws * (turns - turns // _WARMING)
        return self._released(total / used, divisor, rows, about=about)

    def _perturbations(self, scale: float, rng: np.random.Generator) -> NDArray[np.float64]:
        shape = (self.states, self.variables)
        if self.variant == "fem":
            return rng.exponential(scale, shape)
        return rng.laplace(0, scale, shape)

    @classmethod
    def worlds(cls, terms: Terms) -> Iterator[World]:
        """Two variables, three rounds; three variables, two choices, one-sided perturbations."""
        for variables, rounds, choices, variant in ((2, 3, 1, "sepfem"), (3, 2, 2, "fem")):
            for here, schema, units, build, name in small_signs(terms, variables):
                mechanism = cls(
                    here,
                    names=schema.names,
                    order=2,
                    schema=schema,
                    rounds=rounds,
                    choices=choices,
                    declared_rows=3,
                    variant=variant,
                    samples=3,
                )
                yield World(mechanism, units, build, [units[:2], units[-2:]], f"{variant}, {name}")


def signed_scores(
    counts: NDArray[np.int64], drawn: NDArray[np.int64], rows: int, draws: int
) -> NDArray[np.int64]:
    """How far each parity, then each negative of one, is above what so many drawn states say.

    In units of 1/`draws` of a row: draws · Σ_rows χ − rows · Σ_states χ, a whole number.
    """
    above = draws * counts - rows * drawn
    return np.concatenate([above, -above])


def random_groups(sets: int, number: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Places of signed scores, in so many groups of equal size, one per row: public.

    A parity and its negative are in the same group; some are in two where the number does not
    divide them.
    """
    size = -(-sets // number)
    groups = np.resize(rng.permutation(sets), (number, size))
    return np.concatenate([groups, groups + sets], axis=1)


def range_sensitivity(adjacency: Adjacency) -> int:
    """The range by which one row moves the signed sums ±Σ χ.

    A row added moves one sum of a pair up by 1 and the other down by 1; a row replaced by 2.
    """
    return 2 if adjacency is Adjacency.ADD_REMOVE else 4


def check_perturbation(scale: object) -> float | None:
    """The scale of the linear terms, in units of one chosen query."""
    if scale is None:
        return None
    number = exact(scale, "perturbation")
    if not 0 < number <= _MOST_PERTURBATION:
        raise InputError(f"perturbation must be above 0 and at most 1,000,000; got {shown(scale)}.")
    return float(number)


def default_perturbation(choices: int) -> float:
    """0.5 · √choices of all rounds, at least 3: how far steps of 1 get the objective by chance."""
    return max(_LEAST_PERTURBATION, _PERTURBATION * math.sqrt(choices))


def default_rounds(
    variables: int, order: int, rows: int, rho: Fraction, adjacency: Adjacency
) -> tuple[int, int]:
    """Rounds and choices of each: together 0.3 · (n √ρ / ln(2 · parities))^{3/2}.

    n counts twice under add-remove. At least one round; for time, at most 2000 up to p = 10, then
    200,000/p², then 1000. Where more would be wanted, a round makes up to 64 choices.
    """
    signal = rows * math.sqrt(rho) * 4 / range_sensitivity(adjacency)
    most = max(1000, _MOST_ROUNDS * min(1, 100 / variables**2))
    wanted = _ROUNDS_FACTOR * (signal / math.log(2 * count_sets(variables, order))) ** 1.5
    return int(min(max(wanted, 1), most)), int(min(max(wanted / most, 1), _MOST_CHOICES))
