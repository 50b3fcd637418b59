"""The promise holds on every path: an adversary chooses what each step gives out.

What a step does next follows from outcomes. Those of noise are seldom far out, so paths behind them
are seldom seen. Here noisy numbers are anything that 64 bits hold, and choices are uniform.
"""

from fractions import Fraction

import numpy as np
import pytest

import privfield as pf
from privfield.audit.promise import check_world
from privfield.mechanisms.registry import MECHANISMS
from privfield.privacy.laws import Choice, Flip, Noise
from privfield.privacy.randomness import Randomness
from privfield.privacy.terms import Terms

ADAPTIVE = (
    *("EdgeSelection", "ItemScores", "PseudolikelihoodGradients", "MultiplicativeWeights"),
    *("IsingFrankWolfe", "LossFrankWolfe", "PerturbedLeader"),
)


def cases():
    for kind in MECHANISMS:
        for adjacency in kind.adjacencies:
            for budget in (pf.PureDP(1), pf.ZCDP(0.1)):
                terms = Terms(budget, adjacency)
                if kind.__name__ in ADAPTIVE and kind.takes(terms):
                    name = f"{kind.__name__}-{adjacency}-{type(budget).__name__}"
                    yield pytest.param(kind, terms, id=name)


CASES = list(cases())


def let_an_adversary_choose(monkeypatch, law=lambda law: law):
    """Outcomes by whim; `law` plants a fault."""
    rng = np.random.default_rng()
    draw = Randomness.draw

    def outcome(self, law, values, entropy):
        exact = np.asarray(values)
        if isinstance(law, Choice | Flip):
            return rng.integers(0, exact.shape[-1], exact.size // exact.shape[-1])
        if not isinstance(law, Noise):
            return law.draw(values, entropy)
        size = 10 ** rng.uniform(0, 17)
        whims = (rng.normal(size=exact.shape), np.ones(exact.shape), -np.ones(exact.shape))
        return (size * whims[rng.integers(3)]).astype(np.int64)

    monkeypatch.setattr(Randomness, "_outcome", outcome)
    monkeypatch.setattr(
        Randomness, "draw", lambda self, step, own, values: draw(self, step, law(own), values)
    )


def test_all_of_them_are_there():
    assert {case.values[0].__name__ for case in CASES} == set(ADAPTIVE)


@pytest.mark.parametrize(("kind", "terms"), CASES)
def test_the_promise_is_kept_whatever_comes_out(kind, terms, monkeypatch):
    let_an_adversary_choose(monkeypatch)
    for world in kind.worlds(terms):
        found = check_world(world, (0,))
        assert found.problem is None and found.pairs


# whatever comes out, these spend all that they have
@pytest.mark.parametrize(
    ("kind", "terms"), [case for case in CASES if case.id[:4] in ("Edge", "Item")]
)
def test_a_fault_is_seen(kind, terms, monkeypatch):
    let_an_adversary_choose(monkeypatch, lambda law: law.quieter(Fraction(3)))
    assert any(check_world(world, (0,)).problem for world in kind.worlds(terms))
