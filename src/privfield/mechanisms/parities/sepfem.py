"""Parity queries by a perturbed leader (FEM, sepFEM): docs/privacy/parities-sepfem.md."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.checks import check_whole_or_none
from privfield.errors import InputError
from privfield.mechanisms.parities.answers import Method, ParityAnswers, count_sets
from privfield.mechanisms.parities.base import ParityRounds, ParitySums, small_signs
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.laws import Choice
from privfield.privacy.mechanism import World
from privfield.privacy.randomness import Randomness
from privfield.privacy.selection import selection_scale_zcdp
from privfield.privacy.terms import Terms
from privfield.solvers.parity_oracle.oracle import choose_oracle, maximise_each

# measured: docs/privacy/parities-sepfem.md, accuracy
_SAMPLES = 100  # states that stand for the distribution of a round
_PERTURBATION = 3.0  # in units of one chosen query
_ROUNDS_FACTOR = 0.1
_MOST_ROUNDS = 1000

MOST_SAMPLES = 10_000
_MOST_SCORE = 1 << 61  # beyond it a score could leave int64, wrap around, and protect nobody


@dataclass(frozen=True, eq=False)
class PerturbedLeader(ParityRounds):
    """A game between badly answered parities and states that answer them.

    Each round chooses, by the exponential mechanism, a parity or its negative whose sum is far
    above what the last round's states say, adds it to the objective, and draws `samples` states
    that maximise the objective plus random linear terms: two-sided (Laplace) for "sepfem",
    one-sided (exponential) for "fem". Answers are the mean over all rounds' states. The promise
    holds whatever the oracle finds. Vietri, Tian, Bun, Steinke & Wu 2020.
    """

    noun = "parities by a perturbed leader"
    page = "parities-sepfem.md"

    _: KW_ONLY
    variant: str = "sepfem"
    samples: int | None = None
    oracle: str = "auto"

    def __post_init__(self) -> None:
        if self.variant not in ("sepfem", "fem"):
            raise InputError(f"variant must be 'sepfem' or 'fem'; got {self.variant!r}.")
        super().__post_init__()
        samples = check_whole_or_none(self.samples, "samples", 1, MOST_SAMPLES)
        object.__setattr__(self, "samples", samples)
        choose_oracle(self.oracle, self.variables)
        largest = self.public_rows(0) * self.states  # of a declared number, if it counts
        if largest > _MOST_SCORE:
            raise InputError(
                f"declared_rows times samples must be at most {_MOST_SCORE:.1e}; got {largest:.1e}."
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
    def settings(self) -> dict[str, Any]:
        """With what the oracle is told."""
        return {**super().settings, "samples": self.samples, "oracle": self.oracle}

    def _answer(
        self, counts: NDArray[np.int64], rows: int, randomness: Randomness
    ) -> ParityAnswers:
        adjacency, sets, draws = self.terms.adjacency, len(counts), self.states
        divisor = self.public_rows(rows)
        oracle = choose_oracle(self.oracle, self.variables)
        turns = self.rounds or default_rounds(
            self.variables, self.order, divisor, self.row_rho, adjacency
        )
        # scores are `draws` times as large as the sums, so that all are whole numbers
        scale = selection_scale_zcdp(draws * range_sensitivity(adjacency), self.row_rho / turns)
        select, rng = Choice((scale,)), np.random.default_rng(randomness.public_seed())
        sums = ParitySums(self.variables, self.order)
        objective = np.zeros(sets)
        drawn = np.zeros(sets, np.int64)  # of `draws` states; none yet: the uniform distribution
        total = np.zeros(sets, np.int64)
        for turn in range(turns):
            scores = signed_scores(counts, drawn, divisor, draws)
            chosen = int(randomness.draw("which parity", select, scores)[0])
            objective[chosen % sets] += 1 if chosen < sets else -1
            found = maximise_each(
                *(objective, self._perturbations(rng), self.variables, self.order),
                method=oracle,
                rng=rng,
            )
            drawn = sums.of([found.x])[0]
            total += drawn
            self.terms.tell("choosing parities", turn + 1)
        about = {
            "rounds": turns,
            "samples": draws,
            "oracle": oracle,
            "oracle_proved": oracle != "tabu",
            "perturbation": "laplace" if self.variant == "sepfem" else "exponential",
            "perturbation_scale": _PERTURBATION,
        }
        return self._released(total / (draws * turns), divisor, rows, about=about)

    def _perturbations(self, rng: np.random.Generator) -> NDArray[np.float64]:
        shape = (self.states, self.variables)
        if self.variant == "fem":
            return rng.exponential(_PERTURBATION, shape)
        return rng.laplace(0, _PERTURBATION, shape)

    @classmethod
    def worlds(cls, terms: Terms) -> Iterator[World]:
        """Two variables, three rounds; three variables, two rounds, one-sided perturbations."""
        for variables, rounds, variant in ((2, 3, "sepfem"), (3, 2, "fem")):
            for here, schema, units, build, name in small_signs(terms, variables):
                mechanism = cls(
                    here,
                    names=schema.names,
                    order=2,
                    schema=schema,
                    rounds=rounds,
                    declared_rows=3,
                    variant=variant,
                    samples=3,
                )
                yield World(mechanism, units, build, [units[:2], units[-2:]], f"{variant}, {name}")


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
    return 2 if adjacency is Adjacency.ADD_REMOVE else 4


def default_rounds(
    variables: int, order: int, rows: int, rho: Fraction, adjacency: Adjacency
) -> int:
    """0.1 · p^{5/4} · n √ρ / ln(2 · parities), twice as many under add-remove; from 1 to 1000."""
    signal = rows * math.sqrt(rho) * 4 / range_sensitivity(adjacency)
    wanted = _ROUNDS_FACTOR * variables**1.25 * signal / math.log(2 * count_sets(variables, order))
    return int(min(max(wanted, 1), _MOST_ROUNDS))
