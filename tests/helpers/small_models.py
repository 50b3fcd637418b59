"""Models small enough to enumerate, and the enumeration."""

from itertools import product

import numpy as np
from hypothesis import strategies as st

import privfield as pf


def enumerate_model(model):
    """All states with their probabilities, and log Z, straight from the definition."""
    factors = model.factors
    states = np.array(list(product(*(range(k) for k in factors.shape))))
    scores = np.zeros(len(states))
    for clique, table in zip(factors.cliques, factors.tables, strict=True):
        scores += table[tuple(states[:, list(clique)].T)]
    top = scores.max()
    log_z = top + np.log(np.exp(scores - top).sum())
    return states, np.exp(scores - log_z), log_z


def enumerated_marginal(model, positions):
    states, probability, _ = enumerate_model(model)
    if not len(positions):
        return probability.sum()
    table = np.zeros([model.factors.shape[i] for i in positions])
    np.add.at(table, tuple(states[:, list(positions)].T), probability)
    return table


@st.composite
def random_fields(draw, zeros=True):
    """Random Markov random fields with up to six variables of one to three levels."""
    size = draw(st.integers(1, 6))
    shape = [draw(st.integers(1, 3)) for _ in range(size)]
    schema = pf.Schema({f"v{i}": k for i, k in enumerate(shape)})
    cliques = draw(
        st.lists(st.lists(st.integers(0, size - 1), max_size=3, unique=True), max_size=7)
    )
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    tables = []
    for clique in cliques:
        table = 2 * rng.standard_normal([shape[i] for i in clique])
        if zeros and table.size > 2 and draw(st.booleans()):
            flat = table.ravel()
            flat[rng.integers(1, table.size)] = -np.inf  # cell 0 stays possible everywhere
            table = flat.reshape(table.shape)
        tables.append(table)
    return pf.MarkovRandomField(schema, [[f"v{i}" for i in c] for c in cliques], tables)
