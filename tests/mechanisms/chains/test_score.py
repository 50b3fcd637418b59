"""Log-likelihood of people kept back: exact for the owner, noisy for everyone else."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import kstest

import privfield as pf
from privfield.data.sequences.read import SequenceSource, StateSet
from privfield.mechanisms.chains import score as chain_holdout
from privfield.mechanisms.chains.score import GRID, clipped_sum, owner_score, release_score
from privfield.models.chain import ChainModel
from privfield.privacy.adjacency import Sensitivity
from privfield.privacy.noise import NoiseLaw, add_noise

AB = StateSet.of(["a", "b"])
MODEL = ChainModel(["a", "b"], [0.5, 0.5], [[0.75, 0.25], [0, 1]])
PEOPLE = [["a", "a"], ["b"], ["b", "a"], [], [["a", "b"], ["b"]]]
BOUND = 2


def test_the_owner_sees_the_exact_number_marked_private():
    people = [PEOPLE[0], PEOPLE[1], PEOPLE[4]]
    score = owner_score(MODEL, people, AB)
    assert score.log_likelihood == pytest.approx(math.log(0.375 * 0.5 * 0.125 * 0.5))
    assert score.people == 3 and score.mean == pytest.approx(score.log_likelihood / 3)
    assert score.stamp == "PRIVATE: for the data's owner" and "PRIVATE" in repr(score)
    assert math.isnan(owner_score(MODEL, [], AB).mean)


def losses(people):
    return clipped_sum(MODEL, SequenceSource(AB, people).read(), BOUND * GRID)


def test_losses_are_clipped_whole_numbers():
    assert losses([PEOPLE[1]]) == math.ceil(GRID * math.log(2))
    assert losses([PEOPLE[2]]) == losses([["a"] * 50]) == BOUND * GRID  # impossible, or too long
    assert losses([[]]) == losses([]) == 0


HISTORIES = [list(s) for n in range(5) for s in product("ab?", repeat=n)]


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("ids", [False, True])
def test_the_promise_by_enumeration(adjacency, ids):
    """One person moves sum and count by no more than the noise hides; the bound is attained."""
    people = ["x", "y"] if ids else None
    score = release_score(
        *(MODEL, [["a"], ["b"]], AB, pf.PureDP(1), BOUND, adjacency), people=people
    )
    public = adjacency == "replace-one" and not ids
    assert (score.people_law is None) == public
    each = [losses([h]) for h in HISTORIES]
    pairs = [(a - b, 0) for a in each for b in each] if adjacency == "replace-one" else []
    if not public:
        pairs += [(a, 1) for a in each]  # a person may be there or not
    noise = Fraction(score.law.scale) * GRID
    person = 0 if public else BOUND * GRID // 2
    shifts = [abs(moved) + there * person for moved, there in pairs]
    assert max(shifts) / noise == pytest.approx(1.0)
    assert max(shifts) / noise <= 1


def test_an_understated_sensitivity_or_halved_noise_is_caught(monkeypatch):
    """The noise in 1,500 releases against the law that is stated: false alarms below 1e-7."""

    def fits():
        truth = -losses(PEOPLE) / GRID
        draws = []
        for _ in range(1500):
            score = release_score(MODEL, PEOPLE, AB, pf.PureDP(1), BOUND, "add-remove")
            draws.append((score.log_likelihood - truth) / score.law.scale)
        return kstest(draws, "laplace").pvalue > 1e-7

    assert fits()
    with monkeypatch.context() as patch:
        patch.setattr(
            chain_holdout,
            "add_noise",
            lambda values, law, seed: add_noise(values, NoiseLaw(law.name, law.scale / 2), seed),
        )
        assert not fits()
    honest = release_score(MODEL, PEOPLE, AB, pf.PureDP(1), BOUND).law.scale
    assert honest == pytest.approx(BOUND)
    monkeypatch.setattr(chain_holdout, "Sensitivity", lambda a, b: Sensitivity(a // 2, b // 4))
    assert release_score(MODEL, PEOPLE, AB, pf.PureDP(1), BOUND).law.scale < honest


def test_what_comes_back():
    people = [["a"]] * 4000
    score = release_score(MODEL, people, AB, pf.PureDP(5), 3)
    assert score.people == 4000 and score.mean == pytest.approx(-math.log(2), abs=0.02)
    assert score.cost == pf.PureDP(5) and score.stamp is None
    assert score.margin() == pytest.approx(3 / 5 * math.log(20), rel=0.01)
    noisy = release_score(MODEL, people, AB, pf.PureDP(5), 3, "add-remove")
    assert noisy.people != 4000 or noisy.people_law is not None
    assert noisy.mean == pytest.approx(-math.log(2), abs=0.05)
    exact = release_score(MODEL, people, AB, pf.NON_PRIVATE, 3)
    assert exact.stamp.startswith("NOT PRIVATE") and "NOT PRIVATE" in repr(exact)
    seeded = [release_score(MODEL, people, AB, pf.PureDP(1), 3, insecure_seed=1) for _ in range(2)]
    assert seeded[0] == seeded[1] and seeded[0].stamp.startswith("NOT PRIVATE")


def test_a_job_is_released_once(tmp_path):
    ledger = pf.Ledger(tmp_path / "l", total=pf.PureDP(1))
    options = {"ledger": ledger, "job": "score"}
    first = release_score(MODEL, PEOPLE, AB, pf.PureDP(0.5), 3, **options)
    assert release_score(MODEL, PEOPLE, AB, pf.PureDP(0.5), 3, **options) == first
    assert ledger.spent.epsilon == 0.5
    other = ChainModel(["a", "b"], [0.4, 0.6], np.eye(2))
    with pytest.raises(pf.InputError, match="another request"):
        release_score(other, PEOPLE, AB, pf.PureDP(0.5), 3, **options)


def test_bad_input():
    bad = [
        ({"model": 3}, "model must be a ChainModel; got int"),
        ({"states": StateSet.of(["b", "a"])}, "same states"),
        ({"budget": None}, "budget must be"),
        ({"bound": 0}, "bound must lie"),
        ({"bound": float("inf")}, "bound must be finite"),
        ({"adjacency": "flip-outcome"}, "for chains"),
        ({"insecure_seed": "x"}, "insecure_seed"),
        ({"sequences": 5}, "sequences must be"),
    ]
    good = {"model": MODEL, "sequences": PEOPLE, "states": AB, "budget": pf.PureDP(1), "bound": 3}
    for change, text in bad:
        with pytest.raises(pf.InputError, match=text):
            release_score(**{**good, **change})
