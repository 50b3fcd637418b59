"""Forecasts for a stable graph and the tables of its edges in one budget."""

from __future__ import annotations

from dataclasses import replace

from privfield.mechanisms.edges.forecast import Search, reference_edges, searched
from privfield.mechanisms.forecasting.calls import learner_call
from privfield.mechanisms.forecasting.forecast import Answers, Forecast, refused
from privfield.mechanisms.forecasting.study import Study
from privfield.mechanisms.graphs.block_plan import BlockPlan
from privfield.mechanisms.tables.forecast import interaction_noise
from privfield.mechanisms.tables.mechanism import planned
from privfield.words import share_text

_LIKELY = 0.9  # a chance of release that is worth counting on
_LEAST = 0.5  # below, blocks may well agree on a graph that lacks edges


def stable_call(study: Study) -> str:
    """The learner, to paste."""
    return learner_call(
        study,
        "MarginalLearner",
        cliques="learn",
        structure="stable",
        min_weight=study.weakest,
    )


def forecast_stable_tables(rest: Study, votes: BlockPlan, selection: Forecast) -> Forecast:
    """The right graph comes out with the chance of the `votes`, and its tables are measured with
    the `rest` of the budget; otherwise edges are selected with that rest, as in `selection`."""
    assert votes.chance is not None
    chance = votes.chance
    if chance < _LEAST:
        note = (
            f"the right graph comes out with a chance of {share_text(chance)}; one that lacks "
            "edges may come out instead"
        )
        return refused("stable", stable_call(rest), "cell of a table", note)
    ring = reference_edges(rest.shape)
    inside = {v for pair in ring for v in pair}
    alone = [(v,) for v in range(rest.variables) if v not in inside]
    design = planned(replace(rest, listed=(*ring, *alone), base=None))
    noise = interaction_noise(design.parts, rest.shape)
    known = Search(dict.fromkeys(ring, 1.0), {s: v / rest.grid**2 for s, v in noise.items()})
    found = searched(rest, known, "stable", stable_call(rest), "")

    def mixed(one: float | None, other: float | None) -> float | None:
        return None if one is None or other is None else chance * one + (1 - chance) * other

    return replace(
        found,
        expected_error=mixed(found.expected_error, selection.expected_error),
        largest_error=mixed(found.largest_error, selection.largest_error),
        plain_error=mixed(found.plain_error, selection.plain_error),
        found=mixed(found.found, selection.found),
        blocks=votes.blocks,
        success=chance,
        passes=2,
        seconds=found.seconds + 1.0 + 2e-9 * rest.n * rest.variables**2,
        answers=Answers.GRAPH if chance >= _LIKELY else Answers.SOME_PAIRS,
        asks="" if rest.min_weight is not None else "min_weight",
        note=f"the graph by votes of {votes.blocks:,} blocks, with a chance of {chance:.0%}, or "
        "edges are selected",
    )
