"""Tables of all pairs against the joint table: any graph, zeros, single levels, lone variables."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privfield.inference.contraction import pairs as module
from privfield.inference.contraction.pairs import pair_marginals
from privfield.inference.contraction.plan import plan_contraction


def joint_of(shape, cliques, tables):
    logs = np.zeros(shape)
    for clique, table in zip(cliques, tables, strict=True):
        spread = [shape[v] if v in clique else 1 for v in range(len(shape))]
        logs = logs + np.transpose(table, np.argsort(clique)).reshape(spread)
    with np.errstate(invalid="ignore"):
        weights = np.exp(logs - max(logs.max(), -1e300))
    return weights / max(weights.sum(), 1e-300)


def compare(shape, cliques, tables, asked):
    joint = joint_of(shape, cliques, tables)
    found = pair_marginals(plan_contraction(shape, cliques), tables, asked)
    assert list(found) == list(dict.fromkeys(asked))
    for (i, j), table in found.items():
        expected = joint.sum(axis=tuple(v for v in range(len(shape)) if v not in (i, j)))
        np.testing.assert_allclose(table, expected if i < j else expected.T, atol=1e-12)


@given(
    seed=st.integers(0, 2**32 - 1),
    variables=st.integers(2, 8),
    density=st.floats(0, 0.9),
    zeros=st.sampled_from([0.0, 0.2, 0.7]),
    size=st.sampled_from([1.0, 30.0, 400.0]),
    block=st.sampled_from([1, 200, 2**22]),
    kept=st.sampled_from([0, 2**24]),
)
@settings(max_examples=120, deadline=None, derandomize=True)
def test_pairs_of_random_models(seed, variables, density, zeros, size, block, kept):
    """Potentials of size 400 take the logarithmic way; small blocks make sources travel alone."""
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.integers(1, 4, variables, endpoint=True))
    cliques = [pair for pair in combinations(range(variables), 2) if rng.random() < density]
    cliques += [(v,) for v in range(variables) if rng.random() < 0.7]
    if variables > 3:
        cliques.append(tuple(int(v) for v in rng.permutation(variables)[:3]))
    tables = [rng.normal(0, size, [shape[v] for v in clique]) for clique in cliques]
    for table in tables:
        table[rng.random(table.shape) < zeros] = -np.inf
    asked = [pair for pair in combinations(range(variables), 2) if rng.random() < 0.8]
    asked = [pair if rng.random() < 0.5 else pair[::-1] for pair in asked]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK_CELLS", block)
        patch.setattr(module, "_KEPT_CELLS", kept)
        compare(shape, cliques, tables, asked)


def test_both_ways_round_and_twice():
    rng = np.random.default_rng(0)
    tables = [rng.normal(size=(3, 2)), rng.normal(size=(2, 4))]
    compare((3, 2, 4), [(0, 1), (1, 2)], tables, [(0, 2), (2, 0), (0, 2), (0, 1)])


def test_a_star_of_many_leaves():
    """All leaves are conditionally independent of each other, given the hub."""
    rng = np.random.default_rng(1)
    leaves = 40
    shape = (2,) * (leaves + 1)
    cliques = [(0, leaf) for leaf in range(1, leaves + 1)]
    tables = [rng.normal(size=(2, 2)) for _ in cliques]
    each = [np.exp(table) / np.exp(table).sum(axis=1, keepdims=True) for table in tables]
    hub = np.prod([np.exp(table).sum(axis=1) for table in tables], axis=0)
    asked = list(combinations(range(1, leaves + 1), 2))
    found = pair_marginals(plan_contraction(shape, cliques), tables, asked)
    for i, j in asked:
        expected = np.einsum("h,ha,hb->ab", hub / hub.sum(), each[i - 1], each[j - 1])
        np.testing.assert_allclose(found[i, j], expected, atol=1e-12)
