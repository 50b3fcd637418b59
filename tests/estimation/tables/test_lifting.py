"""The map from whole tables to log-potentials, against the analysis of variance by hand."""

from itertools import combinations

import numpy as np
import pytest

from privfield.algebra.contrasts import centre, closure
from privfield.estimation.tables.lifting import Lift

SHAPE = (3, 4, 2, 1)
CASES = [
    closure([(0, 1), (1, 2), (2, 3)]),
    closure([(0, 1, 2), (1, 3)]),
    closure([(0, 1, 2, 3)]),
    [(), (0,), (0, 1), (1, 2)],  # where (1,) and (2,) were not released, nothing takes their means
]


def cut(flat, scopes):
    shapes = [tuple(SHAPE[v] for v in scope) for scope in scopes]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
    pieces = zip(scopes, np.split(flat, ends), shapes, strict=True)
    return {scope: piece.reshape(shape) for scope, piece, shape in pieces}


def lift_of(case):
    scopes = [scope for scope in case if scope]
    return scopes, Lift(scopes, [tuple(SHAPE[v] for v in scope) for scope in scopes])


def by_hand(tables):
    """Every part of every table's analysis of variance, added where it belongs."""
    theta = {scope: np.zeros_like(table) for scope, table in tables.items()}
    for scope, table in tables.items():
        for size in range(1, len(scope) + 1):
            for part in combinations(scope, size):
                away = tuple(axis for axis, v in enumerate(scope) if v not in part)
                if part in theta:
                    theta[part] += centre(table.mean(axis=away))
    return theta


@pytest.mark.parametrize("case", CASES)
def test_log_potentials_are_the_parts_of_all_tables(case):
    scopes, lift = lift_of(case)
    flat = np.random.default_rng(0).normal(size=lift.means.shape[1])
    found = cut(lift.potentials(flat), scopes)
    for scope, expected in by_hand(cut(flat, scopes)).items():
        np.testing.assert_allclose(found[scope], expected, atol=1e-12)
    alone = np.concatenate([centre(table).ravel() for table in cut(flat, scopes).values()])
    np.testing.assert_allclose(lift.centred(flat), alone, atol=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_centred_tables_are_their_own_log_potentials(case):
    _, lift = lift_of(case)
    theta = lift.centred(np.random.default_rng(1).normal(size=lift.means.shape[1]))
    np.testing.assert_allclose(lift.potentials(theta), theta, atol=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_slopes_are_finite_differences(case):
    """Of a function of θ that is not quadratic, at a point that is not centred."""
    _, lift = lift_of(case)
    rng = np.random.default_rng(2)
    size = lift.means.shape[1]
    flat, pull = rng.normal(size=size), rng.normal(size=size)

    def value(tables):
        theta = lift.potentials(tables)
        return np.cosh(theta).sum() + pull @ theta

    found = lift.slopes(np.sinh(lift.potentials(flat)) + pull)
    for cell, step in enumerate(1e-5 * np.eye(size)):
        expected = (value(flat + step) - value(flat - step)) / 2e-5
        assert found[cell] == pytest.approx(expected, abs=1e-7)
