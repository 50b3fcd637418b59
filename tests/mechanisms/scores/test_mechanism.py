"""Released log-likelihoods: what comes back, what is charged, what would be caught."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest

import privfield as pf
from privfield.audit.promise import check_world
from privfield.data.sequences.form import SequenceForm
from privfield.mechanisms.scores.losses import PeopleLosses, PersonLosses, RowLosses, SegmentLosses
from privfield.mechanisms.scores.mechanism import HeldOutScore
from privfield.privacy.laws import Noise
from privfield.privacy.noise import add_noise
from privfield.privacy.terms import Terms

CHAIN = pf.ChainModel(["a", "b"], [0.5, 0.5], [[0.75, 0.25], [0, 1]])
PEOPLE = [["a", "a"], ["b"], ["b", "a"], [], [["a", "b"], ["b"]]]
SCHEMA = pf.Schema({"rain": ["no", "yes"], "wet": ["no", "damp", "soaked"]})
TABLE = pf.MarkovRandomField(SCHEMA, [("rain", "wet")], [[[2.0, 0, -1], [-1, 0.5, -np.inf]]])
SPINS = pf.IsingModel([[0, 0.5, 0], [0.5, 0, -0.3], [0, -0.3, 0]], [0.2, 0, 0], names=list("xyz"))
CUBIC = pf.PolynomialMRF({(0,): 0.3, (0, 1, 2): 0.6}, size=3, names=list("xyz"))
RNG = np.random.default_rng(7)


def score(model, data, **options):
    return pf.release_score(model, data, pf.NON_PRIVATE, **options)


# -- the number


@pytest.mark.parametrize("model", [TABLE, SPINS, CUBIC], ids=lambda m: type(m).__name__)
def test_rows_score_as_their_likelihood_says(model):
    rows = model.sample(500, RNG, method="independent")
    found = score(model, rows, bound=100)
    assert found.log_likelihood == pytest.approx(model.log_likelihood(rows), abs=500 * 2**-18)
    assert found.rows == found.people == 500
    assert found.mean == pytest.approx(model.log_likelihood(rows) / 500, abs=1e-5)


def test_a_chain_scores_as_its_likelihood_says():
    people = pf.ChainModel(["a", "b"], [0.2, 0.8], [[0.3, 0.7], [0.6, 0.4]])
    data = people.sample(300, 9, RNG)
    assert score(people, data, bound=100).log_likelihood == pytest.approx(
        people.log_likelihood(data), abs=300 * 9 * 2**-20
    )


def test_every_summand_is_clipped():
    assert score(CHAIN, [PEOPLE[2]], bound=3).log_likelihood == -3  # b → a cannot happen
    assert score(CHAIN, [["a"] * 50], bound=3).log_likelihood == -3
    assert score(CHAIN, [[]], bound=3).log_likelihood == 0
    impossible = np.array([[1, 2]] * 5)
    assert score(TABLE, impossible, bound=2.5).log_likelihood == -12.5
    assert score(TABLE, impossible).bound == math.ceil(math.log(6))
    assert score(CHAIN, PEOPLE).bound == math.ceil(5 * math.log(2))


def test_frames_schemas_and_people():
    frame = pd.DataFrame(
        {"id": ["u", "u", "u", "v"], "rain": ["no"] * 4, "wet": ["no", "damp", "no", "soaked"]}
    )
    each = {w: score(TABLE, frame[frame.wet == w][:1], bound=9).log_likelihood for w in frame.wet}

    def by(person):
        schema = pf.Schema(
            {"rain": ["no", "yes"], "wet": ["no", "damp", "soaked"]}, unit=pf.Person(*person)
        )
        return score(TABLE, frame, bound=9, schema=schema)

    total = 2 * each["no"] + each["damp"] + each["soaked"]
    assert by(("id", 9)).log_likelihood == pytest.approx(total)
    assert by(("id", 9)).rows == 4
    shared = by(("id", None))
    mean = (2 * each["no"] + each["damp"]) / 3 + each["soaked"]
    assert shared.log_likelihood == pytest.approx(mean, abs=1e-4)
    assert shared.people == pytest.approx(2, abs=1e-4)
    assert shared.unit == "person (id)"
    words = pf.Schema({name: ["down", "up"] for name in "xyz"})
    signs = SPINS.sample(50, RNG, method="independent")
    frame = pd.DataFrame(np.where(signs > 0, "up", "down"), columns=list("xyz"))
    assert score(SPINS, frame, schema=words).log_likelihood == score(SPINS, signs).log_likelihood


def test_what_comes_back(tmp_path):
    people = [["a"]] * 4000
    found = pf.release_score(CHAIN, people, pf.PureDP(5), 3)
    assert found.people == 4000 and found.mean == pytest.approx(-math.log(2), abs=0.02)
    assert found.cost == pf.PureDP(5) and found.stamp is None
    assert found.adjacency == "replace-one" and found.unit == "person"
    assert found.margin() == pytest.approx(3 / 5 * math.log(20), rel=0.01)
    assert "for one person" in repr(found)
    found.save(tmp_path / "score")
    assert pf.ReleasedScore.load(tmp_path / "score") == found
    noisy = pf.release_score(CHAIN, people, pf.PureDP(5), 3, "add-remove")
    assert noisy.number_law is not None and isinstance(noisy.people, float)
    assert noisy.mean == pytest.approx(-math.log(2), abs=0.05)
    exact = score(CHAIN, people, bound=3)
    assert exact.stamp.startswith("NOT PRIVATE") and "NOT PRIVATE" in repr(exact)


def test_a_model_that_protects_nobody_stamps_its_score():
    model = pf.IsingModel(np.zeros((2, 2)), stamp="NOT PRIVATE: no noise was added (NON_PRIVATE)")
    assert (
        pf.release_score(model, model.sample(9, method="independent"), pf.PureDP(1)).stamp
        == model.stamp
    )


# -- the promise, beyond the contract


def test_every_world_bites():
    """The worst neighbours of each kind of data use more than half of the cost."""
    for adjacency in ("replace-one", "add-remove"):
        for budget in (pf.PureDP(1), pf.ZCDP(0.1)):
            for world in HeldOutScore.worlds(Terms(budget, adjacency)):
                assert check_world(world, (0,)).share > 0.5, world.name


@pytest.mark.parametrize("kind", [RowLosses, PersonLosses, SegmentLosses])
def test_a_number_released_exactly_under_add_remove_is_caught(kind, monkeypatch):
    """How many rows or people there are is private there: planted, and seen in every world."""
    worlds = list(HeldOutScore.worlds(Terms(pf.PureDP(1), "add-remove")))
    own = [world for world in worlds if isinstance(world.mechanism.losses, kind)]
    assert len(own) >= 3
    assert not any(check_world(world, (0,)).problem for world in own)
    monkeypatch.setattr(kind, "is_public", lambda self, terms: True)
    for world in own:
        fresh = replace(world, mechanism=replace(world.mechanism))
        assert "depends on records beyond what was drawn" in check_world(fresh, (0,)).problem


def test_a_number_of_ids_released_exactly_is_caught(monkeypatch):
    """Under replace-one an id may lose its last sequence: their number is private, too."""
    worlds = list(HeldOutScore.worlds(Terms(pf.PureDP(1), "replace-one")))
    own = [w for w in worlds if w.name in ("sequences, ids", "segments, ids")]
    assert len(own) == 2
    monkeypatch.setattr(PeopleLosses, "is_public", lambda self, terms: True)
    for world in own:
        assert check_world(replace(world, mechanism=replace(world.mechanism)), (0,)).problem


@pytest.mark.parametrize("kind", ["frame", "mapping"])
def test_a_number_of_ids_is_not_public_whoever_says_so(kind, tmp_path):
    """A person without a sequence has no row in a frame, and would be missed in its number."""
    data = {"p": ["a", "b"], "q": ["b"]}
    if kind == "frame":
        rows = [(who, 0, state) for who, states in data.items() for state in states]
        data = pd.DataFrame(rows, columns=["person", "sequence", "state"])
    form = SequenceForm.of(CHAIN.states)
    ledger = pf.Ledger(tmp_path / "l", total=pf.PureDP(1))
    terms = Terms(pf.PureDP(1), unit=form.unit, ledger=ledger)
    said = HeldOutScore(terms, losses=PersonLosses(CHAIN, form, alone=True), bound=Fraction(1))
    with pytest.raises(pf.InputError, match="a person may have no sequence"):
        said.release(data)
    assert not ledger.charges()
    assert said.release([["a", "b"], []]).people == 2


def fits_its_law(runs=1500):
    """The noise of 1,500 releases against the law that is stated: false alarms below 1e-7."""
    truth, draws = score(CHAIN, PEOPLE, bound=2).log_likelihood, []
    for _ in range(runs):
        found = pf.release_score(CHAIN, PEOPLE, pf.PureDP(1), 2, "add-remove")
        draws.append((found.log_likelihood - truth) / found.law.scale)
    return kstest(draws, "laplace").pvalue > 1e-7


def test_the_noise_is_what_the_result_says(monkeypatch):
    assert fits_its_law()
    half = lambda self, values, entropy: add_noise(values, self.quieter(2).laws[0])  # noqa: E731
    monkeypatch.setattr(Noise, "draw", half)
    assert not fits_its_law()


# -- ledger and mistakes


def test_a_job_is_released_once_and_needs_no_data_again(tmp_path):
    ledger = pf.Ledger(tmp_path / "l", total=pf.PureDP(2))
    options = {"bound": 3, "ledger": ledger, "job": "score"}
    first = pf.release_score(CHAIN, PEOPLE, pf.PureDP(0.5), **options)
    assert pf.release_score(CHAIN, None, pf.PureDP(0.5), **options) == first
    assert ledger.spent.epsilon == 0.5 and ledger.unit == "person"
    other = pf.ChainModel(["a", "b"], [0.4, 0.6], np.eye(2))
    for change in ({"model": other}, {"bound": 4}, {"unit": "day"}, {"unknown": "b"}):
        with pytest.raises(pf.InputError, match="another request"):
            pf.release_score(
                **{"model": CHAIN, "data": PEOPLE, "budget": pf.PureDP(0.5)} | options | change
            )
    with pytest.raises(pf.InputError, match="protects one person; this release protects one row"):
        pf.release_score(TABLE, np.zeros((5, 2), int), pf.PureDP(0.5), ledger=ledger)
    assert len(ledger.charges()) == 1


def test_the_request_names_the_model_and_nothing_of_where_it_came_from():
    terms = Terms(pf.PureDP(1))
    one, two = (RowLosses(model, SCHEMA) for model in (TABLE, replaced_potential()))
    digests = [HeldOutScore(terms, losses=each, bound=1).request()["model"] for each in (one, two)]
    assert digests[0] != digests[1]
    carded = pf.MarkovRandomField(SCHEMA, TABLE.cliques, TABLE.log_potentials, stamp="x")
    assert RowLosses(carded, SCHEMA).request() == one.request()


def replaced_potential():
    return pf.MarkovRandomField(SCHEMA, [("rain", "wet")], [[[2.0, 0, -1], [-1, 0.5, 1e-9]]])


def test_bad_input(tmp_path):
    ledger = pf.Ledger(tmp_path / "l", total=pf.PureDP(1))
    loud = pf.MarkovRandomField(SCHEMA, [("rain",), ("rain",)], [[1e90, 0], [0, 1e90]])
    network = pf.NetworkIsing(np.zeros((2, 2)), 0.1)
    bad = [
        ({"model": 3}, "model must be a MarkovRandomField.*got int"),
        ({"model": network}, "model must be .*got NetworkIsing"),
        ({"model": loud}, "so large that a log-likelihood has no whole numbers"),
        ({"schema": 3}, "schema must be a pf.Schema"),
        ({"schema": pf.Schema({"wet": 3, "rain": 2})}, "the model's variables"),
        ({"schema": pf.Schema({"rain": 2, "wet": 3})}, "the model's variables"),
        ({"people": [1]}, "go with a chain"),
        ({"columns": ("a", None, "b")}, "go with a chain"),
        ({"budget": None}, "budget must be"),
        ({"bound": 0}, "bound must lie between 1/1024 and 1,048,576; got 0"),
        ({"bound": float("inf")}, "bound must be finite"),
        ({"adjacency": "flip-outcome"}, "for scores"),
        ({"insecure_seed": "x"}, "insecure_seed"),
        ({"progress": 3}, "progress must be a function"),
        ({"data": 5}, "data must be"),
        ({"data": np.zeros((3, 5))}, "2 variables"),
        ({"model": CHAIN, "data": 5}, "sequences must be"),
        ({"model": CHAIN, "schema": SCHEMA}, "one variable, the state"),
        ({"model": CHAIN, "schema": pf.Schema({"x": ["b", "a"]})}, "same states"),
        ({"model": CHAIN, "unit": " "}, "unit must be non-empty text"),
        ({"model": CHAIN, "columns": "abc"}, "columns must name"),
    ]
    good = {"model": TABLE, "data": np.zeros((4, 2)), "budget": pf.PureDP(0.1), "ledger": ledger}
    for change, text in bad:
        with pytest.raises(pf.InputError, match=text):
            pf.release_score(**good | change)
    assert ledger.charges() == []


def test_a_model_too_large_for_exact_answers_is_refused_before_a_charge(tmp_path):
    ledger = pf.Ledger(tmp_path / "l", total=pf.PureDP(1))
    wide = pf.IsingModel(np.ones((60, 60)) - np.eye(60))
    with pytest.raises(pf.InputError, match="exact answers would need"):
        pf.release_score(wide, np.ones((3, 60)), pf.PureDP(1), ledger=ledger)
    assert ledger.charges() == []
