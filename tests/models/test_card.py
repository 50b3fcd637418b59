"""Where a model comes from: exact in a file, and no part of the model's numbers."""

import copy

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privfield as pf
from privfield.files import pack, unpack
from privfield.learners.base import attach_card, card_of
from privfield.learners.files import RELEASES, release_from_bytes
from privfield.mechanisms.moments.moments import Moments
from privfield.models.card import Card, Site, attach, guarantee
from privfield.models.chain import ChainModel
from privfield.models.loading import model_from_bytes
from privfield.models.saving import model_bytes

SCHEMA = pf.Schema({"a": ["no", "yes"], "b": ["no", "yes"]})
BUDGETS = [
    pf.PureDP(1 / 3),
    pf.ZCDP(0.1),
    pf.ApproxDP(1, 1e-6),
    pf.PureDP(1) + pf.ZCDP(0.1),
    pf.NON_PRIVATE,
    None,
]

texts = st.text(st.characters(codec="utf-8"), max_size=8)
finite = st.floats(-1e6, 1e6)
cards = st.builds(
    Card,
    unit=texts,
    adjacency=st.sampled_from([None, *pf.Adjacency]),
    cost=st.sampled_from(BUDGETS),
    budget=st.sampled_from(BUDGETS),
    method=st.none() | texts,
    noise=st.none() | texts,
    rows=st.none() | st.integers(0, 10**12) | st.floats(0, 1e9),
    ledger=st.none() | texts,
    job=st.none() | texts,
    charged=st.none() | texts,
    created=st.dates().map(lambda day: day.isoformat()),
    levels_are_public=st.booleans(),
    notes=st.lists(texts, max_size=3).map(tuple),
    intervals=st.dictionaries(texts, st.tuples(finite, finite, finite), max_size=2),
    level=st.floats(0.01, 0.99),
    sites=st.lists(st.builds(Site, texts, st.integers(0, 9) | st.floats(0, 9), texts)).map(tuple),
    stamp=st.none() | texts,
)


def tables():
    return pf.Measurements.from_tables(
        SCHEMA, [("a", "b")], [[[40, 8], [9, 43]]], noise="laplace", scale=2.0, total=100
    )


@settings(deadline=None)
@given(card=cards)
def test_a_card_survives_a_file_exactly(card):
    model = attach(pf.IsingModel([[0, 0.5], [0.5, 0]]), card)
    back = model_from_bytes(model_bytes(model))
    assert back.card == card
    assert model_bytes(back) == model_bytes(model)


def test_measurements_survive_a_file_bit_for_bit(tmp_path):
    m = tables()
    model = attach(pf.estimate(m), Card(cost=pf.PureDP(1)), m)
    model.save(tmp_path / "m.pf")
    back = pf.load(tmp_path / "m.pf")
    assert back.measurements.to_bytes() == m.to_bytes()
    again = pf.bootstrap(back.measurements, replicates=20, rng=np.random.default_rng(0))
    assert again.probability({"a": "yes"}).low < 0.6
    for twin in (copy.copy(model), copy.deepcopy(model)):
        assert twin.card == model.card and twin.measurements.to_bytes() == m.to_bytes()


def test_a_card_changes_no_number_and_no_derived_model():
    m = tables()
    model = pf.estimate(m)
    before = model.marginal(["a", "b"])
    assert model.card is None and model.measurements is m
    assert attach(model, Card(), m) is model
    assert (model.marginal(["a", "b"]) == before).all()
    assert model.condition({"a": "yes"}).card is None
    attach(model)  # nothing given: nothing changed
    assert model.card == Card() and model.measurements is m


def test_what_a_stamped_model_cost_is_no_promise(tmp_path):
    seeded = pf.MarginalLearner(pf.ZCDP(0.5), schema=SCHEMA, insecure_seed=1)
    model = seeded.fit(np.zeros((50, 2), np.uint8)).model_
    model.save(tmp_path / "m.pf")
    for same in (model, pf.load(tmp_path / "m.pf"), copy.copy(model)):
        assert same.card.cost == pf.ZCDP(0.5)
        assert same.card.promise().startswith("none. NOT PRIVATE")
        assert "NOT PRIVATE" in same._repr_html_()
        assert "zero-concentrated" not in same._repr_html_()
    old = attach(pf.IsingModel(np.zeros((2, 2)), stamp="NOT PRIVATE"), Card(cost=pf.PureDP(1)))
    assert "ε" not in old.card.promise()


def test_files_without_a_card_are_as_before(tmp_path):
    model = pf.IsingModel([[0, 0.5], [0.5, 0]])
    header, arrays = unpack("model", model_bytes(model), "x")
    assert "card" not in header and "measurements" not in header and len(arrays) == 2
    assert model_from_bytes(model_bytes(model)).card is None


def test_every_kind_of_release_has_its_class():
    from importlib import import_module

    for kind, place in RELEASES.items():
        module, name = place.split(":")
        assert kind == getattr(import_module(f"privfield.mechanisms.{module}"), name).KIND


WHOLE = model_bytes(attach(pf.estimate(tables()), Card(), tables()))


@settings(deadline=None)
@given(which=st.integers(0, 2), data=st.data())
def test_damaged_parts_are_refused(which, data):
    header, arrays = unpack("model", WHOLE, "x")
    del header["kind"]
    if which == 0:
        raw = bytearray(arrays["measurements"].tobytes())
        raw = raw[: data.draw(st.integers(0, len(raw) - 1))]
        arrays["measurements"] = np.frombuffer(bytes(raw), np.uint8)
    elif which == 1:
        header["measurements"] = data.draw(st.none() | st.just("moments") | texts)
    else:
        field = data.draw(st.sampled_from(sorted(header["card"])))
        if data.draw(st.booleans()):
            del header["card"][field]
        else:
            header["card"][field] = data.draw(st.sampled_from([{"x": 1}, [1, 2], -5]))
    with pytest.raises(pf.InputError, match=r"m\.pf"):
        model_from_bytes(pack("model", header, arrays), "m.pf", release_from_bytes)


@pytest.mark.parametrize("missing", ["header", "array"])
def test_half_of_the_measurements_is_damage(missing):
    m = tables()
    header, arrays = unpack("model", model_bytes(attach(pf.estimate(m), None, m)), "x")
    del header["kind"]
    del (header if missing == "header" else arrays)["measurements"]
    with pytest.raises(pf.InputError, match="damaged"):
        model_from_bytes(pack("model", header, arrays), "m.pf", release_from_bytes)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda model: attach(model, {"cost": 1}), "card must be a Card"),
        (lambda model: attach(model, measurements=[1, 2]), "something released"),
        (lambda model: Card(created="yesterday"), "must be a date"),
        (lambda model: Card(rows=-1), "rows"),
        (lambda model: Card(cost=1.0), "cost"),
        (lambda model: Card(unit=None), "unit"),
        (lambda model: Card(job=3), "job"),
        (lambda model: Card(notes="x"), "notes"),
        (lambda model: Card(sites=(Site("north", -1, ""),)), "sites"),
        (lambda model: Card(level=1.0), "level"),
        (lambda model: Card(levels_are_public="no"), "levels_are_public"),
        (lambda model: Card(intervals={"beta": (1, 2)}), "intervals"),
        (lambda model: Card(intervals={"beta": (1, 2, float("inf"))}), "intervals"),
        (lambda model: card_of(pf.IsingLearner(pf.PureDP(1))), "call fit first"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(pf.InputError, match=message):
        call(pf.estimate(tables()))


def rows(n=400):
    return pf.IsingModel([[0, 0.5], [0.5, 0]]).sample(
        n, np.random.default_rng(1), method="independent"
    )


def test_the_card_of_a_learner_tells_what_happened(tmp_path):
    ledger = pf.Ledger(tmp_path / "study.ledger", total=pf.ApproxDP(2, 1e-6))
    budget = pf.ApproxDP(1, 1e-6)
    learner = pf.IsingLearner(budget, method="moments", ledger=ledger, job="wave 1").fit(rows())
    attach_card(learner, notes=["pilot"])
    card = learner.model_.card
    assert card.cost == learner.cost_ == learner.measurements_.cost
    assert card.budget == budget and card.adjacency is pf.Adjacency.REPLACE_ONE
    assert card.unit == "row" and card.rows == 400
    assert card.noise == learner.measurements_.noise
    assert (card.ledger, card.job) == ("study.ledger", "wave 1")
    assert card.charged == ledger.charges()[0].time
    assert card.notes == ("pilot",)
    assert card.method == "IsingLearner: moments" and card.version == pf.__version__
    learner.model_.save(tmp_path / "m.pf")
    back = pf.load(tmp_path / "m.pf")
    assert back.card == card and isinstance(back.measurements, Moments)
    assert str(tmp_path) not in str(card.to_json())  # a name, never a path of this machine


def test_people_and_private_totals():
    schema = pf.Schema({"a": ["no", "yes"], "b": ["no", "yes"]}, unit=pf.Person("id", rows=3))
    frame = pd.DataFrame({"id": range(50), "a": ["no", "yes"] * 25, "b": ["no"] * 50})
    learner = pf.MarginalLearner(pf.PureDP(1), schema=schema).fit(frame)
    attach_card(learner)
    assert learner.model_.card.unit == "person (id, up to 3 rows)"
    assert learner.model_.card.rows is None


def test_other_learners(tmp_path):
    chain = pf.ChainLearner(pf.PureDP(1), states=["a", "b"]).fit([["a", "b"], ["b", "b"]])
    attach_card(chain)
    assert chain.model_.card.unit == "person"
    chain.model_.save(tmp_path / "c.pf")
    back = pf.load(tmp_path / "c.pf")
    assert isinstance(back, ChainModel) and back.card == chain.model_.card
    assert back.measurements.to_bytes() == chain.measurements_.to_bytes()

    ring = nx.cycle_graph(12)
    peer = pf.PeerEffect(pf.PureDP(1)).fit(ring, {node: node < 6 for node in ring})
    attach_card(peer)
    card = peer.model_.card
    assert card.unit == "outcome of a node" and card.adjacency is pf.Adjacency.FLIP_OUTCOME
    beta, low, high = card.intervals["beta"]
    assert beta == peer.beta_
    # where noise put every β out of the question, the ends coincide: "outside the model"
    assert (low, high) == (peer.interval_ or (beta, beta))
    peer.model_.save(tmp_path / "p.pf")
    assert pf.load(tmp_path / "p.pf").card == card

    walk = pf.IsingLearner(pf.ZCDP(1), method="frank-wolfe", steps=5).fit(rows())
    attach_card(walk)
    walk.model_.save(tmp_path / "w.pf")
    assert pf.load(tmp_path / "w.pf").measurements.steps == 5

    exact = pf.IsingLearner(pf.NON_PRIVATE, method="frank-wolfe").fit(rows())
    attach_card(exact)  # what it kept is no release: only the card goes along
    assert exact.model_.measurements is None and exact.model_.card.cost is pf.NON_PRIVATE


@pytest.mark.parametrize(
    ("cost", "budget", "text"),
    [
        (pf.PureDP(1), None, "ε-differential privacy with ε = 1"),
        (pf.ZCDP(0.02), pf.ApproxDP(1, 1e-6), "(ε = 1, δ = 1e-06)-differential privacy (ρ-"),
        (pf.ZCDP(0.5), pf.ApproxDP(1, 1e-6), "ρ-zero-concentrated differential privacy with ρ ="),
        (pf.ApproxDP(2, 1e-6), None, "(ε = 2, δ = 1e-06)-differential privacy"),
        (pf.PureDP(1) + pf.ApproxDP(1, 1e-6), None, "(ε = 2, δ = 1e-06)-differential privacy"),
        (pf.PureDP(1) + pf.ZCDP(0.1), None, "δ-approximate zero-concentrated"),
    ],
)
def test_the_guarantee_in_words_is_one_that_holds(cost, budget, text):
    """What was asked for is only quoted if the cost really implies it."""
    assert guarantee(cost, budget).startswith(text)
