"""SGDLearner: climbs to the maximum of the likelihood; its settings are public."""

import math
from itertools import combinations, product

import numpy as np
import pytest
from scipy.stats import chi2

import privfield as pf
from privfield.learners.sgd import (
    FEWEST_STEPS,
    MOST_STEPS,
    SGDLearner,
    calm_pace,
    slope,
    start_norm,
    walk_length,
)

SCHEMA = pf.Schema({"a": 2, "b": 3, "c": 2})
CLIQUES = [("a", "b"), ("b", "c")]
TRUTH = pf.MarkovRandomField(
    SCHEMA,
    CLIQUES,
    [[[0.6, 0, -0.6], [-0.2, 0.4, 0]], [[0.5, -0.5], [0, 0.3], [-0.4, 0.2]]],
)
ROWS = 20_000
DATA = np.asarray(TRUTH.sample(ROWS, np.random.default_rng(4), method="independent"))
BUDGET = pf.ApproxDP(1, 1e-6)


def learner(budget=BUDGET, **settings):
    return SGDLearner(
        budget, **{"schema": SCHEMA, "cliques": CLIQUES, "declared_rows": ROWS, **settings}
    )


def indicators(schema, cliques):
    """e(x) of every record, by definition: one line for each."""
    found = []
    for record in product(*map(range, schema.shape)):
        parts = []
        for clique in cliques:
            table = np.zeros([schema.shape[i] for i in schema.clique(clique)])
            table[tuple(record[i] for i in schema.clique(clique))] = 1
            parts.append(table.ravel())
        found.append(np.concatenate(parts))
    return np.array(found)


# -- the model


def test_without_noise_it_climbs_to_the_maximum_of_the_likelihood():
    """The marginals of the cliques are those of the data; no model has a larger likelihood."""
    model = learner(pf.NON_PRIVATE, clip=9, average=0).fit(DATA).model_
    for clique in CLIQUES:
        counts = pf.measure(DATA, SCHEMA, [clique], pf.NON_PRIVATE).tables[0]
        assert model.marginal(clique) == pytest.approx(counts / ROWS, abs=1e-4)
    assert model.log_likelihood(DATA) >= TRUTH.log_likelihood(DATA)
    assert model.stamp.startswith("NOT PRIVATE")


@pytest.mark.parametrize("rate", [None, 0.2])
def test_private_models_are_near(rate):
    """KL(truth ‖ model) was 0.00103 ± 0.00008 over 40 runs; 0.005 is 50 deviations away, so false
    alarms are far below 1e-6. The uniform distribution has 0.15."""
    model = learner(sampling_rate=rate).fit(DATA).model_
    assert TRUTH.kl_divergence(model) < 0.005
    assert model.stamp is None


def test_all_pairs_and_one_variable():
    model = learner(cliques="all-pairs", steps=3).fit(DATA).model_
    assert model.cliques == (("a", "b"), ("a", "c"), ("b", "c"))
    one = pf.Schema({"b": 3})
    alone = learner(schema=one, cliques="all-pairs", steps=3).fit(DATA[:, 1:2]).model_
    assert alone.cliques == (("b",),)


# -- settings


@pytest.mark.parametrize("cliques", [CLIQUES, [("a",)], list(combinations("abc", 2))])
def test_the_default_clip_is_the_norm_of_every_gradient_at_the_start(cliques):
    rows = indicators(SCHEMA, cliques)
    norms = np.linalg.norm(rows - rows.mean(axis=0), axis=1)
    assert norms == pytest.approx(start_norm(SCHEMA, cliques))


@pytest.mark.parametrize("shape", [(2, 3, 2), (5, 2, 2), (4, 4, 3)])
@pytest.mark.parametrize("cliques", [CLIQUES, [("a",), ("b",)], list(combinations("abc", 2))])
def test_the_default_pace_lies_between_what_uniform_and_any_data_take(shape, cliques):
    """Curvature is the largest eigenvalue of the covariance of e(x): uniform, and 200 others."""
    schema = pf.Schema(dict(zip("abc", shape, strict=True)))
    rows = indicators(schema, cliques)
    rng = np.random.default_rng(5)
    uniform = np.full(len(rows), 1 / len(rows))
    for law in (uniform, *rng.dirichlet(np.full(len(rows), 0.05), 200)):
        centred = rows - law @ rows
        curvature = np.linalg.eigvalsh(centred.T @ (law[:, None] * centred))[-1]
        assert curvature <= len(cliques) / 2 + 1e-9
        if law is uniform:
            assert curvature <= slope(schema, cliques) + 1e-9 <= 2 * curvature + 2e-9
    pace = calm_pace(schema, cliques)
    assert pace**2 == pytest.approx(1 / slope(schema, cliques) * 2 / len(cliques))


def test_noise_alone_goes_as_far_as_the_walk_says():
    """Without data, log-potentials are 0.3·N(0, 1): 160 of them, false alarms below 1e-7.

    The number of steps is rounded down by at most 1%, and whole orders add 1% of noise.
    """
    schema = pf.Schema(dict.fromkeys("abcd", 2))
    squares = []
    for _ in range(20):
        run = learner(schema=schema, cliques=[("a", "b"), ("c", "d")], declared_rows=8000)
        run.set_params(average=0).fit(np.zeros((0, 4), int))
        assert 100 < len(run.released_.gradients) < MOST_STEPS
        squares += [(table**2).sum() / 0.3**2 for table in run.model_.log_potentials]
    assert chi2.ppf(4e-8, 160) * 0.98 < sum(squares) < chi2.isf(4e-8, 160) * 1.03


def test_settings_follow_from_public_numbers():
    other = np.asarray(TRUTH.sample(37, np.random.default_rng(9), method="independent"))
    runs = [learner().fit(data).released_ for data in (DATA, other, DATA[:0])]
    for name in ("scale", "sampling_rate", "clip", "learning_rate"):
        assert len({getattr(run, name) for run in runs}) == 1
    assert len({run.gradients.shape for run in runs}) == 1
    assert runs[0].sampling_rate == 1
    many = learner(declared_rows=10**6, steps=2).fit(DATA).released_
    assert many.sampling_rate == 0.05
    assert walk_length(BUDGET, 100, 1.0) == pytest.approx(30 * math.sqrt(2 * BUDGET.rho))
    assert len(learner(declared_rows=1).fit(DATA).released_.gradients) == FEWEST_STEPS


def test_given_settings_are_kept():
    run = learner(steps=4, sampling_rate=0.25, clip=0.5, learning_rate=2.0).fit(DATA).released_
    assert len(run.gradients) == 4
    assert (run.sampling_rate, run.clip) == (0.25, 0.5)
    assert run.learning_rate == pytest.approx(2 / (0.25 * ROWS))


# -- what is left behind


def test_what_was_released_and_what_it_cost(tmp_path):
    ledger = pf.Ledger(tmp_path / "l", total=BUDGET, adjacency="add-remove")
    first, again = (learner(steps=3, ledger=ledger, job="j").fit(DATA) for _ in range(2))
    assert first.released_.to_bytes() == again.released_.to_bytes()
    assert first.cost_ == BUDGET and first.adjacency_ is pf.Adjacency.ADD_REMOVE
    card = first.model_.card
    assert card.cost == BUDGET and card.unit == "row" and card.noise == "discrete-gaussian"
    assert card.method == "SGDLearner" and "not covered" in card.notes[0]
    first.model_.save(tmp_path / "m.pf")
    loaded = pf.load(tmp_path / "m.pf")
    assert loaded.card == card
    assert loaded.measurements.to_bytes() == first.released_.to_bytes()


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"schema": None}, "schema must be a pf.Schema"),
        ({"declared_rows": None}, "declared_rows must be given"),
        ({"declared_rows": 0}, "declared_rows must be a whole number"),
        ({"budget": pf.PureDP(1)}, "pf.ApproxDP with δ > 0"),
        ({"budget": pf.ZCDP(1)}, "pf.ApproxDP with δ > 0"),
        ({"adjacency": "replace-one"}, "adjacency must be 'add-remove' for private SGD"),
        ({"cliques": "auto"}, "cliques must be a list or 'all-pairs'; got 'auto'"),
        ({"cliques": [("a", "z")]}, "no variable 'z'"),
        ({"steps": 0}, "steps must be a whole number from 1"),
        ({"sampling_rate": 0}, "sampling_rate must be above 0; got 0"),
        ({"sampling_rate": 2}, "sampling_rate must lie between"),
        ({"clip": -1}, "clip must be above 0; got -1"),
        ({"learning_rate": 0.0}, "learning_rate must be above 0"),
        ({"learning_rate": "fast"}, "learning_rate must be a number"),
        ({"average": 1.5}, r"average must lie in \[0, 1\]; got 1.5"),
        (
            {"schema": pf.Schema(dict.fromkeys("abc", 2), unit=pf.Person("id"))},
            "clips single rows",
        ),
    ],
)
def test_bad_settings_are_refused_before_anything_is_charged(tmp_path, changes, text):
    ledger = pf.Ledger(tmp_path / "l", total=pf.ApproxDP(9, 1e-2), adjacency="add-remove")
    with pytest.raises(pf.InputError, match=text):
        learner(**{"ledger": ledger, **changes}).fit(DATA)
    assert ledger.charges() == []
