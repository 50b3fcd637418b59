"""Draw states of a sparse Ising network."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from privfield.checks import check_rng
from privfield.errors import InputError
from privfield.inference.sampling.couplings import Network, network_of
from privfield.inference.sampling.glauber import GlauberChains
from privfield.inference.sampling.run import (
    MAX_BYTES,
    Chains,
    Collect,
    SampleResult,
    check_plan,
    sample_chains,
)
from privfield.inference.sampling.swendsen_wang import ClusterChains

Method = Literal["auto", "glauber", "swendsen-wang"]

_METHODS = ("auto", "glauber", "swendsen-wang")
_FEW, _MANY = 4, 64
_NODES_FOR_MANY = 100_000
_DRAWS_FOR_MANY = 512


def sample_network(
    couplings: Any,
    field: ArrayLike | None = None,
    n: int = 1000,
    rng: np.random.Generator | None = None,
    *,
    beta: float = 1.0,
    method: Method = "auto",
    chains: int | None = None,
    burn_in: int | None = None,
    thin: int | None = None,
    collect: Collect = "states",
    max_bytes: int = MAX_BYTES,
) -> SampleResult:
    """Draw n states of P(x) ∝ exp(½ β xᵀJx + Σ field_i x_i), x_i = ±1, by Markov chains.

    `couplings` J is symmetric with zero diagonal, scipy sparse or dense; `field` is one number or
    one per node. Statistics kept with each draw: `interaction` ½ xᵀJx (without β), `total` Σx, and
    `overlap` Σ x·r with an earlier state r of the first chain, which shows chains that are stuck in
    different places where the first two look alike.

    "auto" takes Glauber dynamics where every node's Σ_j tanh|βJ_ij| is below 1 (Dobrushin's
    condition: it then mixes in about log(nodes) sweeps), else Swendsen–Wang if no coupling is
    negative, else Glauber. `chains` is 4, or 64 for Glauber with n ≥ 512 on at most 100,000 nodes.
    Without `burn_in` a pilot run of doubling stages decides when to start and, without `thin`, how
    many sweeps lie between draws: see `SampleResult.burn_in` and `.thin` for what was taken.

    `collect` is "states" (int8), "statistics" (no states are kept), or a function that gets
    the states (chains, nodes) of each round and returns one row per chain.

    >>> import numpy as np
    >>> ring = np.roll(np.eye(5), 1, axis=0) + np.roll(np.eye(5), -1, axis=0)
    >>> result = sample_network(ring, 0.1, n=1000, rng=np.random.default_rng(0), beta=0.3)
    >>> result.states.shape, result.converged
    ((1000, 5), True)
    """
    if method not in _METHODS:
        raise InputError(f"method must be one of {', '.join(_METHODS)}; got {method!r}")
    generator = check_rng(rng)
    network = network_of(couplings, field, beta)
    kind = choose_method(network) if method == "auto" else method
    if chains is None:
        many = kind == "glauber" and network.nodes <= _NODES_FOR_MANY
        chains = _MANY if many and isinstance(n, int) and n >= _DRAWS_FOR_MANY else _FEW
    check_plan(n, chains, burn_in, thin, collect, row_bytes=network.nodes, max_bytes=max_bytes)
    walk: Chains
    if kind == "glauber":
        walk = GlauberChains(network, chains, generator)
    else:
        walk = ClusterChains(network, chains, generator)
    return sample_chains(
        walk, network.nodes, n, method=kind, burn_in=burn_in, thin=thin, collect=collect
    )


def choose_method(network: Network) -> Literal["glauber", "swendsen-wang"]:
    """What "auto" takes."""
    scaled = network.beta * network.couplings
    running = np.concatenate([[0.0], np.cumsum(np.tanh(np.abs(scaled)))])
    influence = np.diff(running[network.starts])
    if influence.max(initial=0.0) < 1 or (scaled < 0).any():
        return "glauber"
    return "swendsen-wang"
