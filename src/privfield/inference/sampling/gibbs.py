"""Gibbs sampling of any discrete model, one variable at a time."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privfield.checks import check_rng
from privfield.errors import InputError
from privfield.inference.factors import Factors
from privfield.inference.sampling.couplings import chain_words
from privfield.inference.sampling.run import (
    MAX_BYTES,
    Collect,
    SampleResult,
    check_plan,
    sample_chains,
)
from privfield.inference.sampling.start_state import StartStates
from privfield.kernels.pace import Pace

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_CHAINS = 4
_CHAINS_IF_RUGGED = 16


def sample_gibbs(
    factors: Factors,
    n: int = 1000,
    rng: np.random.Generator | None = None,
    *,
    start: ArrayLike | None = None,
    chains: int | None = None,
    burn_in: int | None = None,
    thin: int | None = None,
    collect: Collect = "states",
    max_bytes: int = MAX_BYTES,
) -> SampleResult:
    """Draw n states of `factors` by Gibbs sampling; a sweep redraws each variable in turn.

    Every redraw leaves P unchanged, so sweeps do. Where tables forbid nothing, every state can be
    reached from every other. Forbidden states (−inf) can cut the allowed ones into islands: if two
    variables must be equal, neither can change alone, and a chain never leaves the island it starts
    on, however long it runs. Cells more than 20 below the largest of their table are hardly ever
    crossed either. The chains start at different allowed states, away from such cells if possible
    (16 of them then, instead of 4), so islands show as a large split-R̂ and `converged` is False;
    islands that no start hit stay unseen. Draw such models exactly where the treewidth allows.

    `start` is an allowed state, or one per chain; without it one is searched for. Statistics kept:
    `log_weight` (the sum of tables' cells), `total` (the sum of codes), `overlap` (variables
    equal to an earlier state of the first chain). Burn-in, thinning and `collect` are as in
    `sample_network`; states are the smallest of int8, int16, int32 that holds the codes. With n = 0
    no chain is run.
    """
    generator = check_rng(rng)
    if any(levels < 1 for levels in factors.shape):
        raise InputError(f"every variable needs at least one level; got shape {factors.shape}")
    starts = StartStates(factors)
    if chains is None:
        chains = _CHAINS_IF_RUGGED if starts.restricted else _CHAINS
    row = len(factors.shape) * _state_type(factors).itemsize
    check_plan(n, chains, burn_in, thin, collect, row_bytes=row, max_bytes=max_bytes)
    if start is None:
        states = np.stack([starts.draw(generator) for _ in range(chains)])
    else:
        states = _read_start(factors, start, chains)
    walk = GibbsChains(factors, states, generator)
    return sample_chains(
        walk,
        len(factors.shape),
        n,
        method="gibbs",
        burn_in=burn_in,
        thin=thin,
        collect=collect,
    )


class GibbsChains:
    """Chains that redraw every variable once per sweep, in the order of the variables."""

    names: tuple[str, ...] = ("log_weight", "total", "overlap")

    def __init__(
        self, factors: Factors, states: NDArray[np.int32], rng: np.random.Generator
    ) -> None:
        self._shape = np.array(factors.shape, dtype=np.int64)
        self._cells, offsets, self._starts, self._tables_of, self._strides = _flatten(factors)
        self._type = _state_type(factors)
        self._states = np.ascontiguousarray(states, dtype=np.int32)
        self.count = states.shape[0]
        self._positions = np.tile(offsets, (self.count, 1))
        for variable in range(len(factors.shape)):
            rows = slice(self._starts[variable], self._starts[variable + 1])
            steps = np.outer(self._states[:, variable], self._strides[rows])
            self._positions[:, self._tables_of[rows]] += steps
        weights = self._cells[self._positions].sum(axis=1) if offsets.size else np.zeros(1)
        if not (weights > -np.inf).all():
            raise InputError("start must be an allowed state; a table forbids it")
        self._words = chain_words(self.count, rng)
        self._pace = Pace()
        self._out = np.empty((self.count, len(self.names)))
        self._reference = self._later = self._states[0].copy()

    def advance(self, sweeps: int) -> None:
        """Run every chain `sweeps` sweeps on."""
        from privfield.inference.sampling.gibbs_kernels import sweep_tables

        for rows, part in self._pace.parts(sweeps, self.count):
            sweep_tables(
                self._shape,
                self._starts,
                self._tables_of,
                self._strides,
                self._cells,
                self._states[rows],
                self._positions[rows],
                self._words[rows],
                part,
            )

    def statistics(self) -> FloatArray:
        """Log-weight, sum of codes and agreements with the reference, (chains, 3)."""
        from privfield.inference.sampling.gibbs_kernels import measure_tables

        measure_tables(self._cells, self._reference, self._states, self._positions, self._out)
        return self._out.copy()

    def states(self) -> NDArray[np.signedinteger]:
        """Present states, (chains, variables)."""
        return self._states.astype(self._type)

    def mark(self) -> None:
        """Overlaps are now with the first chain's state at the mark before this one."""
        self._reference, self._later = self._later, self._states[0].copy()


def _flatten(factors: Factors) -> tuple[FloatArray, IntArray, IntArray, IntArray, IntArray]:
    """All cells; where each table begins; and by variable: its tables and its strides in them."""
    tables = [np.ascontiguousarray(table, dtype=np.float64) for table in factors.tables]
    offsets = np.cumsum([0, *(table.size for table in tables)])[:-1].astype(np.int64)
    listed: list[list[tuple[int, int]]] = [[] for _ in factors.shape]
    for number, (clique, table) in enumerate(zip(factors.cliques, tables, strict=True)):
        for axis, variable in enumerate(clique):
            listed[variable].append((number, math.prod(table.shape[axis + 1 :])))
    starts = np.cumsum([0, *(len(entries) for entries in listed)]).astype(np.int64)
    pairs = np.array([pair for entries in listed for pair in entries], dtype=np.int64)
    pairs = pairs.reshape(-1, 2)
    cells = np.concatenate([np.zeros(0), *(table.ravel() for table in tables)])
    return (
        cells,
        offsets,
        starts,
        np.ascontiguousarray(pairs[:, 0]),
        np.ascontiguousarray(pairs[:, 1]),
    )


def _state_type(factors: Factors) -> np.dtype[np.signedinteger]:
    top = max(factors.shape, default=1) - 1
    kinds = (np.int8, np.int16, np.int32)
    return np.dtype(next(kind for kind in kinds if top <= np.iinfo(kind).max))


def _read_start(factors: Factors, start: ArrayLike, chains: int) -> NDArray[np.int32]:
    size = len(factors.shape)
    given = np.asarray(start)
    if given.shape not in ((size,), (chains, size)):
        raise InputError(
            f"start must be a state of {size} codes, or one per chain ({chains}, {size}); got "
            f"shape {given.shape}"
        )
    if given.size and given.dtype.kind not in "iu":
        raise InputError(f"start must hold whole numbers; got {given.dtype}")
    if ((given < 0) | (given >= np.array(factors.shape, dtype=np.int64))).any():
        raise InputError("start must hold codes from 0 to each variable's number of levels − 1")
    return np.array(np.broadcast_to(given, (chains, size)), dtype=np.int32)
