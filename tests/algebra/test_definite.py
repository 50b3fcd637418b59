import numpy as np
import pytest

from privfield.algebra.definite import evidence, inverse, solve, squared


@pytest.fixture(params=[1, 2, 7, 40])
def matrix(request):
    root = np.random.default_rng(request.param).normal(size=(request.param, request.param))
    return root @ root.T + 0.1 * np.eye(request.param)


def test_inverse_and_solution_are_those_of_elimination(matrix):
    right = np.random.default_rng(1).normal(size=(len(matrix), 3))
    assert np.allclose(inverse(matrix), np.linalg.inv(matrix), rtol=1e-8)
    assert np.array_equal(inverse(matrix), inverse(matrix).T)
    assert np.allclose(solve(matrix, right), np.linalg.solve(matrix, right), rtol=1e-8)
    assert np.allclose(solve(matrix, right[:, 0]), solve(matrix, right)[:, 0])


def test_squares_are_those_of_the_solution(matrix):
    right = np.random.default_rng(3).normal(size=(len(matrix), 5))
    found = squared(matrix, right)
    assert np.allclose(found, right.T @ np.linalg.solve(matrix, right), rtol=1e-8)
    assert np.array_equal(found, found.T)


def test_evidence_is_a_quadratic_form_and_a_determinant(matrix):
    right = np.random.default_rng(2).normal(size=len(matrix))
    wanted = right @ np.linalg.solve(matrix, right) / 2 - np.linalg.slogdet(matrix)[1] / 2
    assert evidence(matrix, right) == pytest.approx(wanted)


def test_what_rounding_left_indefinite_is_eliminated():
    matrix = np.diag([1.0, -1e-3, 2.0])
    assert np.allclose(inverse(matrix) @ matrix, np.eye(3))
    assert np.allclose(matrix @ solve(matrix, np.ones(3)), 1)
    assert np.allclose(squared(matrix, np.eye(3)), np.linalg.inv(matrix))


def test_nothing_has_nothing():
    assert inverse(np.zeros((0, 0))).shape == (0, 0)
    assert squared(np.zeros((0, 0)), np.zeros((0, 1))).shape == (1, 1)
