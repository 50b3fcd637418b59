"""PairwiseLearner: recovers a model by both ways; chooses between them by public numbers."""

import numpy as np
import pytest

import privfield as pf
from privfield.estimation.trajectories import pairwise_from_trajectory
from privfield.learners.pairwise import PairwiseLearner
from privfield.mechanisms.frank_wolfe.trajectory import Trajectory
from privfield.privacy.adjacency import Adjacency

SCHEMA = pf.Schema({"a": 3, "b": 2, "c": 4})
RNG = np.random.default_rng(20240615)
TRUTH = pf.MarkovRandomField(
    SCHEMA,
    [("a",), ("b",), ("a", "b"), ("b", "c")],
    [
        [0.2, 0, -0.2],
        [0.1, -0.1],
        [[0.5, -0.5], [0, 0], [-0.5, 0.5]],
        [[0.4, 0, 0, -0.4], [-0.4, 0, 0, 0.4]],
    ],
).centred()
DATA = np.asarray(TRUTH.sample(40_000, np.random.default_rng(1), method="independent"))


def tables(model):
    centred = model.centred()
    return dict(zip(centred.cliques, centred.log_potentials, strict=True))


def error(model):
    true, found = tables(TRUTH), tables(model)
    return max(np.abs(table - true.get(clique, 0)).max() for clique, table in found.items())


@pytest.mark.parametrize(
    "options", [{"geometry": "group"}, {"geometry": "l1"}, {"method": "tables"}]
)
def test_the_model_comes_out_without_noise(options):
    """Nothing is random here; Frank–Wolfe's errors were 0.027 and 0.025 when this was written."""
    learner = PairwiseLearner(
        pf.NON_PRIVATE, width=1.5, schema=SCHEMA, **({"method": "frank-wolfe"} | options)
    ).fit(DATA)
    assert error(learner.model_) < 0.1
    assert learner.model_.stamp.startswith("NOT PRIVATE")


@pytest.mark.parametrize("geometry", ["group", "l1"])
def test_private_models_are_centred_and_near(geometry):
    """Over 40 runs the error was 0.040 ± 0.005; 0.15 is 20 standard deviations away, so false
    alarms are far below 1e-6."""
    learner = PairwiseLearner(
        pf.ZCDP(1), width=1.5, schema=SCHEMA, method="frank-wolfe", geometry=geometry
    ).fit(DATA)
    model = learner.model_
    assert error(model) < 0.15 and learner.cost_ == pf.ZCDP(1) and model.stamp is None
    for clique, table in zip(model.cliques, model.log_potentials, strict=True):
        for axis in range(len(clique)):
            assert table.sum(axis=axis) == pytest.approx(0, abs=1e-12)
    assert learner.method_ == "frank-wolfe" and learner.adjacency_ == "replace-one"


def exact_path(weights, geometry, schema):
    """A stand-in for a trajectory whose last iterate is given."""

    class Known(Trajectory):
        def weights(self, steps=None):
            return weights

    columns = sum(schema.shape) + 1
    starts = np.arange(columns)
    count = len(weights)
    return Known(
        "pairwise",
        np.zeros((1, count), np.int32),
        np.ones((1, count, 1), np.int8),
        starts,
        columns,
        1.0,
        pf.ZCDP(1),
        Adjacency.REPLACE_ONE,
        {"schema": schema.to_toml(), "geometry": geometry},
    )


@pytest.mark.parametrize("geometry", ["group", "l1"])
def test_exact_conditionals_give_the_exact_model(geometry):
    """Log-odds of the true conditionals, shifted as no data could tell, return the true tables."""
    from privfield.mechanisms.frank_wolfe.pairwise import level_pairs

    true = tables(TRUTH)
    names, shape = SCHEMA.names, SCHEMA.shape
    starts = np.concatenate([[0], np.cumsum(shape)])
    lines = []
    for i, u, v in level_pairs(shape):
        line = np.zeros(sum(shape) + 1)
        bias = true[(names[i],)][u] - true[(names[i],)][v]
        for j in range(3):
            if j == i:
                continue
            low, high = sorted((i, j))
            table = true.get((names[low], names[high]), np.zeros((shape[low], shape[high])))
            table = table if i == low else table.T
            shift = RNG.normal()
            line[starts[j] : starts[j + 1]] = table[u] - table[v] + shift
            bias -= shift
        # the l1 features are ∓1/2 and a constant 1/2
        line[-1] = bias if geometry == "group" else 2 * bias + line[:-1].sum()
        lines.append(line)
    model = pairwise_from_trajectory(exact_path(np.array(lines), geometry, SCHEMA))
    assert error(model) == pytest.approx(0, abs=1e-12)


@pytest.mark.filterwarnings("ignore:The noisy total")  # of ten rows it may be below 1
def test_auto_goes_by_public_numbers():
    def chosen(data, **options):
        learner = PairwiseLearner(
            options.pop("budget", pf.ZCDP(1)), schema=SCHEMA, steps=2, **options
        )
        return learner.fit(data).method_

    assert chosen(DATA) == "tables"
    assert chosen(DATA[:10], budget=pf.ZCDP(0.01)) == "tables"
    kept = {"budget": pf.ZCDP(0.01), "adjacency": "add-remove"}
    assert chosen(DATA[:10], **kept) == chosen(DATA, **kept) == "tables"  # n is private there
    assert chosen(DATA, max_bytes=1.0) == "frank-wolfe"  # exact inference would not fit
    with pytest.raises(pf.InputError, match="declared_rows must be given"):
        PairwiseLearner(pf.ZCDP(1), schema=SCHEMA, max_bytes=1.0, adjacency="add-remove").fit(DATA)


def test_frank_wolfe_where_the_number_of_rows_is_private():
    learner = PairwiseLearner(
        pf.ApproxDP(1, 1e-6),
        schema=SCHEMA,
        method="frank-wolfe",
        adjacency="add-remove",
        declared_rows=1000,
    )
    steps = {learner.fit(data).trajectory_.steps for data in (DATA, DATA[:5])}
    assert len(steps) == 1 and learner.cost_ == pf.ZCDP(pf.ApproxDP(1, 1e-6).exact_rho)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"schema": None}, "schema must be"),
        ({"method": "fw"}, "method must be"),
        ({"geometry": "l2"}, "geometry must be"),
        ({"width": 0}, "width must lie"),
        ({"declared_rows": -3}, "declared_rows"),
        ({"budget": None}, "budget must be"),
    ],
)
def test_bad_input_names_the_parameter(wrong, text):
    given = {"budget": pf.ZCDP(1), "schema": SCHEMA} | wrong
    with pytest.raises(pf.InputError, match=text):
        PairwiseLearner(**given).fit(DATA[:50])


def test_what_was_measured_survives_an_interrupted_estimate(monkeypatch):
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    rows = np.random.default_rng(0).integers(0, 2, (50, 2))
    schema = pf.Schema({"a": 2, "b": 3})
    learner = pf.PairwiseLearner(pf.ZCDP(1), schema=schema, method="tables").fit(rows)
    monkeypatch.setattr("privfield.learners.marginal.estimate", interrupted)
    learner.set_params(budget=pf.ZCDP(0.5))
    with pytest.raises(KeyboardInterrupt):
        learner.fit(rows)
    assert learner.measurements_.cost == learner.cost_ == pf.ZCDP(0.5)
    assert not hasattr(learner, "model_")


def test_a_pure_budget_is_kept_by_both_methods():
    rows = np.random.default_rng(0).integers(0, 2, (50, 2))
    schema = pf.Schema({"a": 2, "b": 3})
    for method in ("tables", "frank-wolfe"):
        learner = pf.PairwiseLearner(pf.PureDP(1), schema=schema, method=method).fit(rows)
        assert learner.cost_ == pf.PureDP(1)
    for budget in (pf.PureDP(1), pf.ApproxDP(1, 0)):
        assert pf.PairwiseLearner(budget, schema=schema).fit(rows).method_ == "tables"
