"""Arguments of the wrong kind are refused in a sentence, before anything is charged.

An array in place of a word, a whole number that no float holds, a list in place of a name: what
comes out is an `InputError`, never an error of numpy, and never a budget that is spent for nothing.
"""

from decimal import Decimal
from fractions import Fraction

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import privfield as pf
from privfield.checks import check_max_bytes
from privfield.privacy.mechanism import Mechanism
from privfield.reporting.report import build_page

HUGE = 10**400
ODD = [
    *(None, True, -1, HUGE, -HUGE, 1e-320, float("nan"), float("inf"), "", "x", "a" * 5000),
    *([], [1], [[1, 2], [3]], [HUGE], {}, {"a": None}, {1: 2}, {"a": HUGE}, (), (-np.inf, np.inf)),
    *(np.array(3), np.array(None), np.array([1.0, 2.0]), np.array([[1, 2], [3, 4]]), np.zeros(0)),
    *(np.array(["a"]), np.int8(3), np.longdouble(1), Decimal("sNaN"), Decimal("1E+999999")),
    *(Fraction(HUGE, 3), 1j, int, object(), b"x", pf.Cost(1, 0), pf.PureDP(1e9), ...),
]
SCHEMA = pf.Schema({"a": ["no", "yes"], "b": ["no", "yes"]})
SCALES = pf.Schema({"a": pf.Ordered([1, 2, 3]), "b": pf.Ordered([1, 2, 3])})
ROWS = np.zeros((4, 2), int)
PURE, APPROX = pf.PureDP(1), pf.ApproxDP(1, 1e-6)
GIVEN = {"noise": "laplace", "scale": 2.0, "total": 40}
TABLES = pf.Measurements.from_tables(SCHEMA, [("a", "b")], [[[10, 8], [7, 15]]], **GIVEN)
MODEL = pf.IsingModel([[0, 0.5], [0.5, 0]])
RING = nx.cycle_graph(6)
OUTCOMES = dict.fromkeys(RING, 1)
CHAIN = pf.ChainModel(["u", "v"], [0.5, 0.5], [[0.5, 0.5], [0.2, 0.8]])
NETWORK = pf.NetworkIsing(nx.to_scipy_sparse_array(RING, dtype=float), 0.2)
ZEROS = np.zeros((2, 2))


def given(**more):
    """A call of `from_tables` with one argument changed."""
    known = {"schema": SCHEMA, "cliques": [("a", "b")], "tables": [ZEROS + 9], **GIVEN}
    return pf.Measurements.from_tables(**known | more)


def shown(cost):
    return cost.rho, cost.delta, cost.epsilon, repr(cost), cost <= PURE


CALLS = {
    "Cost": lambda odd: shown(pf.Cost(odd, 0)),
    "Cost: delta": lambda odd: shown(pf.Cost(0, odd)),
    "Cost: epsilon": lambda odd: shown(pf.Cost(0, 0, odd)),
    "split": lambda odd: PURE.split(odd),
    "Schema": lambda odd: pf.Schema({"a": odd}) and None,
    "Schema: levels": lambda odd: pf.Schema({"a": ["x", odd]}),
    "Schema.read": lambda odd: pf.Schema.read(odd),
    "Schema.from_codebook": lambda odd: pf.Schema.from_codebook(odd),
    "Schema.from_toml": lambda odd: pf.Schema.from_toml(odd),
    "given": lambda odd: SCHEMA.given(odd),
    "load": lambda odd: pf.load(odd),
    "save": lambda odd: MODEL.save(odd),
    "combine": lambda odd: pf.combine(odd, [1.0, 1.0]),
    "combine: variances": lambda odd: pf.combine([1.0, 1.0], odd),
    "from_tables: cliques": lambda odd: given(cliques=odd),
    "from_tables: tables": lambda odd: given(tables=odd),
    "from_tables: scale": lambda odd: given(scale=odd),
    "from_tables: total": lambda odd: given(total=odd),
    "from_tables: noise": lambda odd: given(noise=odd),
    "from_tables: adjacency": lambda odd: given(adjacency=odd),
    "table": lambda odd: TABLES.table(odd),
    "margin": lambda odd: TABLES.margin(("a", "b"), odd),
    "pool": lambda odd: pf.pool([TABLES, given()], names=odd),
    "compare": lambda odd: pf.compare(TABLES, given(), names=odd),
    "edges": lambda odd: MODEL.edges(negligible=odd),
    "sample: method": lambda odd: MODEL.sample(3, method=odd),
    "plot": lambda odd: MODEL.plot("x.png", kind=odd),
    "IsingModel": lambda odd: pf.IsingModel(ZEROS, schema=odd),
    "IsingModel: names": lambda odd: pf.IsingModel(ZEROS, names=odd),
    "OrdinalModel": lambda odd: pf.OrdinalModel(SCALES, ZEROS, odd),
    "OrdinalModel: scores": lambda odd: pf.OrdinalModel(SCALES, ZEROS, scores=odd),
    "NetworkIsing": lambda odd: NETWORK.statistic(odd),
    "ChainModel": lambda odd: CHAIN.log_likelihood(odd),
    "ChainModel.to_mrf": lambda odd: CHAIN.to_mrf(odd),
    "PolynomialMRF": lambda odd: pf.PolynomialMRF({}, odd),
    "report: card": lambda odd: build_page(MODEL, card=odd),
    "plan": lambda odd: pf.plan(SCHEMA, 1000, PURE, accuracy=odd),
    "plan: schema": lambda odd: pf.plan(odd, 1000, PURE),
    "plan: model": lambda odd: pf.plan(SCHEMA, 1000, PURE, model=odd),
    "plan: memory": lambda odd: pf.plan(SCHEMA, 1000, PURE, max_memory=odd),
    "plan: sites": lambda odd: str(pf.plan(SCHEMA, 1000, PURE, sites=odd)),
    "plan: network": lambda odd: pf.plan(None, None, odd, network=(6, 6, 2)),
}
RELEASES = {
    "measure: noise": lambda odd: pf.measure(ROWS, SCHEMA, ["a"], PURE, noise=odd),
    "measure: weights": lambda odd: pf.measure(ROWS, SCHEMA, ["a"], PURE, weights=odd),
    "parities": lambda odd: pf.measure_parities(ROWS, PURE, order=2, method=odd),
    "parities: oracle": lambda odd: pf.measure_parities(ROWS, APPROX, 2, "sepfem", oracle=odd),
    "score": lambda odd: pf.release_score(CHAIN, odd, PURE),
    "tables: cliques": lambda odd: pf.MarginalLearner(PURE, schema=SCHEMA, cliques=odd).fit(ROWS),
    "tables: options": lambda odd: pf.MarginalLearner(PURE, schema=SCHEMA, options=odd).fit(ROWS),
    "tables: weight": lambda odd: pf.MarginalLearner(PURE, schema=SCHEMA, min_weight=odd).fit(ROWS),
    "pairwise: budget": lambda odd: pf.PairwiseLearner(odd, schema=SCALES).fit(ROWS),
    "pairwise: room": lambda odd: pf.PairwiseLearner(PURE, schema=SCALES, max_bytes=odd).fit(ROWS),
    "ising: width": lambda odd: pf.IsingLearner(PURE, width=odd).fit(ROWS),
    "ising: rng": lambda odd: pf.IsingLearner(PURE, method="moments", rng=odd).fit(ROWS),
    "polynomial": lambda odd: pf.PolynomialLearner(APPROX, order=2, width=odd).fit(ROWS),
    "polynomial: least": lambda odd: pf.PolynomialLearner(APPROX, threshold=odd).fit(ROWS),
    "loss": lambda odd: pf.FrankWolfe(PURE, loss=odd, steps=1).fit(ZEROS, [1, -1]),
    "peer: covariates": lambda odd: pf.PeerEffect(PURE, covariates={"x": odd}).fit(RING, OUTCOMES),
    "peer: positive": lambda odd: pf.PeerEffect(PURE, positive=odd).fit(RING, OUTCOMES),
    "peer: scaling": lambda odd: pf.PeerEffect(PURE, scaling=odd).fit(RING, OUTCOMES),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", CALLS | RELEASES)
def test_what_is_refused_is_refused_in_a_sentence(call, tmp_path, monkeypatch):
    """And nothing that is refused has read a record before."""
    monkeypatch.chdir(tmp_path)
    for odd in ODD:
        begun, told = Mechanism.begun, ""
        try:
            (CALLS | RELEASES)[call](odd)
        except pf.InputError as error:
            told = str(error)
        assert not told or Mechanism.begun == begun, told


TEXTS = [
    (CALLS["Cost"], HUGE, "Cost: rho, delta, epsilon and gaussian must be at most 1e100."),
    (CALLS["Schema.from_toml"], 7, "text must be that of a schema file; got int."),
    (CALLS["load"], 7, "path must be a file name; got int."),
    (CALLS["table"], [7], "clique must be a list of variable names; see .cliques."),
    (CALLS["pool"], 7, "names must list those of the sites; got int."),
    (CALLS["report: card"], 7, "card must be a pf.Card or None; got int."),
    (CALLS["edges"], HUGE, "negligible must be a number from 0 to 100; got a huge number."),
    (CALLS["NetworkIsing"], [{}], "outcomes must be an array of numbers: above 0 is +1."),
    (RELEASES["tables: options"], 7, "options must be a dict of names; got int."),
    (RELEASES["ising: width"], 1e-320, "width must lie between 1e-6 and 1000; got 1e-320."),
    (RELEASES["ising: rng"], 0, "rng must be a numpy Generator or None; got int"),
    (RELEASES["polynomial: least"], -1, "threshold must not be negative, nor above 1e+100; got -1"),
]


@pytest.mark.parametrize(("call", "odd", "text"), TEXTS)
def test_the_sentence_names_the_argument(call, odd, text):
    with pytest.raises(pf.InputError) as error:
        call(odd)
    assert text in str(error.value)


def test_a_ledger_refuses_what_is_no_text_and_no_budget(tmp_path):
    ledger = pf.Ledger(tmp_path / "a.ledger", PURE)
    calls = {
        "claim must be": lambda odd: ledger.charge("x", PURE * 0.1, "replace-one", claim=odd),
        "request must be": lambda odd: ledger.charge("x", PURE * 0.1, "replace-one", request=odd),
        "job must be": ledger.result,
        "must be non-empty text": lambda odd: ledger.keep(odd, b""),
    }
    for text, call in calls.items():
        for odd in (7, HUGE, ["x"], np.array([1.0, 2.0])):
            with pytest.raises(pf.InputError, match=text):
                call(odd)
    assert not ledger.charges()


def test_words_about_lists_in_lists():
    deep = []
    for _ in range(3000):
        deep = [deep]
    with pytest.raises(pf.InputError, match="level must lie between 0 and 1; got list"):
        MODEL.edges(level=deep)
    with pytest.raises(pf.InputError, match=r"adjacency must be one of .* got list"):
        pf.measure(ROWS, SCHEMA, ["a"], PURE, adjacency=deep)


def test_a_budget_is_no_cost():
    """A cost is what was spent; what it may be spent on is not said."""
    with pytest.raises(pf.InputError, match=r"budget must be pf.PureDP, .* got Cost"):
        pf.measure(ROWS, SCHEMA, ["a"], pf.Cost(0.1, 0))


@pytest.mark.parametrize(
    "kind", [np.array, pd.Index, pd.Series, dict.fromkeys], ids=["array", "index", "series", "keys"]
)
def test_names_may_be_any_list(kind):
    """Also what pandas and numpy call a list, or the keys of a dict."""
    learner = pf.MarginalLearner(pf.ZCDP(1), schema=pf.Schema({"a": 2, "b": 2}))
    rows = np.random.default_rng(1).integers(0, 2, (500, 2))
    models, names = [learner.fit(rows).model_ for _ in range(2)], kind(["here", "there"])
    names = names.keys() if isinstance(names, dict) else names
    assert [site.name for site in pf.pool(models, names=names).card.sites] == ["here", "there"]
    assert pf.compare(*models, names=names).names == ("here", "there")


def test_thresholds_and_outcomes_may_be_any_list():
    schema = pf.Schema({"a": pf.Ordered([0, 1]), "b": pf.Ordered([0, 1])})
    for thresholds in ({"a": [0, 0.1], "b": [0, 0.2]}.values(), pd.Series([[0, 0.1], [0, 0.2]])):
        found = pf.OrdinalModel(schema, np.zeros((2, 2)), thresholds)
        assert [tuple(each) for each in found.thresholds] == [(0, 0.1), (0, 0.2)]
    network = pf.NetworkIsing(np.array([[0, 1.0], [1, 0]]), 0.1)
    assert network.statistic(np.array([1, -1], dtype=object)) == network.statistic([1, -1])


def test_room_may_be_a_number_of_numpy():
    check_max_bytes(np.int64(10**9))
