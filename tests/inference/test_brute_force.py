"""The oracle itself, against sums written out by hand."""

import math
from itertools import product

import numpy as np
import pytest

import brute_force
from privfield.errors import InputError
from privfield.inference.factors import Factors

RNG = np.random.default_rng(0)
SHAPE = (2, 3, 1, 2)
CLIQUES = ((1, 0), (3, 2, 1), (0,), ())
TABLES = tuple(np.asarray(RNG.normal(size=[SHAPE[v] for v in c])) for c in CLIQUES)
FACTORS = Factors(SHAPE, CLIQUES, TABLES)


def weights():
    return {
        x: math.exp(
            sum(float(t[tuple(x[v] for v in c)]) for c, t in zip(CLIQUES, TABLES, strict=True))
        )
        for x in product(*map(range, SHAPE))
    }


def test_all_answers():
    by_hand = weights()
    z = sum(by_hand.values())
    assert brute_force.log_partition(FACTORS) == pytest.approx(math.log(z))
    joint = brute_force.joint_log_probability(FACTORS)
    for x, weight in by_hand.items():
        assert joint[x] == pytest.approx(math.log(weight / z))
    assert brute_force.most_likely_state(FACTORS) == max(by_hand, key=by_hand.get)
    for clique in [(1, 3), (3, 1), (3, 0, 1), (2,), ()]:
        table = brute_force.marginal(FACTORS, clique)
        assert table.shape == tuple(SHAPE[v] for v in clique)
        for cell in product(*(range(SHAPE[v]) for v in clique)):
            parts = [
                w
                for x, w in by_hand.items()
                if all(x[v] == c for v, c in zip(clique, cell, strict=True))
            ]
            assert table[cell] == pytest.approx(sum(parts) / z)


def test_forbidden_and_too_large():
    nothing = Factors((2,), ((0,),), (np.full(2, -np.inf),))
    assert brute_force.log_partition(nothing) == -math.inf
    with pytest.raises(InputError, match="Every state is forbidden"):
        brute_force.most_likely_state(nothing)
    with pytest.raises(
        InputError, match="at most 1,048,576 are allowed; these variables have 2,097,152"
    ):
        brute_force.log_partition(Factors((2,) * 21, (), ()))
    assert brute_force.log_partition(Factors((2,) * 20, (), ())) == pytest.approx(20 * math.log(2))
