"""Whatever was released: an interval around the estimate, or a sentence that there is none."""

import networkx as nx
import numpy as np
import pytest

import privfield as pf
from privfield.mechanisms.registry import MECHANISMS
from privfield.reporting.report import write_report

SIGNS = np.random.default_rng(0).choice([-1, 1], (400, 4))
CODES = (SIGNS > 0).astype(np.uint8)
YES_NO = pf.Schema({f"v{i}": ["no", "yes"] for i in range(4)})
ITEMS = pf.Schema({f"v{i}": pf.Ordered([1, 2, 3]) for i in range(4)})
SCORES = np.random.default_rng(1).integers(0, 3, (400, 4)).astype(np.uint8)
RING = nx.cycle_graph(10)
PAIRS = [("v0", "v1"), ("v1", "v2")]
UNKNOWN = "no interval is known for this method"

MODELS = {  # mechanism: whether intervals are known, and a learner that releases with it
    "ContingencyTables": (True, lambda b: pf.MarginalLearner(b, schema=YES_NO), CODES),
    "EdgeSelection": (True, lambda b: pf.MarginalLearner(b, schema=YES_NO, cliques="learn"), CODES),
    "SecondMoments": (True, lambda b: pf.IsingLearner(b, method="moments"), SIGNS),
    "ItemScores": (True, lambda b: pf.OrdinalLearner(b, schema=ITEMS), SCORES),
    "IsingFrankWolfe": (False, lambda b: pf.IsingLearner(b, method="frank-wolfe", steps=5), SIGNS),
    "PseudolikelihoodGradients": (
        False,
        lambda b: pf.IsingLearner(b, method="pseudolikelihood", steps=5),
        SIGNS,
    ),
    "PairwiseFrankWolfe": (
        False,
        lambda b: pf.PairwiseLearner(b, schema=YES_NO, method="frank-wolfe", steps=5),
        CODES,
    ),
    "RegressionsAndParities": (False, lambda b: pf.PolynomialLearner(b, width=1.5, steps=5), SIGNS),
    "PolynomialFrankWolfe": (
        False,
        lambda b: pf.PolynomialLearner(b, width=1.5, steps=5, objective="l1"),
        SIGNS,
    ),
    "StochasticGradients": (
        False,
        lambda b: pf.SGDLearner(
            pf.ApproxDP(3, 1e-3), schema=YES_NO, cliques=PAIRS, declared_rows=400, steps=20
        ),
        CODES,
    ),
}

PEERS = {
    "NetworkStatistics": "sufficient-statistic",
    "LocalStatistic": "local",
    "PerturbedObjective": "objective-perturbation",
}
GRAPHS = {  # edges without strengths: no number is there to be unsure of
    "StableStructure": "regression",
    "CorrelationGraph": "correlation",
    "ChowLiuTree": "chow-liu",
}
COEFFICIENTS = {"LogisticFrankWolfe": pf.SparseLogistic, "LossFrankWolfe": pf.FrankWolfe}
NO_ESTIMATE = {  # released as they are, with the law of their noise
    *("NoisyParities", "MultiplicativeWeights", "PerturbedLeader", "HeldOutScore", "StableTables"),
}


def test_no_mechanism_is_forgotten():
    tested = {*MODELS, *PEERS, *GRAPHS, *COEFFICIENTS, *NO_ESTIMATE, "ChainTransitions"}
    assert tested == {mechanism.__name__ for mechanism in MECHANISMS}


@pytest.mark.parametrize("mechanism", MODELS)
def test_models_of_variables(mechanism, tmp_path):
    known, learner, data = MODELS[mechanism]
    model = learner(pf.ZCDP(1)).fit(data).model_
    edges = model.edges()
    assert edges.known is known and (UNKNOWN in repr(edges)) is not known
    for edge in edges:
        if known:
            assert edge.low <= edge.estimate <= edge.high and edge.verdict != "no interval"
        else:
            assert edge.low is edge.high is edge.p is None
    name, level = model.schema.names[0], model.schema.variables[0].levels[1]
    answer = model.ask(f"P({name}={level})")
    if known:
        assert answer.low <= answer.estimate <= answer.high and answer.low < answer.high
    else:
        assert answer.low is answer.high is None and answer.note == UNKNOWN
    page = write_report(model, tmp_path / "r.html").read_text()
    assert ("No intervals: the method or the file" in page) is not known
    assert not known or "No intervals are known" not in page  # else where there is a picture


@pytest.mark.parametrize("mechanism", PEERS)
def test_peer_effects(mechanism, tmp_path):
    peer = pf.PeerEffect(pf.PureDP(1), method=PEERS[mechanism]).fit(RING, np.arange(10) < 5)
    low, high = peer.estimate_.interval
    assert ("outside the model" in peer.summary()) is (peer.interval_ is None)
    assert peer.interval_ is None or low <= peer.beta_ <= high
    page = write_report(peer.model_, tmp_path / "r.html").read_text()
    assert ("outside the model" in page) is (peer.interval_ is None)
    assert ("95% interval" in page) is (peer.interval_ is not None)


@pytest.mark.parametrize("mechanism", GRAPHS)
def test_graphs_hold_no_numbers(mechanism):
    learner = pf.StructureLearner(pf.ApproxDP(1, 1e-6), method=GRAPHS[mechanism], min_weight=0.4)
    graph = learner.fit(SIGNS).graph_
    assert graph is None or all(not about for *_, about in graph.edges(data=True))


def test_chains_say_that_no_interval_is_known(tmp_path):
    model = pf.ChainLearner(pf.ZCDP(1), states=["a", "b"]).fit([["a", "b", "a"]] * 100).model_
    page = write_report(model, tmp_path / "r.html").read_text()
    assert UNKNOWN in page and "privacy noise" in page and "No interval" in pf.ChainLearner.__doc__


@pytest.mark.parametrize("kind", COEFFICIENTS.values(), ids=lambda kind: kind.__name__)
def test_coefficients_say_that_no_interval_is_known(kind):
    assert "No interval is known" in kind.__doc__
