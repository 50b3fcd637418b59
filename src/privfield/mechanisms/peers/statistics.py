"""Noisy sufficient statistics of outcomes on a public network: docs/privacy/peer-effects.md."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.data.network.outcomes import check_missing, open_outcomes, positive_level
from privfield.data.network.public import PublicNetwork
from privfield.errors import InputError
from privfield.mechanisms.peers.release import StatisticRelease
from privfield.privacy.adjacency import Adjacency, Sensitivity
from privfield.privacy.budgets import ZCDP, Budget, NonPrivate, PureDP, check_budget
from privfield.privacy.ledger import Ledger
from privfield.privacy.mechanism import release
from privfield.privacy.noise import (
    NoiseLaw,
    add_noise,
    check_noise,
    check_seed,
    choose_noise,
    gaussian_scale,
    laplace_scale,
)
from privfield.privacy.released import stamp_of

LARGEST_SCALE = 2.0**56  # noise on 64-bit whole numbers; beyond it could reach their ends
_SHARE_OF_H = 3  # parts of the budget; every further statistic gets one
_COVARIATE_BITS = 20


@dataclass(frozen=True, eq=False)
class Covariate:
    """Public numbers x, one per node, as whole multiples of a unit."""

    name: str
    integers: NDArray[np.int64]
    unit: float

    @property
    def values(self) -> NDArray[np.float64]:
        """x."""
        return np.asarray(self.integers * self.unit, dtype=np.float64)


def read_covariates(
    field: bool, covariates: Mapping[str, Any] | None, network: PublicNetwork
) -> tuple[Covariate, ...]:
    """The field (x = 1 everywhere) and covariates: arrays in node order or mappings from nodes."""
    if not isinstance(field, bool):
        raise InputError(f"field must be True or False; got {type(field).__name__}.")
    if covariates is not None and not isinstance(covariates, Mapping):
        raise InputError("covariates must map names to one public number per node.")
    found = [Covariate("field", np.ones(network.nodes, dtype=np.int64), 1.0)] if field else []
    for name, given in (covariates or {}).items():
        if not isinstance(name, str) or name in ("H", "field", "beta", ""):
            raise InputError("covariates: names must be text other than 'H', 'beta' and 'field'.")
        found.append(_read_covariate(name, given, network))
    return tuple(found)


def _read_covariate(name: str, given: Any, network: PublicNetwork) -> Covariate:
    try:
        if isinstance(given, Mapping):
            given = [given[node] for node in network.names]
        values = np.asarray(given, dtype=np.float64)
    except (KeyError, TypeError, ValueError):
        values = np.full(0, np.nan)
    if values.shape != (network.nodes,) or not np.isfinite(values).all():
        raise InputError(
            f"covariates: {name!r} must hold one finite number for each of {network.nodes} nodes."
        )
    sizes = np.abs(values[values != 0])
    if not sizes.size:
        raise InputError(f"covariates: {name!r} is 0 at every node.")
    if (sizes == sizes[0]).all():
        return Covariate(name, np.sign(values).astype(np.int64), float(sizes[0]))
    unit = 2.0 ** (np.ceil(np.log2(sizes.max())) - _COVARIATE_BITS)
    return Covariate(name, np.rint(values / unit).astype(np.int64), float(unit))


def whole_discordance(network: PublicNetwork, signs: NDArray[np.int8]) -> int:
    """(Σ_ij J_ij − σᵀJσ)/4 in units: the coupling between nodes that differ, each pair once."""
    spins = signs.astype(np.int64)
    return (network.total - int(spins @ (network.integers @ spins))) // 4


def measure_network(
    network: PublicNetwork,
    outcomes: Any,
    budget: Budget | NonPrivate,
    *,
    covariates: tuple[Covariate, ...] = (),
    noise: str = "auto",
    missing: str = "error",
    schema: Any = None,
    ledger: Ledger | None = None,
    job: str | None = None,
    insecure_seed: int | None = None,
) -> StatisticRelease:
    """Release σᵀJσ, and Σxσ of each covariate, with noise: `budget`-private if an outcome flips.

    Reversing one outcome moves σᵀJσ by at most 4·max_j Σ_i |J_ij| and Σxσ by at most 2·max|x|. The
    budget is shared 3 : 1 : … : 1. "auto" takes the noise with the smaller standard deviation.
    """
    spend = check_budget(budget)
    check_missing(missing)
    positive = positive_level(schema)
    if insecure_seed is not None:
        check_seed(insecure_seed)
    sensitivities = [network.largest_row_sum]
    sensitivities += [int(np.abs(each.integers).max()) for each in covariates]
    laws, cost = choose_laws(spend, sensitivities, noise)
    names = ("H", *(each.name for each in covariates))
    totals = [int(each.integers.sum()) for each in covariates]
    starts = [total * each.unit for total, each in zip(totals, covariates, strict=True)]
    origins = (network.total * network.unit, *starts)
    steps = (-4 * network.unit, *(-2 * each.unit for each in covariates))
    stamp = stamp_of(spend, insecure_seed)

    def prepare() -> Callable[[], bytes]:
        read = open_outcomes(outcomes, network.names, missing, schema)

        def run() -> bytes:
            signs = read()
            counts = [whole_discordance(network, signs)]
            counts += [int(each.integers[signs < 0].sum()) for each in covariates]
            noisy = tuple(
                _with_noise(count, law, insecure_seed, place)
                for place, (count, law) in enumerate(zip(counts, laws, strict=True))
            )
            return StatisticRelease(
                network.digest, cost, stamp, names, noisy, origins, steps, laws
            ).to_bytes()

        return run

    request = {
        "what": "network statistics",
        "network": network.digest,
        "missing": missing,
        "positive": positive,
        "covariates": [[each.name, each.unit, each.integers.tolist()] for each in covariates],
        "noise": [[law.name, law.scale] for law in laws],
        "insecure": insecure_seed is not None,
    }
    released = release(
        prepare,
        what=f"{', '.join(names)} of a network of {network.nodes} nodes, {laws[0].name} noise",
        cost=cost,
        budget=spend,
        adjacency=Adjacency.FLIP_OUTCOME,
        unit="outcome of a node",
        request=request,
        ledger=ledger,
        job=job,
    )
    return StatisticRelease.from_bytes(released)


def _with_noise(count: int, law: NoiseLaw, insecure_seed: int | None, place: int) -> int:
    if law.name == "none":
        return count
    seed = None if insecure_seed is None else insecure_seed + place
    return int(add_noise(np.array([count], dtype=np.int64), law, seed)[0])


def choose_laws(
    budget: Budget | NonPrivate, sensitivities: list[int], noise: str = "auto"
) -> tuple[tuple[NoiseLaw, ...], Budget | NonPrivate]:
    """One noise law per statistic, all of one kind, and what they cost together.

    Each statistic is a release of its own with a share of the budget; costs add. The joint change
    of all statistics can reach every single bound at once, so no other split of one budget is
    better than a choice of shares.
    """
    check_noise(noise)
    if isinstance(budget, NonPrivate):
        return (NoiseLaw("none", 0.0),) * len(sensitivities), budget
    one = Sensitivity(1, 1)
    kind, cost = choose_noise(budget, one, noise)
    parts = [_SHARE_OF_H] + [1] * (len(sensitivities) - 1)
    shares = [Fraction(part, sum(parts)) for part in parts]
    pairs = list(zip(sensitivities, shares, strict=True))
    laws: tuple[NoiseLaw, ...]
    if kind.name == "discrete-laplace":
        assert isinstance(cost, PureDP)
        epsilon = cost.exact_epsilon
        laws = tuple(
            NoiseLaw("discrete-laplace", laplace_scale(Sensitivity(s, s * s), epsilon * share))
            for s, share in pairs
        )
    else:
        assert isinstance(cost, ZCDP)
        rho = cost.exact_rho
        laws = tuple(
            NoiseLaw("discrete-gaussian", gaussian_scale(Sensitivity(s, s * s), rho * share))
            for s, share in pairs
        )
    if max(law.scale for law in laws) > LARGEST_SCALE:
        raise InputError("budget is too small for this network: noise would exceed 64 bits.")
    return laws, cost
