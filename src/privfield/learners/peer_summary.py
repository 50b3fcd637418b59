"""Peer effects in words, as a table, and as a plot: from released numbers only."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from privfield.data.network.public import PublicNetwork
from privfield.errors import InputError
from privfield.estimation.peers.one import EMPTY, NOTHING, PeerEstimate
from privfield.mechanisms.peers.release import LocalRelease, ObjectiveRelease, StatisticRelease
from privfield.privacy.adjacency import Sensitivity
from privfield.privacy.budgets import ZCDP, ApproxDP, Budget, NonPrivate, in_words
from privfield.privacy.noise import choose_noise
from privfield.words import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Release = StatisticRelease | LocalRelease | ObjectiveRelease
_NOISE = {"discrete-laplace": "discrete Laplace", "discrete-gaussian": "discrete Gaussian"}

PROTECTED = (
    "Protected: each node's outcome, on its own. Not protected: the network, who is in it, and "
    "what follows about a node from others (friends of positives are likelier positive)."
)
NO_FIELD = (
    "One parameter assumes no field: without peers, positive and negative would be equally likely. "
    "Where one outcome is rare, β then mostly reflects the rarity; field=True separates the two."
)


OUTSIDE = "outside the model"
OUTSIDE_TEXT = (
    "Outside the model: no peer effect in the range that was allowed makes the released number "
    "plausible, so there is no interval, and nothing follows from the estimate. Neighbours "
    "may differ more than chance would make them (bounds=(-3, 3) allows negative effects), the "
    "effect may be larger than the bound, privacy noise may have been unusually large, or the "
    "model does not fit."
)


def range_text(low: float, high: float) -> str:
    """An interval of a parameter; one that holds nothing says so."""
    return OUTSIDE if high - low <= EMPTY else f"{low:.3g} to {high:.3g}"


def odds_factor(beta: float, coupling: float) -> float:
    """What the odds of +1 are multiplied by when one neighbour turns from −1 to +1: exp(4βJ)."""
    return math.exp(min(4 * beta * coupling, 700.0))


def odds_text(
    beta: float, interval: tuple[float, float] | None, network: PublicNetwork, level: float
) -> str:
    """β in words, for an edge of median coupling."""
    coupling = network.typical_coupling
    if not math.isfinite(beta):
        return "No finite β solves the equation."
    text = (
        "If one more neighbour is positive instead of negative, the odds of a positive outcome are "
        f"multiplied by {odds_factor(beta, coupling):.3g}"
    )
    if interval is not None:
        ends = sorted(odds_factor(end, coupling) for end in interval)  # J may be negative
        text += f" ({level:.0%} interval {ends[0]:.3g} to {ends[1]:.3g})"
    return text + f", for a typical edge (J = {coupling:.3g})."


def noise_text(release: Release | None, budget: Budget | NonPrivate, network: PublicNetwork) -> str:
    """Which noise was added, and how large the other kind would be."""
    if isinstance(release, ObjectiveRelease):
        return (
            f"Laplace noise of scale {release.scale:.3g} on the pseudo-likelihood equation, ridge "
            f"Δ = {release.ridge:.3g}, answer on a grid of {float(release.step):g}."
        )
    if isinstance(release, LocalRelease):
        return (
            "inverse sensitivity: it adapts to how well each node's neighbours balance; a flip "
            f"moves H by {release.ceiling * abs(release.step):.3g} at most."
        )
    if release is None and isinstance(budget, Budget):
        return "the paper's own, drawn in floating point."
    if release is None or release.laws[0].name == "none":
        return "none."
    law = release.laws[0]
    text = (
        f"{_NOISE.get(law.name, law.name)} noise on H, the released sum over edges: standard "
        f"deviation {release.deviations[0]:.3g}."
    )
    if isinstance(budget, ApproxDP) and budget.delta > 0 and law.name == "discrete-laplace":
        text += " It is pure: δ is not spent."
    return text + _rival_text(release, budget, network)


def _rival_text(
    release: StatisticRelease, budget: Budget | NonPrivate, network: PublicNetwork
) -> str:
    """What the other kind of noise would have been, where H alone was released and it is larger."""
    if len(release.laws) > 1 or not isinstance(budget, ApproxDP | ZCDP):
        return ""
    if isinstance(budget, ApproxDP) and budget.delta == 0:
        return ""
    pure = release.laws[0].name == "discrete-laplace"
    reach = network.largest_row_sum
    rival = choose_noise(
        budget, Sensitivity(reach, reach * reach), "gaussian" if pure else "laplace"
    )[0]
    ratio = rival.deviation / release.laws[0].deviation
    if ratio < 1.05:
        return ""
    kind = "Gaussian" if pure else "Pure"
    return f" {kind} noise in this budget would be {ratio:.1f} times as large."


def prevalence_text(prevalence: float | None, has_field: bool) -> list[str]:
    """What one parameter assumes, with advice from a prevalence that the user declared."""
    if has_field:
        return []
    if prevalence is None:
        return [NO_FIELD]
    share = f"You declared that about {prevalence:.0%} are positive"
    if 0.4 <= prevalence <= 0.6:
        return [NO_FIELD, f"{share}: near a half, so one parameter is reasonable."]
    return [NO_FIELD, f"{share}: far from a half, so β here is misleading. Use field=True."]


def summary_text(
    network: PublicNetwork,
    budget: Budget | NonPrivate,
    method: str,
    beta: float,
    estimate: PeerEstimate | None,
    release: Release | None,
    cost: Budget | NonPrivate,
    stamp: str | None,
    prevalence: float | None,
    level: float,
) -> str:
    """The whole report; its first line says what is protected."""
    first = PROTECTED if stamp is None else f"{stamp}. Nothing is protected."
    rows = [("parameter", "estimate", f"{level:.0%} interval")]
    if estimate is None:
        rows.append(("beta", f"{beta:.4g}", "none from this method"))
    else:
        rows += [
            (name, f"{value:.4g}", range_text(low, high))
            for name, (value, low, high) in estimate.parameters.items()
        ]
    wide = [max(len(row[k]) for row in rows) for k in range(3)]
    table = ["  ".join(cell.ljust(w) for cell, w in zip(row, wide, strict=True)) for row in rows]
    has_field = estimate is not None and len(estimate.parameters) > 1
    if estimate is not None and estimate.outside:
        meaning = OUTSIDE_TEXT
    elif estimate is not None and estimate.unlimited:
        meaning = NOTHING
    else:
        interval = None if estimate is None else estimate.interval
        meaning = odds_text(beta, interval, network, level)
    lines = [
        first,
        "",
        *(line.rstrip() for line in table),
        "",
        meaning,
        *prevalence_text(prevalence, has_field),
        "",
        f"network   {counted(network.nodes, 'node')}, {counted(network.edges, 'edge')}, scaling "
        f"{network.scaling}" + "".join(f"; {note}" for note in network.notes),
        f"method    {method}",
        f"noise     {noise_text(release, budget, network)}",
        f"cost      {in_words(cost)}, for one outcome (flip-outcome)",
    ]
    if estimate is not None and not estimate.outside:
        lines += [f"interval  covers sampling and privacy noise together; {_error_text(estimate)}"]
    if estimate is not None:
        lines += [f"note      {message}" for message in estimate.messages]
    return "\n".join(lines)


def _error_text(estimate: PeerEstimate) -> str:
    if not any(estimate.monte_carlo):
        return "computed by enumeration"
    middle, low, high = estimate.monte_carlo
    return (
        f"Monte-Carlo error ±{middle:.2g} in the estimate, ±{low:.2g} and ±{high:.2g} in the ends"
    )


def plot_likelihood(
    estimate: PeerEstimate, ax: Axes | None = None, stamp: str | None = None
) -> Axes:
    """The likelihood of the released number along β, with estimate and interval."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise InputError("plot needs matplotlib: install it, or use .summary().") from None
    axes: Any = plt.subplots(figsize=(6, 3.2), layout="constrained")[1] if ax is None else ax
    height = np.exp(estimate.log_likelihood - estimate.log_likelihood.max())
    low, high = estimate.interval
    axes.plot(estimate.grid, height, color="C0")
    inside = (estimate.grid >= low) & (estimate.grid <= high)
    axes.fill_between(
        estimate.grid,
        height,
        where=inside,
        color="C0",
        alpha=0.2,
        label=f"{estimate.level:.0%} interval",
    )
    axes.axvline(estimate.beta, color="C3", lw=1, label=f"estimate {estimate.beta:.3g}")
    axes.set(xlabel="peer effect β", ylabel="relative likelihood", ylim=(0, 1.05))
    axes.legend(frameon=False)
    if stamp is not None:
        axes.set_title(stamp, color="C3", fontsize="small")
    return axes  # type: ignore[no-any-return]
