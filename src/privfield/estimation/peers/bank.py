"""The simulated stations of a network, kept for the next fit: in memory and, if asked, on disk.

Keys and contents are public: the network, the seed, the statistics. Where to simulate is a function
of the network and, above 5,000 nodes, of numbers that were already released. A release that
protects nobody must not leave a trace here: it gets a bank of its own, `Bank.apart`.
"""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.data.network.public import PublicNetwork
from privfield.errors import InputError
from privfield.estimation.peers.reweighting import Curve, group_curves
from privfield.estimation.peers.stations import Simulator, Station, enumerated
from privfield.files import pack, unpack, write_bytes
from privfield.progress import ProgressCallback, tell

FloatArray = NDArray[np.float64]

EXACT_NODES = 16
_FORMAT = 1
_GAP = 2.4  # in units of 2/sd(H): the H of neighbouring stations must overlap
_WIDEST = 0.25
_KEPT_BANKS = 8
_SAVE_EACH = 100_000  # edges from which every station is worth a file of its own

_BANKS: OrderedDict[str, Bank] = OrderedDict()


class Bank:
    """Stations along β of one network; `fill` adds what is missing between two values."""

    def __init__(
        self,
        network: PublicNetwork,
        *,
        pull: bool = False,
        at: tuple[float, ...] = (),
        seed: int = 0,
        exact: bool = True,
        folder: Path | None = None,
    ) -> None:
        """`exact` enumerates networks of up to 16 nodes instead of simulating them.

        A bank with Σ m_j tanh(g m_j) of each draw, for each g of `at`, is nobody else's.
        """
        self.network = network
        self.stations: dict[float, Station] = {}
        self.shared = folder is not None  # `open_bank` shares the banks in memory, too
        self._pull, self._at = pull, at
        self._seed = seed
        self._folder = folder
        self._simulator: Simulator | None = None
        self._curve: tuple[Curve, list[Curve]] | None = None
        self.is_exact = exact and network.nodes <= EXACT_NODES
        if self.is_exact:
            self.stations[0.0] = enumerated(network, at)
        elif folder is not None:
            self._read()

    @property
    def key(self) -> str:
        """What the stations depend on."""
        text = f"{_FORMAT} {self.network.digest} {self._pull} {self._seed} {self.is_exact}"
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def apart(self) -> Bank:
        """A bank of the same network that nobody else uses and no file keeps."""
        if self.is_exact or not self.shared:
            return self  # an enumeration is complete: nothing is ever added
        return Bank(self.network, pull=self._pull, seed=self._seed, exact=False)

    def at(self, beta: float, progress: ProgressCallback | None = None) -> Station:
        """The station at β, simulated now if need be."""
        if self.is_exact:
            return self.stations[0.0]
        if beta not in self.stations:
            if self._simulator is None:
                self._simulator = Simulator(
                    self.network, pull=self._pull, at=self._at, seed=self._seed
                )
            self.stations[beta] = self._simulator.station((beta,))
            self._curve = None
            if self.network.edges >= _SAVE_EACH:
                self.write()
            tell(progress, "simulating the curve", len(self.stations))
        return self.stations[beta]

    def fill(self, low: float, high: float, progress: ProgressCallback | None = None) -> None:
        """Stations from `low` to `high`, close enough that neighbours overlap."""
        if self.is_exact:
            return
        before = len(self.stations)
        low, high = round(low, 9), round(high, 9)
        self.at(low, progress)
        while (wanted := self._next(low, high)) is not None:
            self.at(wanted, progress)
        if len(self.stations) > before:
            self.write()

    def _next(self, low: float, high: float) -> float | None:
        """Where a station is missing, from below: each starts where the last one ended."""
        known = sorted(beta for beta in self.stations if low <= beta <= high)
        for left, right in pairwise(known):
            if right - left > 1.5 * min(self.gap(left), self.gap(right)):
                step = left + self.gap(left)
                far = step > left + 0.75 * (right - left)
                return round((left + right) / 2 if far else step, 9)
        if known[-1] < high:
            return round(min(known[-1] + self.gap(known[-1]), high), 9)
        return None

    def gap(self, beta: float) -> float:
        """How far the next station may be from this one."""
        spread = float(self.at(beta).draws[:, 0].std())
        return min(_WIDEST, _GAP / max(spread, 1e-9))

    def window(self, low: float, high: float) -> list[Station]:
        """The stations from `low` to `high`."""
        if self.is_exact:
            return list(self.stations.values())
        betas = sorted(self.stations)
        inside = [k for k, beta in enumerate(betas) if low - 1e-9 <= beta <= high + 1e-9]
        return [self.stations[betas[k]] for k in range(inside[0], inside[-1] + 1)]

    def curves(self, low: float, high: float) -> tuple[Curve, list[Curve]]:
        """The curve between two values of β, and one for each set of chains."""
        stations = self.window(low, high)
        known = self._curve
        ends = (min(s.beta for s in stations), max(s.beta for s in stations))
        if known is None or (known[0].low, known[0].high) != ends:
            self._curve = known = (Curve(stations), group_curves(stations))
        return known

    def write(self) -> None:
        """Keep the stations on disk, if there is a folder."""
        if self._folder is None or self.is_exact:
            return
        stations = [self.stations[beta] for beta in sorted(self.stations)]
        header = {
            "format": _FORMAT,
            "key": self.key,
            "stations": [
                [s.beta, s.worth, s.r_hat if np.isfinite(s.r_hat) else 1e9, s.method, len(s.draws)]
                for s in stations
            ],
        }
        arrays = {
            "draws": np.concatenate([s.draws for s in stations]),
            "groups": np.concatenate([s.groups for s in stations]),
        }
        write_bytes(self._path(), pack("peer-curve", header, arrays))

    def _path(self) -> Path:
        assert self._folder is not None
        return self._folder / f"peer-{self.key}.pf"

    def _read(self) -> None:
        path = self._path()
        if not path.exists():
            return
        header, arrays = unpack(
            "peer-curve", path.read_bytes(), repr(str(path)), lambda header: "draws|groups"
        )
        try:
            if header["format"] != _FORMAT or header["key"] != self.key:
                raise ValueError
            start = 0
            for beta, worth, r_hat, method, size in header["stations"]:
                part = slice(start, start + size)
                self.stations[beta] = Station(
                    (beta,), arrays["draws"][part], arrays["groups"][part], worth, r_hat, method
                )
                start += size
        except (KeyError, TypeError, ValueError):
            raise InputError(f"cache: {str(path)!r} is damaged; remove it.") from None


def open_bank(
    network: PublicNetwork,
    *,
    pull: bool = False,
    seed: int = 0,
    folder: str | os.PathLike[str] | None = None,
    kept: bool = True,
) -> Bank:
    """The bank of this network: from memory, from `folder`, or new.

    Without `kept` it is a new one that leaves nothing behind.
    """
    place = _check_folder(folder)
    if not kept:
        return Bank(network, pull=pull, seed=seed)
    key = f"{network.digest} {pull} {seed} {place}"
    if key in _BANKS:
        _BANKS.move_to_end(key)
        return _BANKS[key]
    bank = Bank(network, pull=pull, seed=seed, folder=place)
    bank.shared = True
    _BANKS[key] = bank
    while len(_BANKS) > _KEPT_BANKS:
        _BANKS.popitem(last=False)
    return bank


def forget_banks() -> None:
    """Drop every curve kept in memory."""
    _BANKS.clear()


def _check_folder(folder: Any) -> Path | None:
    if folder is None:
        return None
    if not isinstance(folder, str | os.PathLike):
        raise InputError(f"cache must be None or a folder; got {type(folder).__name__}.")
    place = Path(folder)
    if not place.is_dir():
        raise InputError(f"cache: there is no folder {str(place)!r}.")
    return place.resolve()


def expected_pull(
    network: PublicNetwork,
    guess: float,
    folder: str | os.PathLike[str] | None = None,
    progress: ProgressCallback | None = None,
) -> float:
    """The median of max_i |Σ_j J_ij σ_j| over outcomes simulated with β = guess, in whole units."""
    station = open_bank(network, pull=True, folder=folder).at(guess, progress)
    return float(np.median(station.draws[:, -1])) / network.unit
