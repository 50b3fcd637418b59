"""Markov random fields against enumeration."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

import privfield as pf
from small_models import enumerate_model, enumerated_marginal, random_fields


@given(model=random_fields(), pick=st.data())
@settings(deadline=None)
def test_everything_exact_agrees_with_enumeration(model, pick):
    states, probability, log_z = enumerate_model(model)
    assert model.log_partition() == pytest.approx(log_z, abs=1e-9)
    names = list(model.schema.names)
    asked = pick.draw(st.lists(st.sampled_from(names), unique=True, max_size=3))
    found = model.marginal(asked)
    expected = enumerated_marginal(model, [names.index(name) for name in asked])
    np.testing.assert_allclose(found, expected, atol=1e-10)
    positive = probability[probability > 0]
    assert model.entropy() == pytest.approx(-(positive @ np.log(positive)), abs=1e-8)
    best = model.most_likely()
    code = [model.schema[name].code(level) for name, level in best.items()]
    index = int(np.flatnonzero((states == code).all(axis=1))[0])
    assert probability[index] == pytest.approx(probability.max(), rel=1e-9)
    with np.errstate(divide="ignore"):
        logs = np.log(probability)
    possible = probability > 0
    assert model.log_likelihood(states[possible]) == pytest.approx(logs[possible].sum(), abs=1e-6)


@given(model=random_fields(), pick=st.data())
@settings(deadline=None)
def test_conditioning_is_bayes(model, pick):
    if len(model.schema) < 2:
        return
    states, probability, _ = enumerate_model(model)
    known = pick.draw(st.integers(0, len(model.schema) - 1))
    level = pick.draw(st.integers(0, model.schema.shape[known] - 1))
    evidence = {model.schema.names[known]: level}
    keep = states[:, known] == level
    if probability[keep].sum() == 0:
        with pytest.raises(pf.InputError, match="probability zero"):
            model.condition(evidence)
        return
    given_model = model.condition(evidence)
    rest = [i for i in range(len(model.schema)) if i != known]
    expected = np.zeros([model.schema.shape[i] for i in rest])
    np.add.at(expected, tuple(states[keep][:, rest].T), probability[keep])
    found = given_model.marginal([model.schema.names[i] for i in rest])
    np.testing.assert_allclose(found, expected / expected.sum(), atol=1e-9)


@given(left=random_fields(), seed=st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_kl_divergence_against_enumeration(left, seed):
    rng = np.random.default_rng(seed)
    names = left.schema.names
    cliques = [names[:2], names[-1:]]
    tables = [rng.standard_normal([len(left.schema[n].levels) for n in c]) for c in cliques]
    right = pf.MarkovRandomField(left.schema, cliques, tables)
    _, p, _ = enumerate_model(left)
    _, q, _ = enumerate_model(right)
    possible = p > 0
    expected = p[possible] @ np.log(p[possible] / q[possible])
    assert left.kl_divergence(right) == pytest.approx(expected, abs=1e-8)
    assert left.kl_divergence(right) >= 0
    if (p == 0).any():
        assert right.kl_divergence(left) == np.inf


@given(model=random_fields(), seed=st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_equal_distributions_with_other_potentials_have_no_divergence(model, seed):
    rng = np.random.default_rng(seed)
    shifted = [table + rng.normal() for table in model.log_potentials]
    twin = pf.MarkovRandomField(model.schema, model.cliques, shifted)
    assert model.kl_divergence(twin) == pytest.approx(0, abs=1e-8)


def test_samples_follow_the_model_and_structural_zeros():
    """χ² over all possible states; forbidden ones never occur.

    False alarms below 1e-7 for independent draws, and far less for balanced ones; Gibbs draws are
    only nearly independent, so for them that rate is approximate.
    """
    schema = pf.Schema(
        {"a": 2, "b": 3, "c": 4}, forbidden=[{"a": "1", "b": ["1", "2"]}, {"b": "0", "c": "3"}]
    )
    rng = np.random.default_rng(11)
    tables = [rng.standard_normal((2, 3)), rng.standard_normal((3, 4))]
    model = pf.MarkovRandomField(schema, [("a", "b"), ("b", "c")], tables)
    _, probability, _ = enumerate_model(model)
    for method, n in (("balanced", 40_000), ("independent", 40_000), ("gibbs", 4_000)):
        sample = model.sample(n, rng, method)
        assert sample.dtype == np.uint8 and sample.shape == (n, 3)
        code = np.ravel_multi_index(tuple(sample.T), schema.shape)
        seen = np.bincount(code, minlength=24)
        assert not seen[probability == 0].any()
        possible = probability > 0
        expected = n * probability[possible]
        statistic = ((seen[possible] - expected) ** 2 / expected).sum()
        assert chi2.sf(statistic, possible.sum() - 1) > 1e-7, method
    assert (model.marginal(["a", "b"])[1, 1:] == 0).all()


def test_structural_zeros_of_the_schema_hold_whatever_the_potentials_say():
    schema = pf.Schema(
        {"age": pf.Bins([0, 18, 65]), "married": ["no", "yes"]},
        forbidden=[{"age": "0-18", "married": "yes"}],
    )
    model = pf.MarkovRandomField(schema, [("age", "married")], [[[0, 50.0], [0, 0]]])
    assert model.marginal(["age", "married"])[0, 1] == 0
    assert model.condition({"age": "0-18"}).marginal(["married"]).tolist() == [1, 0]
    with pytest.raises(pf.InputError, match=r"probability zero|forbidden"):
        pf.MarkovRandomField(schema, [], []).condition({"age": "0-18"}).condition(
            {"married": "yes"}
        )


def test_a_variable_in_no_clique_is_uniform_and_counts():
    model = pf.MarkovRandomField(pf.Schema({"a": 2, "b": 5}), [], [])
    assert model.log_partition() == pytest.approx(np.log(10))
    assert model.marginal(["b", "a"]) == pytest.approx(np.full((5, 2), 0.1))
    assert model.marginal([]).shape == ()
    assert model.sample(3).shape == (3, 2)
    assert model.sample(0).shape == model.sample(0, method="gibbs").shape == (0, 2)
    assert list(model.graph().nodes) == ["a", "b"]


def test_extreme_potentials():
    schema = pf.Schema({"a": 2, "b": 2, "c": 2})
    table = np.array([[1e4, -1e4], [-1e4, 1e4 - 1]])
    model = pf.MarkovRandomField(schema, [("a", "b"), ("b", "c")], [table, -table])
    _, _, log_z = enumerate_model(model)
    assert model.log_partition() == pytest.approx(log_z, rel=1e-12)
    expected = enumerated_marginal(model, [0, 2])
    np.testing.assert_allclose(model.marginal(["a", "c"]), expected, atol=1e-9)


def test_divergence_is_infinite_by_support_not_by_what_a_float_can_show():
    schema = pf.Schema({"a": 2})
    rare = pf.MarkovRandomField(schema, [("a",)], [[0, -1000]])
    never = pf.MarkovRandomField(schema, [("a",)], [[0, -np.inf]])
    assert rare.marginal(["a"])[1] == 0
    assert rare.kl_divergence(never) == np.inf
    assert never.kl_divergence(rare) == 0


@pytest.mark.parametrize("size", [1e3, 1e5, 1e7])
def test_parts_that_cancel_cost_no_digits(size):
    """Constants, and f(b) added to one clique and taken from another: nothing has changed."""
    schema = pf.Schema({"a": 2, "b": 3, "c": 2})
    rng = np.random.default_rng(3)
    left, right = rng.normal(size=(2, 3)), rng.normal(size=(3, 2))
    f = size * rng.normal(size=3)
    plain = pf.MarkovRandomField(schema, [("a", "b"), ("b", "c")], [left, right])
    loud = pf.MarkovRandomField(
        schema, [("a", "b"), ("b", "c"), ()], [left + f, right - f[:, None], 1e17]
    )
    _, p, _ = enumerate_model(plain)
    accuracy = 1e-14 * size  # what the potentials themselves lost when f was added
    assert plain.entropy() == pytest.approx(-(p @ np.log(p)), abs=1e-12)
    assert loud.entropy() == pytest.approx(plain.entropy(), abs=accuracy)
    assert loud.kl_divergence(plain) == pytest.approx(0, abs=accuracy)


def test_conditioning_works_where_exact_answers_are_too_large():
    rng = np.random.default_rng(1)
    upper = np.triu(rng.normal(size=(60, 60)) / 60, 1)
    model = pf.IsingModel(upper + upper.T).condition({"x0": 1})
    assert model.sample(50, rng, "gibbs").shape == (50, 59)


def test_many_correlations_of_a_long_chain():
    p = 150
    weights = np.diag(np.full(p - 1, 0.5), 1)
    found = pf.IsingModel(weights + weights.T).correlations()
    distance = np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
    np.testing.assert_allclose(found, np.tanh(0.5) ** distance, atol=1e-12)


def test_an_edge_that_says_nothing_is_none_and_a_small_one_counts():
    schema = pf.Schema({"a": 2, "b": 2, "c": 2})
    cliques = [("a", "b"), ("b", "c")]
    nothing = [[0.1, 0.2], [0.3, 0.4]]
    model = pf.MarkovRandomField(schema, cliques, [nothing, nothing])
    assert model.min_weight == np.inf and model.to_ising().min_weight == np.inf
    small, large = np.array([[1, -1], [-1, 1]]) * 1e-7, np.array([[1, -1], [-1, 1]]) * 1e6
    model = pf.MarkovRandomField(schema, cliques, [small, large])
    assert model.min_weight == pytest.approx(1e-7)
    ab, bc = np.array([[0.1, 0.7], [0.3, 0.2]]), np.array([[0.3, 0.9], [0.8, 0.5]])
    triple = pf.MarkovRandomField(schema, [("a", "b", "c")], [ab[:, :, None] + bc])
    pairwise = pf.MarkovRandomField(schema, cliques, [ab, bc])
    np.testing.assert_allclose(triple.to_ising().weights, pairwise.to_ising().weights, atol=1e-15)


def test_structural_zeros_have_no_width():
    schema = pf.Schema({"a": 2, "b": 2}, forbidden=[{"a": 0, "b": 0}])
    for ask in ("width", "min_weight"):
        with pytest.raises(pf.InputError, match="structural zeros"):
            getattr(pf.MarkovRandomField(schema, [], []), ask)


def test_likelihood_of_a_forbidden_row():
    schema = pf.Schema({"a": 2, "b": 2})
    model = pf.MarkovRandomField(schema, [("a", "b")], [[[0, -np.inf], [0, 0]]])
    assert model.log_likelihood(np.array([[0, 1]])) == -np.inf
    assert model.log_likelihood(np.array([[0, 0]])) == pytest.approx(-np.log(3))


def test_centring_keeps_the_distribution_and_orders_parameters():
    rng = np.random.default_rng(5)
    schema = pf.Schema({"a": 3, "b": 3, "c": 2})
    cliques = [("b", "a"), ("a", "b"), ("c",), ("b", "c"), ()]
    tables = [rng.normal(size=[{"a": 3, "b": 3, "c": 2}[n] for n in c]) for c in cliques]
    model = pf.MarkovRandomField(schema, cliques, tables)
    centred = model.centred()
    assert model.kl_divergence(centred) == pytest.approx(0, abs=1e-10)
    pairs = [t for t in centred.log_potentials if t.ndim == 2]
    assert len(pairs) == 2
    for table in pairs:
        np.testing.assert_allclose(table.sum(0), 0, atol=1e-12)
        np.testing.assert_allclose(table.sum(1), 0, atol=1e-12)
    assert centred.width == pytest.approx(model.width)
    assert model.min_weight == pytest.approx(min(np.abs(t).max() for t in pairs))


def test_width_of_a_pairwise_model_by_its_definition():
    w = np.array([[0.3, -0.3], [-0.3, 0.3]])
    theta = np.array([-0.1, 0.1])
    schema = pf.Schema({"a": 2, "b": 2, "c": 2})
    model = pf.MarkovRandomField(schema, [("a",), ("a", "b"), ("a", "c")], [theta, w, -2 * w])
    assert model.width == pytest.approx(0.3 + 0.6 + 0.1)
    assert model.min_weight == pytest.approx(0.3)


BAD = [
    (lambda s: pf.MarkovRandomField(s, [("a", "b")], [np.zeros((3, 2))]), r"shape \(2, 3\); got"),
    (lambda s: pf.MarkovRandomField(s, [("a",)], [[0, np.nan]]), "NaN or"),
    (lambda s: pf.MarkovRandomField(s, [("a",)], [[0, np.inf]]), "NaN or"),
    (lambda s: pf.MarkovRandomField(s, [("a",)], [[-np.inf] * 2]), "forbids every state"),
    (lambda s: pf.MarkovRandomField(s, [("a",)], [["x", "y"]]), "numbers only"),
    (lambda s: pf.MarkovRandomField(s, [("a",)], [[1j, 0]]), "numbers only"),
    (lambda s: pf.MarkovRandomField(s, [("a",)], [[1e308, 0]]), "within ±1e"),
    (lambda s: pf.MarkovRandomField(s, None, None), "cliques must be a list; got NoneType"),
    (lambda s: pf.MarkovRandomField(s, [("a", "a")], [np.zeros((2, 2))]), "twice"),
    (lambda s: pf.MarkovRandomField(s, [("z",)], [[0, 0]]), "no variable 'z'"),
    (lambda s: pf.MarkovRandomField(s, [("a",)], []), "one table for each of 1 cliques; got 0"),
    (lambda s: pf.MarkovRandomField({"a": 2}, [], []), "schema must be a pf.Schema; got dict"),
    (lambda s: pf.MarkovRandomField(s, [], []).marginal(["z"]), "no variable 'z'"),
    (lambda s: pf.MarkovRandomField(s, [], []).condition({"a": "7"}), "no level '7'"),
    (lambda s: pf.MarkovRandomField(s, [], []).condition({"a": 0, "b": 1}), "every variable"),
    (lambda s: pf.MarkovRandomField(s, [], []).condition(["a"]), "evidence must map"),
    (lambda s: pf.MarkovRandomField(s, [], []).sample(-1), "n must be a whole number from 0"),
    (lambda s: pf.MarkovRandomField(s, [], []).sample(2.5), "n must be a whole number"),
    (lambda s: pf.MarkovRandomField(s, [], []).sample(2, rng=3), "rng must be a numpy Generator"),
    (lambda s: pf.MarkovRandomField(s, [], []).sample(2, method="x"), "method must be"),
    (lambda s: pf.MarkovRandomField(s, [], []).kl_divergence(3), "other must be a model; got int"),
    (lambda s: pf.MarkovRandomField(s, [], []).to_polynomial(), "two levels each"),
    (
        lambda s: pf.MarkovRandomField(s, [("a", "b")], [[[0, -np.inf, 0], [0, 0, 0]]]).centred(),
        "finite",
    ),
]


@pytest.mark.parametrize(("make", "text"), BAD, ids=[text for _, text in BAD])
def test_bad_input_is_refused_in_words(make, text):
    with pytest.raises(pf.InputError, match=text):
        make(pf.Schema({"a": 2, "b": 3}))


def test_contradicting_zeros_are_found():
    schema = pf.Schema({"a": 2, "b": 2})
    no, yes = -np.inf, 0.0
    model = pf.MarkovRandomField(
        schema, [("a",), ("a", "b"), ("b",)], [[no, yes], [[yes, yes], [no, yes]], [yes, no]]
    )
    for question in (
        model.log_partition,
        model.most_likely,
        lambda: model.marginal(["a"]),
        lambda: model.sample(1),
        model.entropy,
    ):
        with pytest.raises(pf.InputError, match="forbids every state"):
            question()


def test_models_over_other_variables_are_not_compared():
    a = pf.MarkovRandomField(pf.Schema({"a": 2}), [], [])
    b = pf.MarkovRandomField(pf.Schema({"a": ["x", "y"]}), [], [])
    with pytest.raises(pf.InputError, match="same variables"):
        a.kl_divergence(b)


def test_a_model_too_large_for_exact_answers_says_so_and_what_works():
    names = [f"v{i}" for i in range(40)]
    schema = pf.Schema(dict.fromkeys(names, 10))
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    model = pf.MarkovRandomField(schema, pairs, [np.zeros((10, 10))] * len(pairs))
    assert model.inference_size().treewidth == 39
    with pytest.raises(pf.InputError, match=r"loopy"):
        model.log_partition()
    result = model.loopy()
    assert result.converged
