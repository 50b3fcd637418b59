"""Which variables interact, released only if nearly all blocks agree: docs/privacy/structure.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from privfield.checks import check_degree, check_one_of, check_whole
from privfield.data.row_table import Rows
from privfield.data.rows import Variables, open_rows
from privfield.data.table import Table, known_rows, row_key, unit_of
from privfield.errors import InputError
from privfield.mechanisms.forecasting.forecast import Forecast
from privfield.mechanisms.forecasting.study import Study
from privfield.mechanisms.graphs.block_plan import MOST_BLOCKS, RULES, plan_blocks, too_many_edges
from privfield.mechanisms.graphs.finders import LevelStructure, SpinStructure
from privfield.mechanisms.graphs.forecast import forecast_stable, plannable, unplannable
from privfield.mechanisms.graphs.mechanism import StableGraph
from privfield.mechanisms.graphs.release import StructureRelease, named_edges
from privfield.mechanisms.graphs.user_learner import UserFinder
from privfield.mechanisms.graphs.votes import DECIDE, BlockVotes, Decision
from privfield.mechanisms.worlds import people_of, rows_of
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.budgets import ApproxDP
from privfield.privacy.mechanism import Run, World
from privfield.privacy.randomness import Randomness
from privfield.privacy.rounding import exact
from privfield.privacy.stability import CERTAIN
from privfield.privacy.terms import Terms
from privfield.schema import Person, Schema

UserLearner = Callable[[NDArray[Any]], Any]
Built = SpinStructure | LevelStructure


@dataclass(frozen=True, eq=False)
class StableStructure(StableGraph):
    """The graph found in every block of rows, released if nearly all blocks agree on it.

    Edges are interactions of at least `min_weight`; weights near half of that are what makes blocks
    disagree. `rule` is "edge-majority" (each possible edge by itself) or "mode" (the most frequent
    whole graph, which needs far more rows). `blocks` is their number, by default the one that needs
    the fewest rows. `order` above 2 looks for products of so many ±1 variables.

    `learner(rows)` replaces the regressions in each block: it gets an array of ±1, or of codes, and
    returns edges. Where it raises, returns anything else or takes longer than `learner_seconds`,
    the block votes for a graph without edges. It must look at nothing but its rows. Try it on
    made-up rows with `pf.NON_PRIVATE`, where its errors show.
    """

    noun = "stable structure"
    page = "structure.md"
    ways = tuple(("structure", rule) for rule in RULES)

    _: KW_ONLY
    variables: Variables
    schema: Schema | None = None
    min_weight: float | Fraction = 0.2
    rule: str = "edge-majority"
    order: int = 2
    blocks: int | None = None
    learner: UserLearner | None = None
    learner_seconds: float | None = 60.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_min_weight(self.min_weight)
        unit = None if self.schema is None else self.schema.unit
        if unit is not None and unit.rows != 1:
            raise InputError(
                "schema: each person must be in one block only, with one row: say "
                f"pf.Person({unit.column!r}, rows=1); got rows={unit.rows}."
            )
        check_one_of(self.rule, "release", RULES)
        _check_order(self.order, self.variables)
        learner: object = self.learner
        if learner is not None and not callable(learner):
            raise InputError(f"learner must be a function of rows; got {type(learner).__name__}.")
        seconds = self.learner_seconds
        if seconds is not None and exact(seconds, "learner_seconds") <= 0:
            raise InputError(f"learner_seconds must be above 0, or None; got {seconds}.")
        self.parts  # noqa: B018  # refuses a number of blocks that is none

    @cached_property
    def parts(self) -> int:
        """The number of blocks: as asked for, or the one that needs the fewest rows."""
        if self.blocks is not None:
            return check_whole(self.blocks, "blocks", 1, MOST_BLOCKS, other=", or None")
        if not isinstance(self.terms.budget, ApproxDP):
            return 1
        shape = self.variables.shape
        return plan_blocks(shape, self.terms.budget, rule=self.rule, order=self.order).blocks

    @property
    def title(self) -> str:
        """How many variables and blocks."""
        names = self.variables.names
        return f"stable structure of {len(names)} variables from {self.parts} blocks"

    def request(self) -> dict[str, Any]:
        """Variables, what an edge is, and how it is decided."""
        own = self.learner is not None
        return self.stated(
            "structure",
            schema=self.schema,
            names=self.variables.names,
            learner=f"{self.learner!r}".partition(" at 0x")[0] if own else None,
            learner_seconds=str(self.learner_seconds) if own else None,
            min_weight=str(check_min_weight(self.min_weight)),
            order=int(self.order),
            rule=self.rule,
            blocks=self.parts,
        )

    def open(self, data: Any) -> Run[StructureRelease]:
        """Read all rows, let the blocks vote, and let the graph out or not."""
        terms, names, private = self.terms, self.variables.names, self.terms.is_private
        count = known_rows(data) if terms.rows_are_public else None
        if private and count is not None and count < self.parts:
            raise InputError(
                f"data has {count:,} rows, too few for {self.parts} blocks. A stable release needs "
                "many rows in each block: see privfield.mechanisms.graphs.block_plan.plan_blocks, "
                "or select edges instead with pf.MarginalLearner(budget, cliques='learn')."
            )
        table = open_rows(data, self.schema, self.variables)
        built = self._built()

        def run(randomness: Randomness) -> StructureRelease:
            terms.tell("reading")
            key = row_key(self.schema, randomness)
            decide = self._vote if private else self._learn
            chosen = self.let_out(randomness, decide(table, key, built, randomness))
            edges = None if chosen is None else [built.candidates[n] for n in chosen]
            return StructureRelease(
                names,
                None if edges is None else named_edges(names, edges),
                "regression" if self.learner is None else "learner",
                self.rule if private else "none",
                self.cost,
                terms.adjacency,
                self.parts if private else None,
                terms.stamp,
            )

        return run

    def _built(self) -> Built:
        """Our own learner, which also numbers the possible edges."""
        weight = float(check_min_weight(self.min_weight))
        if self.variables.binary:
            return SpinStructure(len(self.variables.names), int(self.order), weight)
        return LevelStructure(self.variables.shape, weight)

    def _vote(self, table: Table, key: int, built: Built, randomness: Randomness) -> Decision:
        """All votes, and what they decide."""
        coins, size = randomness.coins(), len(built.candidates)
        finder = built if self.learner is None else self._user(built)
        seeds = None if self.learner is None else randomness.coins()
        task = BlockVotes(finder, self.variables, self.parts, size, seeds)
        votes = table.by_blocks(task, coins, self.parts, key, self.terms)
        return DECIDE[self.rule](task.all(votes), self.parts, size)

    def _learn(self, table: Table, key: int, built: Built, randomness: Randomness) -> Decision:
        """From all rows, without privacy: errors of a user's learner show."""
        self.terms.tell("learning")
        finder = built if self.learner is None else self._user(built).vote
        task = BlockVotes(finder, self.variables, 1, len(built.candidates), silent=False)
        (vote,) = task.all(table.by_blocks(task, randomness.coins(), 1, key))
        return Decision(vote, CERTAIN)

    def _user(self, built: Built) -> UserFinder:
        assert self.learner is not None
        limit = None if self.learner_seconds is None else float(self.learner_seconds)
        return UserFinder(self.learner, self.variables.names, built.candidates, limit)

    @classmethod
    def forecast(cls, study: Study, way: str) -> Forecast:
        """Of the chance that the right graph comes out."""
        if unplannable(study) or not isinstance(study.budget, ApproxDP):
            return forecast_stable(study, way)
        own = cls(
            replace(study.terms, budget=plannable(study.budget)),
            variables=Variables(study.rules.names, study.shape),
            schema=study.rules if study.named else None,
            min_weight=study.weakest,
            rule=way,
        )
        return forecast_stable(study, way, own.parts)

    @classmethod
    def worlds(cls, terms: Terms) -> Iterator[World]:
        """Blocks of a few rows, each of which can change its block's vote."""
        none, all_ = (0, 0, 0), (1, 1, 1)
        rows = [none, (0, 1, 1), (1, 1, 0), all_]
        people: list[Any] = [(none,), (all_, none), ((0, 1, 1), all_)]
        mixed = [(1, 0, 0)] * 2 + [(0, 1, 1)] * 2 + [all_] * 6
        starts = [[all_] * 10, [none] * 3 + [all_] * 6, mixed]
        if terms.adjacency is Adjacency.ADD_REMOVE:  # of few neighbours each: more of them
            starts += [[none] * many + [all_] * 12 for many in range(1, 4)]
        for rule in RULES:
            for unit in (None, Person("id", rows=1)):
                schema = Schema({"a": 2, "b": 2, "c": 2}, unit=unit)
                mechanism = cls(
                    replace(terms, unit=unit_of(schema)),
                    variables=Variables(schema.names, schema.shape),
                    schema=schema,
                    rule=rule,
                    blocks=5,
                    learner=_all_agree,
                )
                yield World(
                    mechanism,
                    rows if unit is None else people,
                    rows_of(3) if unit is None else people_of(schema.names),
                    starts if unit is None else [[(row,) for row in start] for start in starts],
                    f"{rule}, {'rows' if unit is None else 'people'}",
                    seldom=True,
                )


def _all_agree(rows: Rows) -> list[tuple[int, int]]:
    """For small worlds: an edge for each variable that is + in every row of the block."""
    edges = ((0, 1), (0, 2), (1, 2))
    return [edge for edge, yes in zip(edges, rows.min(axis=0) > 0, strict=True) if yes]


def check_min_weight(min_weight: object) -> Fraction:
    """The least size of an interaction that counts as an edge."""
    weight = exact(min_weight, "min_weight")
    if not Fraction(1, 10**6) <= weight <= 100:
        raise InputError(f"min_weight must lie between 1e-6 and 100; got {min_weight}.")
    return weight


def _check_order(order: object, variables: Variables) -> None:
    p = len(variables.names)
    degree = check_degree(order, p, 2)
    if degree > 2 and not variables.binary:
        raise InputError(f"order={degree} is for variables with two levels only; use order=2.")
    if too_many_edges(variables.shape, degree):
        raise InputError(
            f"data: {p:,} variables with order={degree} have too many possible edges; use fewer "
            "variables, coarser levels or a smaller order."
        )
