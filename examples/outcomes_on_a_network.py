"""A network epidemiologist: one sensitive outcome per person, on a public network.

Run it with `python examples/outcomes_on_a_network.py`. It takes a few seconds.
"""

from __future__ import annotations

import networkx as nx
import numpy as np

import privfield as pf

BETA = 0.9  # the true peer effect of these made-up people


def make_outcomes(graph: nx.Graph, seed: int = 1) -> dict[int, int]:
    """Draw ±1 outcomes from the model itself, so that there is a truth to compare with."""
    matrix = nx.to_scipy_sparse_array(graph, dtype=float)
    matrix /= 2 * graph.number_of_edges() / len(graph)  # an edge weighs one over the mean degree
    model = pf.NetworkIsing(matrix, BETA, 0.0, [str(node) for node in graph])
    outcomes = model.sample(1, np.random.default_rng(seed))[0]
    return dict(zip(graph, outcomes.tolist(), strict=True))


def main() -> None:
    # Who met whom is public here. If it were not, this would be the wrong tool.
    graph = nx.random_regular_graph(8, 1000, seed=1)
    outcomes = make_outcomes(graph)

    # Everything that reads an outcome happens in this line; ε is spent once.
    peer = pf.PeerEffect(pf.PureDP(1), scaling="mean-degree").fit(graph, outcomes)

    print(peer.summary())
    low, high = peer.interval_
    print(f"\nThese people are made up, so we may look: the true effect is {BETA}.")
    print(
        f"The interval {low:.2f} to {high:.2f} {'holds' if low <= BETA <= high else 'misses'} it."
    )


if __name__ == "__main__":
    main()
