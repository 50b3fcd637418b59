"""Gaps: totals of pairs, simulated gaps, and models of those who answered."""

from dataclasses import replace

import numpy as np
import pytest

import privfield as pf
from privfield.algebra.contrasts import centre
from privfield.estimation.items.gaps import answered_by, pair_rates
from privfield.estimation.tables.interactions import among_answered, interactions
from privfield.estimation.uncertainty.coordinates import coordinates
from privfield.estimation.uncertainty.strengths import strength_of
from privfield.inference.sampling.ordinal import OrdinalChains
from privfield.mechanisms.items.mechanism import ItemScores
from privfield.reporting.utility import utility

P, LEVELS = 4, 4
NAMES = [f"x{i}" for i in range(P)]
SCALES = {name: pf.Ordered(range(LEVELS)) for name in NAMES}
GAPS = pf.Schema(SCALES, gaps=dict.fromkeys(NAMES[:3], "no answer"))  # the last has none
CHAIN = np.diag([0.8, -0.8, 0.5], 1) + np.diag([0.8, -0.8, 0.5], -1)


def people(count):
    score = np.linspace(-1, 1, LEVELS)
    truth = pf.OrdinalModel(pf.Schema(SCALES), CHAIN, [-0.4 * score - score**2] * P)
    chains = OrdinalChains(truth.scores, count, np.random.default_rng())
    chains.sweep(truth.weights, truth.thresholds, 60)
    return chains.codes.T.astype(np.uint8)


def with_gaps(rows):
    """Half of the people leave out 40% of their answers, the others none."""
    rng = np.random.default_rng()
    gone = (rng.random(rows.shape) < 0.4) & (rng.random(len(rows)) < 0.5)[:, None]
    gone[:, 3] = False
    return np.where(gone, LEVELS, rows).astype(np.uint8)


def test_rates_of_pairs_and_simulated_gaps():
    """Without noise rates are exact; simulated ones err by 0.5/√20,000 = 0.0035 at most, and by
    what the normal numbers' correlations miss."""
    rows = with_gaps(people(20_000))
    answered = (rows < LEVELS).astype(float)
    exact = answered.T @ answered / len(rows)
    assert exact[0, 1] > 0.67 > 0.64  # 0.7, where independent gaps would have 0.64
    sums = ItemScores.measure(rows, pf.NON_PRIVATE, schema=GAPS)
    assert np.allclose(pair_rates(sums), exact)
    shown = answered_by(sums, 20_000, np.random.default_rng()).astype(float)
    assert np.abs(shown.T @ shown / 20_000 - exact).max() < 0.03
    assert (shown[:, 3] == 1).all()
    again = type(sums).from_bytes(sums.to_bytes())
    assert (again.together == sums.together).all() and (again.gaps == sums.gaps).all()


def test_noise_shrinks_the_rates_of_pairs_towards_what_all_have_in_common():
    """Totals of 1,000 people with noise of thousands say nothing; they stay rates."""
    sums = ItemScores.measure(with_gaps(people(1_000)), pf.ZCDP(1e-6), schema=GAPS)
    found = pair_rates(sums)
    own = found.diagonal()
    assert (found <= np.minimum(own[:, None], own) + 1e-12).all() and (found > 0).all()


def test_few_who_answered_both_are_known_by_their_own_total():
    """60 of 2,000; by how many answered each, off by 25 from noise, there would be 110."""
    rows = people(2_000)
    rows[:970, 0] = rows[970:1940, 1] = LEVELS
    sums = ItemScores.measure(rows, pf.ApproxDP(3, 1e-6), schema=GAPS)
    assert sums.laws[0].deviation > 12
    exact = ItemScores.measure(rows, pf.NON_PRIVATE, schema=GAPS)
    noisy = replace(sums, gaps=exact.gaps - np.array([25, 25, 0, 0]), together=exact.together)
    assert abs(pair_rates(noisy)[0, 1] * 2_000 - 60) < 5


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_links_and_shares_are_those_of_people_who_answered(adjacency, tmp_path):
    """Standard errors of about 0.05: ±0.4 are eight of them. Shares err by 0.005."""
    rows = with_gaps(people(20_000))
    learner = pf.OrdinalLearner(pf.ZCDP(2), schema=GAPS, adjacency=adjacency).fit(rows)
    model = learner.model_
    assert model.schema == GAPS.answered() and np.abs(model.weights - CHAIN).max() < 0.4
    assert any("those who answered" in note for note in model.card.notes)
    share = np.mean(rows[rows[:, 0] < LEVELS, 0] == 1)
    answer = model.ask("P(x0=1)")
    assert abs(answer.estimate - share) < 0.04 and answer.low < answer.estimate < answer.high
    synthetic = model.sample(5_000, np.random.default_rng(), "independent")
    assert max(each.to_released for each in utility(model, synthetic).of(1)) < 0.1
    model.save(tmp_path / "m.pf")
    pf.write_report(pf.load(tmp_path / "m.pf"), tmp_path / "r.html")
    assert "those who answered" in (tmp_path / "r.html").read_text()


def test_gaps_read_as_the_first_level_are_another_matter():
    """What the page on gaps shows: the link of x1 and x2 loses a third of its strength."""
    rows = with_gaps(people(20_000))
    first = pf.Schema(SCALES)
    with pytest.warns(UserWarning, match="farther from the released scores than noise explains"):
        model = pf.OrdinalLearner(pf.NON_PRIVATE, schema=first).fit(
            np.where(rows < LEVELS, rows, 0)
        )
    assert abs(model.weights_[1, 2]) < 0.75 * 0.8


def test_nobody_answered():
    rows = np.full((50, P), LEVELS)
    rows[:, 3] = 1
    for budget in (pf.NON_PRIVATE, pf.ZCDP(1)):
        model = pf.OrdinalLearner(budget, schema=GAPS).fit(rows).model_
        assert np.isfinite(model.weights).all()


def test_the_strength_of_a_table_with_gaps_is_that_of_its_answers():
    rng = np.random.default_rng(0)
    for first, second in (
        (pf.Ordered(range(3)), ["m", "f"]),
        (["a", "b", "c"], pf.Ordered([*"xyz"])),
    ):
        full = pf.Schema({"a": first, "b": second}, gaps={"a": "none", "b": "none"})
        table = rng.normal(size=full.shape)
        mine = pf.MarkovRandomField(full, [("a", "b")], [table])
        among = full.answered()
        theirs = pf.MarkovRandomField(among, [("a", "b")], [table[:-1, :-1]])
        found, wanted = (
            strength_of(model.schema, (0, 1), coordinates(model, [(0, 1)]))
            for model in (mine, theirs)
        )
        assert np.isclose(found, wanted)
        assert mine.edges()[0].estimate == pytest.approx(float(wanted))


def test_tables_are_those_of_people_who_answered():
    """Against tables of the people who answered, made by hand, scaled to the number of all."""
    rows = with_gaps(people(3_000))
    cliques = [("x0", "x1"), ("x1", "x2"), ("x2", "x3")]
    released = pf.measure(rows, GAPS, cliques, pf.NON_PRIVATE)
    found = among_answered(interactions(released))
    assert found.schema == GAPS.answered() and found.total == len(rows)
    for scope, value in zip(found.scopes, found.values, strict=True):
        own = rows[:, list(scope)]
        own = own[(own < LEVELS).all(axis=1)]
        table = np.zeros((LEVELS,) * len(scope))
        np.add.at(table, tuple(own.T), len(rows) / len(own))
        assert np.allclose(value, centre(table))
    model = pf.estimate(released)
    assert model.schema == GAPS.answered() and model.edges().known
    share = np.mean(rows[rows[:, 0] < LEVELS, 0] == 1)
    assert model.ask("P(x0=1)").estimate == pytest.approx(share, abs=1e-6)
    with pytest.raises(pf.InputError, match="knows no gaps"):
        pf.estimate(released, "naive-mle")
    south = pf.measure(with_gaps(people(3_000)), GAPS, cliques, pf.NON_PRIVATE)
    pooled = pf.pool([released, south])
    assert pooled.schema == GAPS.answered() and pooled.card.rows == 2 * len(rows)
    plain = pf.Schema(SCALES)
    whole = among_answered(interactions(pf.measure(rows % LEVELS, plain, cliques, pf.NON_PRIVATE)))
    assert whole.schema is plain  # nothing to take away


def test_forbidden_combinations_with_gaps():
    schema = pf.Schema(
        {"a": 2, "b": 3},
        gaps={"a": "none"},
        forbidden=[{"a": "none", "b": 0}, {"a": ["none", "1"], "b": 2}],
    )
    assert schema.answered().forbidden == ((("a", ("1",)), ("b", ("2",))),)
