"""What all releases from the outcomes on a public network share."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from privfield.data.network.outcomes import check_missing, open_outcomes, positive_values
from privfield.data.network.public import PublicNetwork
from privfield.mechanisms.peers.release import NetworkRelease
from privfield.privacy.adjacency import NODE, Unit
from privfield.privacy.mechanism import OUTCOMES, Mechanism, Run
from privfield.privacy.randomness import Randomness
from privfield.schema import Schema

N = TypeVar("N", bound=NetworkRelease)


@dataclass(frozen=True, eq=False)
class NetworkMechanism(Mechanism[N]):
    """A release from one ±1 outcome per node; `missing`, `schema`, `positive` say how to read."""

    page = "peer-effects.md"
    adjacencies = OUTCOMES

    _: KW_ONLY
    network: PublicNetwork
    missing: str = "error"
    schema: Schema | None = None
    positive: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_missing(self.missing)
        positive_values(self.schema, self.positive)

    @property
    def protects(self) -> Unit:
        """One outcome, whatever a schema says."""
        return NODE

    def request(self) -> dict[str, Any]:
        """The network, and how outcomes are read."""
        return {
            "network": self.network.digest,
            "missing": "negative" if self.missing == "negative" else "error",
            "positive": positive_values(self.schema, self.positive),
            "insecure": self.terms.insecure_seed is not None,
        }

    def open(self, data: Any) -> Run[N]:
        """Names are public and checked here; what is returned reads the outcomes."""
        read = open_outcomes(data, self.network.names, self.missing, self.schema, self.positive)
        return lambda randomness: self._draw(read(), randomness)

    @abstractmethod
    def _draw(self, signs: NDArray[np.int8], randomness: Randomness) -> N:
        """What is released of these outcomes."""
