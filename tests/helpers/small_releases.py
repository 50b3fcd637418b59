"""Small tables, items and networks, and what each mechanism releases from them."""

from functools import cache

import networkx as nx
import numpy as np

import privfield as pf
from privfield.data.network.read import read_network
from releases import (
    frank_wolfe_ising,
    frank_wolfe_logistic,
    frank_wolfe_pairwise,
    frank_wolfe_polynomial,
    measure_moments,
)

AB_LEVELS = {"a": ["no", "yes"], "b": ["no", "yes"]}
AB = pf.Schema(AB_LEVELS)
ITEMS = pf.Schema({name: pf.Ordered(["1", "2", "3"]) for name in "ab"})
CODES = np.zeros((40, 2), np.uint8)
SIGNS = np.ones((40, 2), np.int8)
PAIR = np.array([[0.0, 1.0], [1.0, 0.0]])
PATH = nx.path_graph(3)
NODES = read_network(PATH)
OUTCOMES = {0: 1, 1: 0, 2: 1}
ONE = pf.PureDP(1)


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


def on_path(outcomes=OUTCOMES, budget=ONE, **options):
    return pf.PeerEffect(budget, **options).fit(PATH, outcomes)


def learn(data=CODES, budget=ONE, **options):
    return pf.MarginalLearner(budget, schema=AB, cliques="learn", **options).fit(data).released_


@cache
def tree():
    budget = pf.ApproxDP(1, 1e-6)
    return pf.StructureLearner(budget, method="chow-liu", names=["a", "b"]).fit(SIGNS).released_


def ordinal(given):
    return pf.OrdinalLearner(pf.ZCDP(1), schema=ITEMS, scores=given).fit(CODES)
