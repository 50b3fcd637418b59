"""Errors of planning, learners, models, estimates, inference and solvers: one call for each text.

Those that no other test quotes; `tests/test_error_texts.py` fails where a text stands in no test.
"""

import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csr_array

import privfield as pf
from mistakes import told_by
from privfield.data.network.covariates import read_covariates
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
from privfield.models.card import Card, Site, attach
from privfield.models.export import write_qgraph
from privfield.models.loading import _released, model_from_bytes
from privfield.models.saving import stored_floats, stored_stamp, stored_texts
from privfield.solvers.logistic import fista_logistic
from releases import measure_network
from small_releases import (
    AB,
    AB_LEVELS,
    CODES,
    NODES,
    ONE,
    PAIR,
    PATH,
    SIGNS,
    logistic,
    model,
    moments,
    on_path,
    parities,
    path,
    scores,
)

THREE = pf.Schema({"a": 3, "b": 3})
ABC = pf.Schema({name: ["no", "yes"] for name in "abc"})
COUPLE = Factors((2, 2), ((0, 1),), (np.zeros((2, 2)),))
CARD = Card(unit="row", method="m", noise=None, rows=9, created="2026-01-31", version="1")


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
        "must be a model that carries noisy tables, moments or scores, or these themselves; got",
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
        lambda: pf.pool([model(), model(pf.Schema({"b": 2, "a": 2}))]),
        "sites: number 2 must have the variables of the first in the same order.",
    ),
    (
        lambda: pf.pool([model(), model(pf.Schema({"a": 2, "b": 3}))]),
        "sites: number 2 must have as many levels as the first; 'b' has 3 instead of 2.",
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
    (lambda: check_negligible(-1), "negligible must be a number from 0 to 100; got -1."),
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

test_mistakes = told_by(MISTAKES)


def test_a_plot_without_matplotlib(monkeypatch):
    found = on_path()
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(pf.InputError) as error:
        found.plot()
    assert str(error.value) == "plot needs matplotlib: install it, or use .summary()."
