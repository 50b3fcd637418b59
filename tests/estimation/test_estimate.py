"""`pf.estimate` as users meet it: what it returns, refuses, warns of and tells."""

import dataclasses
import warnings

import numpy as np
import pytest

import privfield as pf
from privfield.mechanisms.registry import MECHANISMS
from privfield.privacy.terms import Terms
from privfield.progress import Progress

SCHEMA = pf.Schema({"a": 2, "b": 3, "c": 2})
CLIQUES = [("b", "a"), ("b", "c")]
TABLES = [[[40, 11], [30, 22], [5, 60]], [[20.5, 31], [22, 29], [50, 15]]]
METHODS = ["auto", "naive-mle", "cgm"]


def measured(**changes):
    given = {"noise": "laplace", "scale": 3.0, "total": 168, **changes}
    return pf.Measurements.from_tables(SCHEMA, CLIQUES, TABLES, **given)


def same(one, two):
    pairs = zip(one.log_potentials, two.log_potentials, strict=True)
    return one.cliques == two.cliques and all((a == b).all() for a, b in pairs)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("inference", ["exact", "loopy"])
@pytest.mark.parametrize("total", [168, None])
def test_every_method_gives_a_model_near_the_tables(method, inference, total):
    m = measured(total=total)
    model = pf.estimate(m, method, inference=inference)
    assert isinstance(model, pf.MarkovRandomField) and model.schema is SCHEMA
    for clique, table in zip(m.cliques, m.tables, strict=True):
        found = model.marginal(clique)
        assert found.shape == table.shape and found.sum() == pytest.approx(1)
        np.testing.assert_allclose(found, table / table.sum(), atol=0.08)


@pytest.mark.parametrize("noise", ["laplace", "gaussian", "discrete-laplace", "discrete-gaussian"])
@pytest.mark.parametrize("method", METHODS)
def test_every_noise_law(method, noise):
    model = pf.estimate(measured(noise=noise), method)
    np.testing.assert_allclose(model.marginal(["a"]), [0.45, 0.55], atol=0.05)


@pytest.mark.parametrize("method", METHODS)
def test_the_same_tables_give_the_same_model(method):
    assert same(pf.estimate(measured(), method), pf.estimate(measured(), method))


@pytest.mark.parametrize("method", METHODS)
def test_the_released_tables_are_not_changed(method):
    m = measured()
    before = [table.copy() for table in m.tables]
    pf.estimate(m, method)
    assert all((a == b).all() for a, b in zip(before, m.tables, strict=True))


@pytest.mark.parametrize("method", METHODS)
def test_a_stamp_goes_with_the_numbers(method):
    stamp = "NOT PRIVATE: for a test"
    model = pf.estimate(dataclasses.replace(measured(), stamp=stamp), method)
    assert model.stamp == stamp and stamp in repr(model)
    assert pf.estimate(measured(), method).stamp is None


@pytest.mark.parametrize("method", ["auto", "naive-mle"])
def test_tables_without_noise(method):
    tables = [100 * np.array(table) for table in TABLES]
    m = pf.Measurements.from_tables(SCHEMA, CLIQUES, tables, noise="none", scale=0, total=16800)
    model = pf.estimate(m, method)
    np.testing.assert_allclose(model.marginal(["b", "a"]), tables[0] / 16800, atol=0.01)


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("method", METHODS)
def test_nothing_but_a_total_gives_the_uniform_model(method, centred):
    m = pf.Measurements.from_tables(SCHEMA, [()], [np.array(17.0)], noise="gaussian", scale=1)
    model = pf.estimate(dataclasses.replace(m, centred=(centred,)), method)
    assert model.marginal(["a", "b"]) == pytest.approx(1 / 6)


def test_options_reach_their_method():
    loose = pf.estimate(measured(), "naive-mle", ridge=1e-6, project=False)
    tight = pf.estimate(measured(), "naive-mle", ridge=1e3)
    uniform = pf.MarkovRandomField(SCHEMA, [], [])
    assert uniform.kl_divergence(tight) < 1e-5 < uniform.kl_divergence(loose)
    one = pf.estimate(measured(), "cgm", iterations=1, e_step="nlbp", damping=0.5)
    two = pf.estimate(measured(), "cgm", iterations=1)
    assert not same(one, two)


def test_release_and_estimate_end_to_end():
    rng = np.random.default_rng(1)
    a = rng.integers(0, 2, 4000)
    codes = np.column_stack([a, (a + rng.integers(0, 2, 4000)) % 3, rng.integers(0, 2, 4000)])
    m = pf.measure(codes, SCHEMA, CLIQUES, pf.PureDP(5), adjacency="replace-one")
    model = pf.estimate(m)
    expected = np.histogramdd(codes[:, :2], [np.arange(3) - 0.5, np.arange(4) - 0.5])[0] / 4000
    np.testing.assert_allclose(model.marginal(["a", "b"]), expected, atol=0.02)
    assert model.stamp == m.stamp


# Bad input


@pytest.mark.parametrize("thing", [None, 3, TABLES, {"tables": TABLES}])
def test_measurements_must_be_measurements(thing):
    with pytest.raises(pf.InputError, match="released must be something that was released"):
        pf.estimate(thing)


@pytest.mark.parametrize("method", ["mle", "", None, 3, ["auto"], {}])
def test_an_unknown_method(method):
    with pytest.raises(
        pf.InputError, match="method must be one of 'auto', 'naive-mle', 'cgm'; got"
    ):
        pf.estimate(measured(), method)


@pytest.mark.parametrize(
    ("method", "options", "text"),
    [
        ("auto", {"ridge": 1}, "method='auto' has no option 'ridge'; it has none"),
        ("naive-mle", {"iterations": 3}, "has no option 'iterations'; it has ridge, project"),
        ("cgm", {"ridge": 1.0}, "has no option 'ridge'; it has iterations, e_step, damping"),
        ("auto", {"stamp": "x"}, "has no option 'stamp'"),
        ("cgm", {"tell": print}, "has no option 'tell'"),
        ("naive-mle", {"ridge": float("nan")}, "ridge must be a number above 0; got nan"),
        ("naive-mle", {"project": 1}, "project must be True or False; got 1"),
        ("cgm", {"iterations": 0}, "iterations must be a whole number from 1, or None; got 0"),
        ("cgm", {"iterations": -3}, "iterations must be a whole number"),
        ("cgm", {"damping": 0}, "damping must lie in"),
        ("cgm", {"damping": 2}, "damping must lie in"),
        ("cgm", {"e_step": "exact"}, "e_step must be 'dual' or 'nlbp'"),
        ("auto", {"inference": "quick"}, "inference must be 'exact' or 'loopy'; got 'quick'"),
        ("cgm", {"inference": None}, "inference must be 'exact' or 'loopy'; got None"),
        ("auto", {"max_bytes": 10}, "Exact inference would need .* max_bytes allows 10 bytes"),
        ("naive-mle", {"max_bytes": 10}, "max_bytes allows 10 bytes"),
        ("cgm", {"max_bytes": 10}, "max_bytes allows 10 bytes"),
    ],
)
def test_bad_options(method, options, text):
    with pytest.raises(pf.InputError, match=text):
        pf.estimate(measured(), method, **options)


def test_cgm_needs_noise():
    with pytest.raises(pf.InputError, match="needs noisy tables"):
        pf.estimate(measured(noise="none", scale=0), "cgm")


def test_there_must_be_a_table():
    m = pf.Measurements.from_tables(SCHEMA, [], [], noise="laplace", scale=1)
    with pytest.raises(pf.InputError, match="holds no table; measure at least one clique"):
        pf.estimate(m)


@pytest.mark.parametrize(
    ("cliques", "tables", "changes", "text"),
    [
        (CLIQUES, [np.ones((2, 3)), np.ones((3, 2))], {}, r"must have shape \(3, 2\)"),
        (CLIQUES, [np.ones(6), np.ones((3, 2))], {}, r"must have shape \(3, 2\); got \(6,\)"),
        (CLIQUES, [np.ones((3, 2))], {}, "one array for each of 2 cliques"),
        (CLIQUES, [np.full((3, 2), np.nan)] * 2, {}, "finite numbers only"),
        (CLIQUES, [np.full((3, 2), np.inf)] * 2, {}, "finite numbers only"),
        (CLIQUES, TABLES, {"scale": -1}, "scale of .* must be above 0; got -1"),
        (CLIQUES, TABLES, {"scale": 0}, "scale of .* must be above 0; got 0"),
        (CLIQUES, TABLES, {"scale": float("nan")}, "must be above 0; got nan"),
        (CLIQUES, TABLES, {"scale": [1.0, float("inf")]}, "must be above 0; got inf"),
        (CLIQUES, TABLES, {"scale": [1.0]}, "equally many"),
        (CLIQUES, TABLES, {"noise": "uniform"}, "noise must be one of"),
        (CLIQUES, TABLES, {"total": -1}, "total must be None or a number from 0"),
        (CLIQUES, TABLES, {"total": float("nan")}, "total must be None or a number from 0"),
        ([("a", "z")], [np.ones((2, 2))], {}, "no variable 'z'"),
        ([("a", "a")], [np.ones((2, 2))], {}, "names a variable twice"),
    ],
)
def test_tables_that_cannot_be_are_refused_where_they_come_in(cliques, tables, changes, text):
    with pytest.raises(pf.InputError, match=text):
        pf.Measurements.from_tables(
            SCHEMA, cliques, tables, **{"noise": "laplace", "scale": 1.0, **changes}
        )


# Totals that noise has taken away


@pytest.mark.parametrize("method", METHODS)
def test_a_total_below_one_is_a_warning_and_a_finite_model(method):
    tables = [np.array(table) - 40 for table in TABLES]
    m = pf.Measurements.from_tables(SCHEMA, CLIQUES, tables, noise="laplace", scale=30)
    with pytest.warns(UserWarning, match="noisy total is -.*next to nothing") as caught:
        model = pf.estimate(m, method)
    assert caught[0].filename == __file__
    assert all(np.isfinite(table).all() for table in model.log_potentials)
    assert model.marginal(["a", "b"]).sum() == pytest.approx(1)


def test_a_public_total_of_zero_is_the_same():
    with pytest.warns(UserWarning, match="total is 0.0"):
        model = pf.estimate(measured(total=0))
    assert model.marginal(["a"]).sum() == pytest.approx(1)


def test_ordinary_totals_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pf.estimate(measured())
        pf.estimate(measured(total=None))
        pf.estimate(measured(total=1))


# Telling, and being stopped


@pytest.mark.parametrize(
    ("method", "stages"),
    [
        ("auto", {"interactions of order 1", "interactions of order 2"}),
        ("naive-mle", {"maximum likelihood"}),
        ("cgm", {"EM iterations"}),
    ],
)
def test_progress_is_told(method, stages):
    told = []
    pf.estimate(measured(), method, progress=told.append)
    assert told and all(isinstance(each, Progress) for each in told)
    assert {each.stage for each in told} == stages
    if method == "cgm":
        assert [each.done for each in told] == list(range(len(told)))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("inference", ["exact", "loopy"])
def test_an_interrupted_estimate_can_be_made_again(method, inference):
    m = measured()
    expected = pf.estimate(m, method, inference=inference)
    count = 0

    def stop(progress):
        nonlocal count
        count += 1
        if count == 2 or method == "naive-mle":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pf.estimate(m, method, inference=inference, progress=stop, **more(method))
    assert same(pf.estimate(m, method, inference=inference), expected)


def more(method):
    return {"iterations": 5} if method == "cgm" else {}


@pytest.mark.parametrize("method", METHODS)
def test_an_interrupt_in_the_middle_of_inference(method, monkeypatch):
    """Ctrl-C comes at any moment: here inside the seventh run of inference."""
    from privfield.inference.engine import Engine

    m = measured()
    expected = pf.estimate(m, method)
    run = Engine.run

    def interrupted(self, theta):
        if self.calls == 6:
            raise KeyboardInterrupt
        return run(self, theta)

    with monkeypatch.context() as patch:
        patch.setattr(Engine, "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            pf.estimate(m, method)
    assert same(pf.estimate(m, method), expected)


# -- every kind of release


def releases():
    """One of each kind, as its mechanism releases it on a tiny domain."""
    found = {}
    for kind in MECHANISMS:
        for adjacency in kind.adjacencies:
            for budget in (pf.ZCDP(5), pf.ApproxDP(5, 1e-3)):
                terms = Terms(budget, adjacency, insecure_seed=1)
                if kind.takes(terms) and kind not in found:
                    found[kind] = next(iter(kind.worlds(terms)))
    return found


@pytest.mark.parametrize(
    ("kind", "world"), releases().items(), ids=lambda x: getattr(x, "__name__", "")
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_release_gives_its_model_or_a_reason(kind, world):
    released = world.mechanism.release(next(world.data_sets()))
    reason, model = "", None
    try:
        model = pf.estimate(released)
    except pf.InputError as error:
        reason = str(error)
    if model is None:
        assert reason.startswith("released: ")
        assert "has no model of its own." not in reason  # a reason, not a default
    else:
        assert model.stamp == released.stamp
        with pytest.raises(pf.InputError, match="magic"):
            pf.estimate(released, "magic")


def test_what_was_not_released_is_refused():
    with pytest.raises(pf.InputError, match="released must be something that was released"):
        pf.estimate(np.zeros(3))


def test_the_moments_in_a_model_file_can_be_estimated_again(tmp_path):
    rows = pf.IsingModel([[0, 0.5], [0.5, 0]]).sample(
        2000, np.random.default_rng(0), method="independent"
    )
    model = pf.IsingLearner(pf.ZCDP(1), method="moments").fit(rows).model_
    model.save(tmp_path / "m.pf")
    again = pf.estimate(pf.load(tmp_path / "m.pf").measurements)
    np.testing.assert_allclose(again.weights, model.weights, atol=1e-6)
