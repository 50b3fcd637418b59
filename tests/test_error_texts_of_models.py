"""Errors of planning, learners, mechanisms, privacy, estimates and models: one call for each text.

Those that no other test quotes; `tests/test_error_texts.py` fails where a text stands in no test.
"""

import sqlite3
import sys
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
from scipy.sparse import csr_array

import privfield as pf
from privfield.data.network.covariates import read_covariates
from privfield.data.network.read import read_network
from privfield.data.sequences.form import SequenceForm, StateSet
from privfield.estimation.chains import estimate_chain
from privfield.estimation.moments.matching import match_moments
from privfield.estimation.parities import derivatives_by_variable as derivatives
from privfield.estimation.peers.bank import Bank, open_bank
from privfield.estimation.peers.one import estimate_peer_effect
from privfield.estimation.peers.several import estimate_with_covariates
from privfield.estimation.trajectories import ising_from_trajectory
from privfield.estimation.uncertainty.coordinates import numbers_of
from privfield.estimation.uncertainty.intervals import probability_from
from privfield.estimation.uncertainty.strengths import check_negligible
from privfield.files import pack
from privfield.inference.factors import Factors
from privfield.inference.loopy.propagation import LoopyPlan, loopy_belief_propagation
from privfield.inference.sampling.gibbs import sample_gibbs
from privfield.learners.files import release_from_bytes
from privfield.mechanisms.edges.mechanism import check_choice
from privfield.mechanisms.edges.selection import SelectedTriple
from privfield.mechanisms.frank_wolfe.logistic import LogisticFrankWolfe
from privfield.mechanisms.scores.losses import check_states
from privfield.models.card import Card, Site, attach
from privfield.models.export import write_qgraph
from privfield.models.loading import _released, model_from_bytes
from privfield.models.saving import stored_floats, stored_stamp, stored_texts
from privfield.privacy.budgets import budget_from_json
from privfield.privacy.noise import NoiseLaw, check_law
from privfield.privacy.selection import exponential_mechanism
from privfield.privacy.stability import release_probabilities
from privfield.solvers.logistic import fista_logistic
from releases import (
    frank_wolfe_ising,
    frank_wolfe_logistic,
    frank_wolfe_pairwise,
    frank_wolfe_polynomial,
    measure_chain,
    measure_moments,
    measure_network,
    measure_network_objective,
    measure_pseudolikelihood,
    measure_structure,
    private_sgd,
)

AB_LEVELS = {"a": ["no", "yes"], "b": ["no", "yes"]}
AB = pf.Schema(AB_LEVELS)
THREE = pf.Schema({"a": 3, "b": 3})
ABC = pf.Schema({name: ["no", "yes"] for name in "abc"})
ITEMS = pf.Schema({name: pf.Ordered(["1", "2", "3"]) for name in "ab"})
CODES = np.zeros((40, 2), np.uint8)
SIGNS = np.ones((40, 2), np.int8)
PAIR = np.array([[0.0, 1.0], [1.0, 0.0]])
PATH = nx.path_graph(3)
NODES = read_network(PATH)
OUTCOMES = {0: 1, 1: 0, 2: 1}
ONE, PRINTED = pf.PureDP(1), {"calibration": "as-printed"}
COUPLE = Factors((2, 2), ((0, 1),), (np.zeros((2, 2)),))
SETTINGS = {"sampling_rate": 1, "clip": 1, "learning_rate": 0.1}
CARD = Card(unit="row", method="m", noise=None, rows=9, created="2026-01-31", version="1")


@cache
def tables(**terms):
    return pf.measure(CODES, AB, [("a", "b")], pf.PureDP(5), **terms)


@cache
def model(schema=AB):
    rows = np.zeros((40, len(schema)), np.uint8)
    return pf.estimate(pf.measure(rows, schema, [schema.names[:2]], pf.PureDP(5)))


@cache
def moments():
    return measure_moments(SIGNS, ONE, names=["a", "b"])


@cache
def scores():
    return pf.OrdinalLearner(pf.ZCDP(1), schema=ITEMS).fit(CODES).released_


@cache
def parities(variables=2):
    return pf.measure_parities(np.ones((9, variables), np.int8), pf.ZCDP(1), 2)


@cache
def path(kind="ising", **options):
    if kind == "pairwise":
        return frank_wolfe_pairwise(CODES, AB, ONE, 1.0, steps=2)
    if kind == "polynomial":
        return frank_wolfe_polynomial(SIGNS, 2, ONE, 2, 1.0, steps=2)
    return frank_wolfe_ising(SIGNS, 2, ONE, 1.0, steps=2, **options)


def logistic(X=SIGNS / 2.0, y=SIGNS[:, 0], budget=ONE, **options):
    return frank_wolfe_logistic(X, y, budget, 1.0, **{"steps": 2, **options})


def of_chain(**changes):
    form = StateSet.of(["x", "y"])
    return replace(measure_chain([["x", "y"]], form, pf.PureDP(1)), **changes)


def on_path(outcomes=OUTCOMES, budget=ONE, **options):
    return pf.PeerEffect(budget, **options).fit(PATH, outcomes)


@cache
def statistics(*names):
    columns = {name: [0.5, 0.0, 0.5] for name in names}
    extras = read_covariates(False, columns, NODES)
    return measure_network(NODES, np.array([1, 0, 1]), ONE, covariates=extras), extras


def card(**changes):
    return replace(CARD, **changes)


def stored(header, **arrays):
    return model_from_bytes(pack("model", header, arrays))


def kept(change):
    """The file of a small model, with a header that was changed."""
    header = {"format": 1, "model": "ising", "names": ["a", "b"], "stamp": None} | change
    return stored(header, weights=PAIR, field=np.zeros(2))


def ledger(name="a.ledger", **terms):
    return pf.Ledger(name, total=pf.ApproxDP(1, 1e-6), **terms)


def strange_ledger(change):
    ledger()
    with sqlite3.connect("a.ledger") as db:
        db.execute(change)
    db.close()
    pf.Ledger("a.ledger")


def loopy(**options):
    return loopy_belief_propagation(COUPLE, **options)


def triple():
    return pf.MarkovRandomField(ABC, [("a", "b", "c")], [np.arange(8.0).reshape(2, 2, 2)])


def mrf(table):
    return pf.MarkovRandomField(AB, [("a",)], [table])


def damaged_bank():
    """A file of curves that holds none."""
    key = Bank(NODES, folder=Path.cwd(), exact=False).key
    header, none = {"format": 0, "key": key}, np.zeros((0, 3))
    parts = {"draws": none, "groups": none}
    Path(f"peer-{key}.pf").write_bytes(pack("peer-curve", header, parts))
    open_bank(NODES, folder=".", kept=False)
    Bank(NODES, folder=Path.cwd(), exact=False)


def learn(data=CODES, budget=ONE, **options):
    return pf.MarginalLearner(budget, schema=AB, cliques="learn", **options).fit(data).released_


def stream():
    """Rows that can be read only once."""
    batch = pa.record_batch({"a": ["1"] * 40, "b": ["2"] * 40})
    return pa.RecordBatchReader.from_batches(batch.schema, [batch])


def descent(epsilon=1.0):
    return private_sgd(CODES, AB, [("a", "b")], pf.ApproxDP(epsilon, 1e-12), steps=2, **SETTINGS)


@cache
def tree():
    budget = pf.ApproxDP(1, 1e-6)
    return pf.StructureLearner(budget, method="chow-liu", names=["a", "b"]).fit(SIGNS).released_


def ordinal(given):
    return pf.OrdinalLearner(pf.ZCDP(1), schema=ITEMS, scores=given).fit(CODES)


def root(budget=ONE, **options):
    return measure_network_objective(NODES, np.array([1, 0, 1]), budget, **options)


def elsewhere(given):
    return pf.Measurements.from_tables(AB, [("a", "b")], given, noise="laplace", scale=1)


def written(name, text):
    Path(name).write_text(text)


def plan(*given, **options):
    return pf.plan(*(given or (AB,)), **{"n": 100, "budget": ONE, **options})


MISTAKES = [
    # planning
    (lambda: plan(max_memory=0), "max_memory must lie between 1 byte and 1e18; got 0."),
    (lambda: plan(width=0), "width must lie between 1e-06 and 10000; got 0."),
    (lambda: plan(model="peer", network=PATH, n=7), "n must be None or the network's 3 nodes"),
    (
        lambda: plan(model="peer", network=(3, 2, 2), guess=0.5, n=3),
        "guess needs the network itself, not three numbers of it.",
    ),
    (lambda: plan([2, 1]), "schema_or_shape: each variable needs a whole number of levels from 2;"),
    (
        lambda: plan([2, 3], model="ising"),
        "needs variables of two levels; use model='pairwise' for 3 levels.",
    ),
    (
        lambda: plan([2, 3], model="chain"),
        "model='chain' needs states, or a schema with the state alone.",
    ),
    (
        lambda: plan(model="peer", network=nx.empty_graph(3), n=3),
        "no edges: there is no peer effect",
    ),
    # learners
    (
        lambda: pf.IsingLearner(ONE).set_params(colour="red"),
        "IsingLearner has no parameter 'colour'; it has ",
    ),
    (
        lambda: pf.MarginalLearner(
            pf.ApproxDP(1, 1e-6),
            schema=AB,
            cliques="learn",
            structure="stable",
            importance={"a": 2},
        ).fit(CODES),
        "importance: structure='stable' has no weights; use 'selection'.",
    ),
    (lambda: on_path(guess=9), "guess must lie in [0, bound]; got 9."),
    (
        lambda: on_path(method="mple"),
        'method="mple" has no privacy: it needs budget=pf.NON_PRIVATE.',
    ),
    (
        lambda: on_path([1, 1, 1], pf.NON_PRIVATE, method="mple").simulate(),
        "no finite β solves the equation here: nothing to simulate.",
    ),
    (
        lambda: pf.StructureLearner(ONE, method="chow-liu", blocks=5).fit(SIGNS),
        "has no blocks: order, blocks and learner are for method='regression'.",
    ),
    (lambda: on_path(level=1), "level must lie between 0 and 1; got 1."),
    (
        lambda: pf.PairwiseLearner(ONE, schema=AB, method="x").fit(CODES),
        "method must be 'auto', 'frank-wolfe' or 'tables'; got 'x'.",
    ),
    # models and their files
    (lambda: card(level=1.0), "level of a card must lie between 0 and 1; got 1.0."),
    (lambda: stored_texts({"names": 7}, "names"), "names must be a list of texts."),
    (
        lambda: model().sample(3, method="x"),
        "method must be 'balanced', 'independent' or 'gibbs'; got 'x'.",
    ),
    (lambda: model().edges(level=2), "level must lie between 0 and 1; got 2."),
    (
        lambda: attach(pf.IsingModel(PAIR), solution=1),
        "solution must be a Solution; got int.",
    ),
    (lambda: card(rows=-1), "rows of a card must be a number from 0 or None; got -1."),
    (lambda: card(notes=["x"]), "notes of a card must be texts."),
    (
        lambda: card(sites=(Site("x", -1, "y"),)),
        "sites of a card must have a name, a number of people and a promise.",
    ),
    (
        lambda: card(intervals={"x": (0.0, 1.0)}),
        "intervals of a card must map names to (estimate, low, high).",
    ),
    (lambda: Card.from_json({}), "a model card is damaged."),
    (lambda: card(unit=7), "unit of a card must be text."),
    (
        lambda: pf.ChainModel(["x", "y"], [0.5, 0.6], PAIR),
        "must be probabilities from 0 that add up to 1.",
    ),
    (
        lambda: pf.NetworkIsing(csr_array((40_000, 40_000)), 1.0).to_ising(),
        "an IsingModel holds a dense matrix, for up to ",
    ),
    (
        lambda: pf.PolynomialMRF({(0, 1, 2): 0.5}, 3).to_ising(),
        "an Ising model has order two; this polynomial has 3.",
    ),
    (
        lambda: write_qgraph(triple(), "w.csv", "t.csv"),
        "a matrix of weights has no place for what three variables or more have to say together (",
    ),
    (
        lambda: write_qgraph(pf.IsingModel(PAIR), "w.csv", "./w.csv"),
        "thresholds_path must differ from weights_path.",
    ),
    (
        lambda: pf.IsingModel([[0, 1], [2, 0]]),
        "weights must be symmetric: W[i, j] == W[j, i].",
    ),
    (lambda: kept({"format": 9}), "has model format 9; this is 1."),
    (lambda: kept({"model": "tree"}), "holds an unknown model, 'tree'."),
    (lambda: release_from_bytes("votes", b"", "f"), "f holds measurements of an unknown kind, "),
    (lambda: stored_floats(np.zeros(2, np.int8)), "an array of a model must hold 64-bit floats."),
    (lambda: stored_stamp({"stamp": 7}), "stamp must be text."),
    (
        lambda: _released({}, {"measurements": np.zeros(2)}, "f", None),
        "measurements must be stored as bytes.",
    ),
    (lambda: mrf(["x"]), "the potential of ('a',) must hold numbers only."),
    (lambda: mrf([np.nan, 0]), "must not hold NaN or +inf, and be −inf or within ±"),
    (lambda: triple().centred(), "centred needs pairwise cliques; "),
    (
        lambda: pf.NetworkIsing(np.zeros((0, 0)), 1.0),
        "couplings must have at least one node; got none.",
    ),
    (
        lambda: pf.NetworkIsing([[0, 1], [2, 0]], 1.0),
        "must be symmetric: J[i, j] == J[j, i].",
    ),
    (
        lambda: pf.OrdinalModel(pf.Schema(AB_LEVELS, forbidden=[{"a": "no", "b": "no"}]), PAIR),
        "schema: an ordinal model has no forbidden combinations.",
    ),
    (
        lambda: pf.OrdinalModel(AB, PAIR, scores=[[0, 1]]),
        "scores must be 2, one for each variable; got 1.",
    ),
    (
        lambda: pf.PolynomialMRF([1], 2),
        "coefficients must map tuples of variable positions to numbers.",
    ),
    (lambda: model().ask("P( )"), "query: it is empty; "),
    (lambda: model().ask("P(a=yes | a=no)"), "query: 'a' stands on both sides of the bar."),
    (
        lambda: model().ask("P(a=yes, a=no)"),
        "query: 'a' is there twice; each variable may be once.",
    ),
    (lambda: model().ask("P(a=yes | b=no | a=no)"), "query: cannot read '| a=no'; "),
    (lambda: model().ask("P(mood)"), "query: cannot read 'mood'; "),
    (
        lambda: pf.Solution(True, -1.0, 3),
        "a solution must have converged (True or False), a residual and steps from 0, and names",
    ),
    (lambda: pf.Solution.from_json({}), "the solution of a model is damaged."),
    # estimates
    (
        lambda: estimate_chain(moments()),
        "measurements must be ChainMeasurements; got Moments.",
    ),
    (
        lambda: pf.estimate(logistic()),
        "regressions are no joint distribution; their coefficients are released.weights().",
    ),
    (
        lambda: pf.estimate(moments(), "cgm"),
        "moments can be estimated with method 'auto', 'exact', 'sampled'; got method='cgm'.",
    ),
    (
        lambda: match_moments(moments(), method="exact", max_bytes=1),
        "bytes for 2 variables; max_bytes allows 1. Use method='sampled'.",
    ),
    (
        lambda: derivatives(path("polynomial"), parities(3)),
        "answers must be of 2 variables and of order 1 or more; got 3 variables and order 2.",
    ),
    (lambda: open_bank(NODES, folder=7), "cache must be None or a folder; got int."),
    (lambda: open_bank(NODES, folder="none"), "cache: there is no folder 'none'."),
    (lambda: damaged_bank(), "is damaged; remove it."),
    (
        lambda: estimate_peer_effect(statistics("x")[0], open_bank(NODES)),
        "release has more statistics than one; use estimate_with_covariates.",
    ),
    (
        lambda: estimate_with_covariates(statistics("x")[0], NODES, ()),
        "covariates must be those of the release, ('x',).",
    ),
    (
        lambda: pf.pool([model(), 7]),
        "sites: number 2 must be a model that carries noisy tables, moments or scores, or these",
    ),
    (
        lambda: pf.pool([moments(), scores()]),
        "sites: number 2 must have scores of items if the first has, and only then.",
    ),
    (
        lambda: pf.pool([model(), model(ABC)]),
        "sites: number 2 must have the variables of the first.",
    ),
    (
        lambda: pf.pool([model(), model(pf.Schema({"a": ["x", "y"], "b": ["x", "y"]}))]),
        "sites: number 2 must have the levels of the others, in their order; those of 'a' differ.",
    ),
    (
        lambda: ising_from_trajectory(replace(path(), about={})),
        "trajectory is damaged: it does not say its ",
    ),
    (
        lambda: ising_from_trajectory(replace(path(), about={"names": ["a"]})),
        "trajectory is damaged: its size does not go with its variables.",
    ),
    (
        lambda: pf.bootstrap(path()),
        "measurements must hold noisy tables or moments of a model that is not too large; no",
    ),
    (lambda: pf.combine([1.0, 2.0], [1.0, -1.0]), "variances must not be negative; got -1."),
    (lambda: pf.combine(["x"], [1.0]), "estimates must be numbers, one per table."),
    (
        lambda: numbers_of(model(), pf.measure(CODES, THREE, [("a", "b")], ONE)),
        "measurements must be those of the model: they have other levels.",
    ),
    (
        lambda: probability_from(model(), {}, {}),
        "event must name at least one variable, and none of those in given",
    ),
    (lambda: check_negligible(-1), "negligible must be a number from 0; got -1."),
    (lambda: match_moments(moments(), method="x"), "method must be 'auto', 'exact' or 'sampled';"),
    (
        lambda: derivatives(path("polynomial")),
        "answers must be given: a ParityAnswers of order 1.",
    ),
    (lambda: pf.pool([model()]), "sites must be a list of at least two models or releases."),
    # inference
    (lambda: sample_gibbs(COUPLE, 1, start=[0.0, 1.0]), "start must hold whole numbers; got float"),
    (
        lambda: loopy(damping=1),
        "The 'damping' parameter of loopy belief propagation must be a number in the range [0, 1).",
    ),
    (lambda: loopy(schedule="x"), "The 'schedule' parameter of loopy belief propagation must be"),
    (lambda: loopy(messages="x"), "The 'messages' parameter of loopy belief propagation must be"),
    (
        lambda: loopy(tolerance=-1),
        "The 'tolerance' parameter of loopy belief propagation must be a number, at least 0.",
    ),
    (
        lambda: LoopyPlan((2, 2), ((0, 1),)).run(np.zeros(3)),
        "A vector of tables must have 4 cells, those of all cliques. Got shape (3,) instead.",
    ),
    (
        lambda: LoopyPlan((2, 2), ((0, 1),)).run([np.zeros(4)]),
        "Tables must be one per clique, with one axis per variable. Got other shapes.",
    ),
    (
        lambda: sample_gibbs(COUPLE, 1, start=[0, 2]),
        "start must hold codes from 0 to each variable's number of levels − 1",
    ),
    # what mechanisms release, and what they refuse
    (
        lambda: on_path(covariates={"x": [1, 2]}),
        "covariates: 'x' must hold one finite number for each of 3 nodes.",
    ),
    (
        lambda: on_path(covariates={"H": [1, 2, 3]}),
        "covariates: names must be text other than 'H', 'beta' and 'field'.",
    ),
    (lambda: measure_moments(np.ones((9, 0)), ONE), "data must have 1 to "),
    (lambda: learn(importance={"a": 0}), "importance must be whole numbers from 1 to "),
    (
        lambda: LogisticFrankWolfe.measure(
            (SIGNS / 2.0, SIGNS[:, 0]), ONE, features=3, radius=1.0, steps=2
        ),
        "X must have 3 columns; got 2.",
    ),
    (
        lambda: frank_wolfe_logistic(SIGNS / 2.0, SIGNS[:, 0], ONE, 0, steps=2),
        "must lie between 1e-6 and 10,000; got 0.",
    ),
    (lambda: replace(tree(), names=("a", "a")), "names must be different from each other."),
    (
        lambda: ordinal([[1, 2, 3]]),
        "scores must be a list with the scores of each of the 2 variables.",
    ),
    (
        lambda: replace(moments(), total=None),
        "either total or count must be given: the number of rows, or a noisy one.",
    ),
    (lambda: replace(moments(), total=0.5), "total and count must be whole numbers."),
    (
        lambda: pf.measure_parities(SIGNS, ONE, 2, "x"),
        "method must be 'auto', 'gaussian', 'pmw', 'sepfem' or 'fem'; got 'x'.",
    ),
    (lambda: of_chain(unit=7), "unit must be text."),
    (
        lambda: of_chain(initial=np.zeros(3)),
        "initial must be an array of 64-bit floats with shape (2,).",
    ),
    (
        lambda: pf.ChainLearner(ONE, states=["x", "y"], null="y", limit=60_000, segment=9).fit(
            [["x", "y"]]
        ),
        "limit and segment: a unit may weigh ",
    ),
    (
        lambda: check_choice(AB, None, 1),
        "max_bytes: exact inference without any edge needs more than 1 bytes.",
    ),
    (lambda: learn(importance=3), "importance must be a dict of variable names; got 3."),
    (
        lambda: replace(learn(), triples=(SelectedTriple(2, 1, 0, 1.0, 1.0),)),
        "triples must be variables of the schema, in its order.",
    ),
    (
        lambda: learn(stream(), budget=pf.ApproxDP(1, 1e-6), structure="stable"),
        "data can be read only once, but structure='stable' takes two passes. Pass a frame or a",
    ),
    (
        lambda: pf.FrankWolfe(pf.ZCDP(1), ball="group", groups=[2], steps=2, **PRINTED).fit(
            SIGNS / 2.0, SIGNS[:, 0]
        ),
        "calibration='as-printed' is for ball='l1' and ball='simplex'.",
    ),
    (lambda: logistic(X=[[1.0]]), "X must be a 2-D numpy array; got list."),
    (
        lambda: logistic(X=np.ma.masked_array(SIGNS / 2.0)),
        "X is a masked array: fill it first, with NaN for what is missing.",
    ),
    (lambda: logistic(X=SIGNS.astype(str)), "X must hold numbers; got dtype "),
    (lambda: pf.Loss("margin", (1, 0), (0, 1)), "at must rise, one number for each of slopes."),
    (lambda: logistic(max_bytes=-1), "max_bytes must not be negative; got -1."),
    (
        lambda: logistic(budget=pf.NON_PRIVATE, **PRINTED),
        'calibration="as-printed" needs a budget; got NON_PRIVATE.',
    ),
    (
        lambda: logistic(budget=pf.ZCDP(1), adjacency="add-remove", **PRINTED),
        'calibration="as-printed" is for adjacency="replace-one" with rows as the unit.',
    ),
    (
        lambda: frank_wolfe_pairwise(CODES, AB, pf.ZCDP(1), 1.0, steps=2, **PRINTED),
        'calibration="as-printed" goes with geometry="l1", the paper\'s ball.',
    ),
    (
        lambda: frank_wolfe_pairwise(
            CODES, pf.Schema({"a": 60_000, "b": 60_000}), ONE, 1.0, steps=2
        ),
        " levels are too many; use method='tables', coarser levels or fewer variables.",
    ),
    (
        lambda: frank_wolfe_polynomial(np.ones((9, 60), np.int8), 60, ONE, 9, 1.0, steps=2),
        " products are too many; use a smaller order or fewer variables.",
    ),
    (
        lambda: measure_pseudolikelihood(SIGNS, ONE, names=["a", "b"], steps=1, clip=0),
        "clip must be at least 0.001; got 0.",
    ),
    (
        lambda: replace(descent(), gradients=np.zeros((1, 3))),
        "gradients must have 4 columns; got shape (1, 3).",
    ),
    (
        lambda: descent(epsilon=1e-9),
        " is too small for 2 steps of private SGD.",
    ),
    (
        lambda: replace(tree(), edges=(("a", "b"), ("a", "b"))),
        "edges must be different from each other.",
    ),
    (
        lambda: replace(tree(), edges=(("b", "a"),)),
        "edges must be tuples of at least two different names, in column order.",
    ),
    (
        lambda: measure_structure(
            np.zeros((40, 3)),
            pf.ApproxDP(1, 1e-6),
            schema=pf.Schema(dict.fromkeys("abc", 3)),
            order=3,
        ),
        "order=3 is for variables with two levels only; use order=2.",
    ),
    (
        lambda: measure_structure(
            {"who": ["x"] * 40, "a": ["no"] * 40, "b": ["no"] * 40},
            pf.ApproxDP(1, 1e-6),
            schema=pf.Schema(AB_LEVELS, unit=pf.Person("who", rows=2)),
        ),
        "schema: each person must be in one block only, with one row: say pf.Person('who', rows=1)",
    ),
    (
        lambda: pf.OrdinalLearner(ONE, schema=pf.Schema({"a": pf.Ordered(["x"]), "b": 2})).fit(
            CODES
        ),
        "has one level: there is nothing to learn.",
    ),
    (
        lambda: pf.OrdinalLearner(
            ONE, schema=pf.Schema(AB_LEVELS, forbidden=[{"a": "no", "b": "no"}])
        ).fit(CODES),
        "schema: models of scores know no forbidden combinations.",
    ),
    (
        lambda: pf.OrdinalLearner(pf.ZCDP(1), schema=ITEMS).fit(stream()),
        "data can be read only once, but scores of items take two passes. Pass a frame or a file.",
    ),
    (lambda: ordinal([[0, 1, 1e7]] * 2), "scores of 'a' must lie within ±1,000,000; got "),
    (lambda: ordinal(["x", "y"]), "scores of 'a' must be numbers."),
    (lambda: ordinal("square"), "scores must be 'two-stage', 'linear', 'split' or a list; got "),
    (
        lambda: replace(scores(), pairs=np.zeros((3, 3), np.int64)),
        "pairs and singles must have shapes (2, 2) and (2,).",
    ),
    (
        lambda: replace(scores(), pairs=np.array([[1, 2], [3, 4]])),
        "pairs must be symmetric.",
    ),
    (
        lambda: replace(scores(), gaps=np.zeros(2, np.int64)),
        "gaps and together go with each other.",
    ),
    (
        lambda: replace(scores(), gaps=np.zeros(3, np.int64), together=np.eye(2, dtype=np.int64)),
        "gaps and together must have shapes (2,) and (2, 2).",
    ),
    (
        lambda: replace(scores(), laws=()),
        "laws must hold four, of levels, pairs, squares and singles; with gaps, a fifth.",
    ),
    (
        lambda: replace(scores(), levels=()),
        "levels must hold one number for each level of each variable.",
    ),
    (
        lambda: pf.pool([scores(), replace(scores(), model_scores=(np.arange(3.0),) * 2)]),
        "sites must have the same scores: their weights mean other things.",
    ),
    (
        lambda: replace(moments(), singles=np.zeros(3, np.int64)),
        "pairs and singles must have shapes (2, 2) and (2,); got (2, 2) and (3,).",
    ),
    (
        lambda: replace(parities(), sums=None),
        "sums are released by method='gaussian', and by no other.",
    ),
    (lambda: replace(parities(), sums=np.zeros(9, np.int64)), "sums must have shape (3,); got"),
    (
        lambda: pf.PolynomialLearner(pf.ZCDP(1), order=2, steps=2, schema=AB).fit(stream()),
        "data can be read only once, but objective='linf' reads it twice. Pass a frame or a file",
    ),
    (
        lambda: pf.measure_parities(np.ones((9, 40), np.int8), pf.ZCDP(1), 2, "pmw"),
        "method='pmw' keeps a weight for each of 2^40 states, ",
    ),
    (
        lambda: on_path(budget=pf.ZCDP(1), **PRINTED),
        'calibration="as-printed" needs a pf.PureDP or pf.ApproxDP budget.',
    ),
    (
        lambda: pf.PeerEffect(ONE, scaling="none", **PRINTED).fit(-PAIR, [1, 0]),
        'calibration="as-printed" is for couplings that are not negative.',
    ),
    (lambda: root(pf.PureDP(1e-8)), "budget is too small for objective perturbation."),
    (
        lambda: root(pf.PureDP(4.1e-8)),
        "budget is out of range for objective perturbation on this network.",
    ),
    (lambda: root(least=1), "least must be 0 or below; got 1."),
    (
        lambda: on_path(budget=pf.PureDP(1e-17), method="sufficient-statistic"),
        "budget is too small for this network: noise would exceed 64 bits.",
    ),
    (
        lambda: check_states(
            pf.ChainModel(["x", "y"], [0.5, 0.5], PAIR), SequenceForm.of(["y", "x"])
        ),
        "model must have the same states, in the same order.",
    ),
    (
        lambda: replace(tables(), scales=()),
        "cliques, tables and scales must be equally many; got 1, 1 and 0.",
    ),
    (
        lambda: replace(tables(), centred=(1,)),
        "centred must hold True or False for each table.",
    ),
    (
        lambda: replace(tables(), cliques=(("b", "a"),), centred=(True,)),
        "the centred table of ('b', 'a') must follow the schema's order.",
    ),
    (lambda: replace(tables(), grid=0.0), "grid must be above 0; got 0.0."),
    (lambda: elsewhere([]), "tables must hold one array for each of 1 cliques."),
    (lambda: elsewhere([[["x"]]]), "tables and scale must hold numbers only."),
    (
        lambda: pf.measure(CODES, AB, [()], ONE),
        "cliques: an empty clique has no table; leave it out.",
    ),
    (
        lambda: private_sgd(
            CODES,
            pf.Schema(
                AB_LEVELS,
                forbidden=[{"a": a, "b": b} for a in ("no", "yes") for b in ("no", "yes")],
            ),
            [("a", "b")],
            pf.ApproxDP(1, 1e-6),
            steps=2,
            **SETTINGS,
        ),
        "schema: its forbidden combinations leave no possible record.",
    ),
    # files
    (lambda: model().save("a\0b"), "is no file name."),
    (lambda: model().save("/proc/m.pf"), "path: cannot write in '/proc'"),
    (lambda: pf.load("/"), "path: cannot read '/'"),
    # privacy and its ledger
    (
        lambda: pf.MarginalLearner(7, schema=AB).fit(CODES),
        "budget must be pf.PureDP, pf.ZCDP or pf.ApproxDP (or pf.NON_PRIVATE for study); got int.",
    ),
    (
        lambda: pf.Cost(-1, 0),
        "Cost: rho, delta, epsilon and gaussian must not be negative.",
    ),
    (lambda: budget_from_json({"kind": "pure"}), "a stored budget is damaged."),
    (
        lambda: strange_ledger("UPDATE meta SET value = '{}' WHERE name = 'total'"),
        "path: this ledger is damaged: what it says does not fit.",
    ),
    (lambda: strange_ledger("PRAGMA user_version = 9"), "has ledger format 9; this is "),
    (
        lambda: (ledger(), ledger(stable_delta=1e-9)),
        "was made with another stable_delta.",
    ),
    (
        lambda: ledger().charge("x", pf.NON_PRIVATE, "replace-one"),
        "a ledger records private releases; this one has no privacy cost.",
    ),
    (lambda: ledger().keep("j", b""), "job 'j' was never charged to this ledger."),
    (lambda: ledger().charge("", ONE, "replace-one"), "what must be non-empty text."),
    (lambda: (Path("f").mkdir(), ledger("f")), "/f' as a ledger."),
    (
        lambda: (written("a.ledger", "x" * 2000), pf.Ledger("a.ledger")),
        "as a ledger: it is not a ledger, or damaged.",
    ),
    (
        lambda: (written("a.ledger", ""), pf.Ledger("a.ledger")),
        "'a.ledger' is an empty file; to start, give a total.",
    ),
    (
        lambda: NoiseLaw("none", 0.0).margin(2),
        "level must lie between 0 and 1; got 2.",
    ),
    (lambda: check_law("laplace", 0), "noise 'laplace' does not go with the scale 0."),
    (
        lambda: exponential_mechanism([0.5], 1),
        "scores must be integers that fit int64 (round others to a public grid first); got dtype",
    ),
    (
        lambda: exponential_mechanism([[1], [1, 2]], 1),
        "scores must have the same number of candidates in each row.",
    ),
    (
        lambda: release_probabilities(Fraction(21), Fraction(1, 9)),
        "epsilon of a stable release must lie in (0, 20]; got 21.0.",
    ),
    (
        lambda: release_probabilities(Fraction(1), Fraction(0)),
        "a stable release needs δ > 0: with probability δ it may reveal what it must not; got",
    ),
    (
        lambda: release_probabilities(Fraction(1, 10**9), Fraction(1, 10**9)),
        "people could change might not be released.",
    ),
    # solvers
    (
        lambda: fista_logistic(np.ones(3), np.ones((3, 1)), 1.0),
        "X and Y must be 2-D with equally many rows, at least one; got (3,), (3, 1).",
    ),
    (
        lambda: fista_logistic(np.array([["x"]]), np.ones((1, 1)), 1.0),
        "X and Y must hold numbers; got dtypes ",
    ),
    (
        lambda: fista_logistic(np.ones((3, 1)), np.ones((3, 1)), -1.0),
        "radius must be a number from 0, or one for each of 1 labels.",
    ),
    (
        lambda: fista_logistic(np.ones((3, 1)), np.ones((3, 1)), 1.0, allowed=np.ones(3, bool)),
        "allowed must have shape (1, 1); got (3,).",
    ),
]


@pytest.mark.parametrize(("call", "told"), MISTAKES, ids=[told for _, told in MISTAKES])
def test_mistakes(tmp_path, monkeypatch, call, told):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(pf.InputError) as error:
        call()
    assert told in str(error.value)


def test_a_plot_without_matplotlib(monkeypatch):
    found = on_path()
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(pf.InputError) as error:
        found.plot()
    assert str(error.value) == "plot needs matplotlib: install it, or use .summary()."
