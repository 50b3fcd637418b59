"""What an audit found, and the two ways in which audits look.

*Enumeration*: over all data sets of a small world and all their neighbours, how far do the exact
numbers move, and which privacy loss is that under the noise that would be drawn? No randomness: the
bound is exact for that world.

*Likelihood ratio*: are numbers that were really drawn likelier under the noise we claim than under
noise of half the size? With Λ the ratio, "claimed" is accepted where Λ ≥ 10⁹. Half the noise passes
with probability at most 10⁻⁹ (Λ has expectation 1 then, and Markov's inequality holds), and the
right noise fails with less than that for the numbers of draws used here.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.privacy.noise import NoiseLaw

SURE = math.log(1e9)
_SLACK = 1e-9  # of floating point, in sums of a few terms


@dataclass(frozen=True)
class Finding:
    """One check of one mechanism: what is claimed, what was seen, and whether they agree."""

    mechanism: str
    claim: str
    observed: str
    passed: bool
    how: str
    page: str  # the proof, in docs/privacy

    def to_json(self) -> dict[str, Any]:
        """Plain types."""
        return asdict(self)


def bounded(
    mechanism: str, symbol: str, limit: float, worst: float, how: str, page: str
) -> Finding:
    """A loss that must not exceed its limit; it should come near, or the check sees nothing."""
    passed = worst <= limit * (1 + _SLACK)
    return Finding(
        mechanism, f"{symbol} ≤ {limit:.6g}", f"largest {symbol} = {worst:.6g}", passed, how, page
    )


def drawn(mechanism: str, claimed: float, halved: float, draws: int, page: str) -> Finding:
    """Log-likelihoods of what was drawn under the claimed noise and under half of it."""
    evidence = claimed - halved
    return Finding(
        mechanism,
        "noise as large as claimed",
        f"likelihood ratio against half the noise: e^{evidence:.0f}",
        evidence >= SURE,
        f"{draws:,} draws",
        page,
    )


def log_likelihood(noise: NDArray[Any], law: NoiseLaw, part: float = 1.0) -> float:
    """Of whole numbers under a discrete law whose scale is that `part` of the law's."""
    scale = law.scale * part
    values = np.abs(np.asarray(noise, np.float64))
    if law.name == "discrete-laplace":
        q = math.exp(-1 / scale)
        return float((-values / scale).sum() + values.size * math.log((1 - q) / (1 + q)))
    reach = np.arange(-math.ceil(12 * scale) - 1, math.ceil(12 * scale) + 2)
    total = math.log(float(np.exp(-((reach / scale) ** 2) / 2).sum()))
    return float((-((values / scale) ** 2) / 2).sum() - values.size * total)
