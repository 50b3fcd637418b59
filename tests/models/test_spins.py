"""Ising models, polynomials and networks: conversions, definitions, bad input."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import privfield as pf
from small_models import enumerate_model, random_fields


@st.composite
def ising_models(draw):
    p = draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    upper = np.triu(rng.normal(size=(p, p)) * (rng.random((p, p)) < 0.6), 1)
    return pf.IsingModel(upper + upper.T, rng.normal(size=p))


def direct_probabilities(model):
    """Straight from the formula of the Ising model, state by state."""
    p = len(model.field)
    states = np.array(np.meshgrid(*[[-1, 1]] * p, indexing="ij")).reshape(p, -1).T
    energy = np.einsum("si,ij,sj->s", states, np.triu(model.weights), states) + states @ model.field
    weights = np.exp(energy - energy.max())
    return states, weights / weights.sum(), np.log(weights.sum()) + energy.max()


@given(ising_models())
@settings(deadline=None)
def test_the_convention(model):
    states, probability, log_z = direct_probabilities(model)
    assert model.log_partition() == pytest.approx(log_z)
    np.testing.assert_allclose(model.means(), probability @ states, atol=1e-10)
    expected = np.einsum("s,si,sj->ij", probability, states, states)
    np.testing.assert_allclose(model.correlations(), expected, atol=1e-10)
    assert model.log_likelihood(states) == pytest.approx(np.log(probability).sum())
    best = model.most_likely()
    index = (states == [int(best[name]) for name in model.names]).all(axis=1)
    assert probability[index][0] == pytest.approx(probability.max())


@given(ising_models())
@settings(deadline=None)
def test_conversions_keep_the_distribution(model):
    for twin in (model.to_mrf(), model.to_polynomial(), model.to_mrf().to_ising()):
        assert model.kl_divergence(twin) == pytest.approx(0, abs=1e-9)
    back = model.to_polynomial().to_ising()
    assert (back.weights == model.weights).all() and (back.field == model.field).all()
    again = model.to_mrf().to_ising()
    np.testing.assert_allclose(again.weights, model.weights, atol=1e-12)
    np.testing.assert_allclose(again.field, model.field, atol=1e-12)
    assert model.width == pytest.approx(model.to_mrf().width)
    assert model.width == pytest.approx(model.to_polynomial().width)


@given(random_fields(zeros=False))
@settings(deadline=None)
def test_binary_fields_become_polynomials(model):
    if any(k != 2 for k in model.schema.shape):
        with pytest.raises(pf.InputError, match="two levels"):
            model.to_polynomial()
        return
    polynomial = model.to_polynomial()
    _, p, log_z = enumerate_model(model)
    _, q, log_z_too = enumerate_model(polynomial)
    np.testing.assert_allclose(p, q, atol=1e-10)
    assert log_z == pytest.approx(log_z_too)  # the constant is kept


def test_polynomials_by_hand():
    terms = {(): 0.5, (0,): 0.1, (2, 1): -0.2, (0, 1, 2): 0.5, (3,): 0.0}
    model = pf.PolynomialMRF(terms, size=4)
    assert list(model.coefficients) == [(), (0,), (3,), (1, 2), (0, 1, 2)]
    assert (model.order, model.size, model.names) == (3, 4, ("x0", "x1", "x2", "x3"))
    assert model.maximal_monomials == ((0, 1, 2),)
    assert model.width == pytest.approx(0.7) and model.min_weight == 0.5
    states = 2 * np.array(enumerate_model(model)[0]) - 1
    x0, x1, x2, _ = states.T
    h = 0.5 + 0.1 * x0 - 0.2 * x1 * x2 + 0.5 * x0 * x1 * x2
    np.testing.assert_allclose(enumerate_model(model)[1], np.exp(h) / np.exp(h).sum())
    assert model.log_partition() == pytest.approx(np.log(np.exp(h).sum()))
    with pytest.raises(pf.InputError, match="order two; this polynomial has 3"):
        model.to_ising()


def test_spin_samples_and_conditions():
    model = pf.IsingModel([[0, 0.8], [0.8, 0]], [0.3, 0], names=["sad", "tired"])
    sample = model.sample(20_000, np.random.default_rng(2))
    assert sample.dtype == np.int8 and set(np.unique(sample)) == {-1, 1}
    # mean of 20,000 bounded draws: five and a half standard errors, false alarms below 1e-7
    assert abs(sample.mean(0) - model.means()).max() < 5.5 / np.sqrt(20_000)
    conditioned = model.condition({"sad": 1})
    assert conditioned.marginal(["tired"])[1] == pytest.approx(1 / (1 + np.exp(-1.6)))
    same = model.condition({"sad": "+1"})
    assert same.kl_divergence(conditioned) == pytest.approx(0, abs=1e-12)
    assert model.graph()["sad"]["tired"]["weight"] == 0.8
    assert list(model.graph().nodes(data="field")) == [("sad", 0.3), ("tired", 0.0)]


def test_networks_are_ising_models():
    graph = nx.karate_club_graph()
    graph = graph.subgraph(list(graph)[:9])
    j = nx.to_scipy_sparse_array(graph, weight=None, dtype=float) / 3
    model = pf.NetworkIsing(j, beta=0.7, field=-0.2)
    states, probability, log_z = direct_probabilities(model.to_ising())
    energy = 0.35 * np.einsum("si,ij,sj->s", states, j.toarray(), states) - 0.2 * states.sum(1)
    expected = np.exp(energy - energy.max())
    np.testing.assert_allclose(probability, expected / expected.sum(), atol=1e-12)
    assert model.log_partition() == pytest.approx(log_z)
    np.testing.assert_allclose(
        model.statistic(states), np.einsum("si,ij,sj->s", states, j.toarray(), states)
    )
    assert model.statistic(states[3]) == pytest.approx(model.statistic(states)[3])
    assert model.graph().number_of_edges() == graph.number_of_edges()
    result = model.simulate(2000, np.random.default_rng(4))
    assert result.states.shape == (2000, 9)
    for method in ("auto", "balanced", "independent", "chains"):
        sample = model.sample(4000, np.random.default_rng(6), method)
        assert sample.shape == (4000, 9) and set(np.unique(sample)) == {-1, 1}
        # nearly independent draws in [-1, 1]: six standard errors, false alarms below 1e-7
        assert abs(sample.mean(0) - probability @ states).max() < 6 / np.sqrt(4000)


def test_a_large_network_needs_no_dense_matrix():
    n = 50_000
    ring = csr_array((np.ones(n), (np.arange(n), (np.arange(n) + 1) % n)), shape=(n, n))
    model = pf.NetworkIsing(ring + ring.T, beta=0.4)
    assert model.statistic(np.ones(n)) == 2 * n
    assert "50,000 nodes" in repr(model)
    sample = model.sample(2, np.random.default_rng(1))
    assert sample.shape == (2, n) and sample.dtype == np.int8


def test_a_large_sparse_network_answers_without_a_dense_matrix():
    n = 30_000
    ring = csr_array((np.ones(n), (np.arange(n), (np.arange(n) + 1) % n)), shape=(n, n))
    model = pf.NetworkIsing(ring + ring.T, beta=0.4)
    assert model.inference_size().treewidth == 2
    # the ring's transfer matrix: Z = (2 cosh β)ⁿ + (2 sinh β)ⁿ
    assert model.log_partition() == pytest.approx(n * np.log(2 * np.cosh(0.4)), rel=1e-9)
    assert model.loopy().converged
    with pytest.raises(pf.InputError, match="dense matrix, for up to 20,000"):
        model.to_ising()


def test_the_size_of_a_huge_monomial_is_known_without_its_table():
    model = pf.PolynomialMRF({tuple(range(40)): 1.0}, size=40)
    assert model.inference_size().treewidth == 39


def test_a_network_does_not_share_its_callers_matrix():
    where = ([0, 1, 0, 2], [1, 0, 2, 0])
    given = csr_array((np.array([0.5, 0.5, 0.0, 0.0]), where), shape=(3, 3))  # explicit zeros
    stored = given.nnz
    model = pf.NetworkIsing(given, beta=1)
    assert given.nnz == stored
    given.data[:] = 9
    assert model.couplings.max() == 0.5
    with pytest.raises(ValueError, match="read-only"):
        model.couplings.data[:] = 7


def test_last_digits_of_a_scaling_are_averaged():
    third = np.nextafter(1 / 3, 1)
    assert pf.NetworkIsing([[0, 1 / 3], [third, 0]], 1).couplings.nnz == 2
    assert (
        pf.IsingModel([[0, 1 / 3], [third, 0]]).weights
        == pf.IsingModel([[0, third], [1 / 3, 0]]).weights
    ).all()


W2 = [[0, 1], [1, 0]]
BAD = [
    (lambda: pf.IsingModel([[0, 1], [2, 0]], [0, 0]), "symmetric"),
    (lambda: pf.IsingModel([[1, 1], [1, 0]], [0, 0]), "zero diagonal"),
    (lambda: pf.IsingModel([[0, 1]], [0]), r"square matrix; got shape \(1, 2\)"),
    (lambda: pf.IsingModel([0, 1], [0]), "square matrix"),
    (lambda: pf.IsingModel(np.zeros((0, 0)), []), "square matrix"),
    (lambda: pf.IsingModel(W2, [0]), r"field must have shape \(2,\); got \(1,\)"),
    (lambda: pf.IsingModel([[0, np.nan], [np.nan, 0]], [0, 0]), "weights must hold finite"),
    (lambda: pf.IsingModel(W2, [0, np.inf]), "field must hold finite"),
    (lambda: pf.IsingModel(W2, [0, 0], names=["a"]), "names must be 2 different names; got 1"),
    (lambda: pf.IsingModel(W2, [0, 0], names=["a", "a"]), "2 different names"),
    (lambda: pf.IsingModel("x", [0, 0]), "numbers only"),
    (lambda: pf.PolynomialMRF({(0, 0): 1.0}, size=2), "different positions"),
    (lambda: pf.PolynomialMRF({(2,): 1.0}, size=2), "from 0 to 1"),
    (lambda: pf.PolynomialMRF({(0, 1): 1.0, (1, 0): 2.0}, size=2), "listed twice"),
    (lambda: pf.PolynomialMRF({(0,): np.nan}, size=2), "finite number"),
    (lambda: pf.PolynomialMRF({(0,): 1.0}, size=0), "size must be"),
    (lambda: pf.PolynomialMRF({"ab": 1.0}, size=2), "a monomial is a tuple"),
    (lambda: pf.PolynomialMRF([1, 2], size=2), "must map"),
    (lambda: pf.NetworkIsing([[0, 1], [2, 0]], 1), "symmetric"),
    (lambda: pf.NetworkIsing([[1, 0], [0, 0]], 1), "nobody is their own peer"),
    (lambda: pf.NetworkIsing(np.zeros((2, 3)), 1), "square matrix"),
    (lambda: pf.NetworkIsing([[0, np.inf], [np.inf, 0]], 1), "finite"),
    (lambda: pf.NetworkIsing(W2, np.nan), "beta must be a finite number.*got nan"),
    (lambda: pf.NetworkIsing(W2, 1, field="x"), "field must be a finite number"),
    (lambda: pf.NetworkIsing(W2, 1).statistic([1, 1, 1]), "must have 2 columns; got 3"),
    (lambda: pf.NetworkIsing("x", 1), "square matrix"),
    (lambda: pf.NetworkIsing(W2, None), "beta must be a finite number.*got None"),
    (lambda: pf.NetworkIsing(W2, 1j), "beta must be a finite number"),
    (lambda: pf.NetworkIsing(np.array(W2) * 1j, 1), "square matrix of numbers"),
    (lambda: pf.IsingModel(np.array(W2) * 1j), "numbers only"),
    (lambda: pf.IsingModel(np.array(W2) * 1e308), "finite numbers only, up to"),
    (lambda: pf.IsingModel(W2, names=5), "2 different names; got int"),
    (lambda: pf.IsingModel(W2, names=[1, 2]), "names: each must be non-empty text; got 1"),
    (lambda: pf.IsingModel(W2, names=["", "b"]), "names: each must be non-empty text"),
    (lambda: pf.IsingModel(W2).condition(["x0"]), "evidence must map"),
    (lambda: pf.IsingModel(W2).condition({"x0": True}), "no level True"),
    (lambda: pf.IsingModel(W2).sample(10**13), "Sample in parts"),
    (lambda: pf.IsingModel(W2).log_likelihood(np.ones((3, 5))), "must have 2 columns; got 5"),
    (lambda: pf.PolynomialMRF({(0,): None}, size=2), "must be a finite number"),
    (lambda: pf.PolynomialMRF({(True,): 1.0}, size=2), "different positions"),
    (lambda: pf.PolynomialMRF({tuple(range(40)): 1.0}, size=40).log_partition(), r"2\^40 states"),
]


@pytest.mark.parametrize(("make", "text"), BAD, ids=[text for _, text in BAD])
def test_bad_input_is_refused_in_words(make, text):
    with pytest.raises(pf.InputError, match=text):
        make()
