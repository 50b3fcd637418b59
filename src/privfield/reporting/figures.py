"""Figures for papers and slides, with matplotlib: the network and the marginals of a model."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privfield.checks import check_level, is_word, shown
from privfield.errors import InputError
from privfield.estimation.uncertainty.counted import MarginalInterval
from privfield.estimation.uncertainty.strengths import NEGLIGIBLE
from privfield.files import write_bytes
from privfield.models.base import Model
from privfield.models.network import NetworkIsing
from privfield.reporting.drawing import MOST_NODES, Drawing, draw_network, font_size, short
from privfield.reporting.findings import findings
from privfield.reporting.layout import HEIGHT, WIDTH

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = ("png", "svg", "pdf")
_MOST_BARS = 120
_RED = "#b00020"


def plot_model(
    model: Model,
    path: str | os.PathLike[str] | None = None,
    kind: str = "network",
    *,
    measurements: Any = None,
    level: float = 0.95,
    negligible: float = NEGLIGIBLE,
    ax: Axes | None = None,
) -> Axes:
    """Draw into `ax`, or into a new figure; `path` (.png, .svg or .pdf) writes that figure too.

    "network" shows edges by sign, strength and verdict as in a report, "marginals" the share of
    each level with its interval. A model that is NOT PRIVATE says so in its figures.
    """
    if not is_word(kind, ("network", "marginals")):
        raise InputError(f"kind must be 'network' or 'marginals'; got {shown(kind)}.")
    check_level(level)
    form = _format(path)
    if isinstance(model, NetworkIsing):
        raise InputError("a peer effect has no figure here; use PeerEffect.plot().")
    if len(model.schema) > MOST_NODES:
        raise InputError(
            f"a figure holds up to {MOST_NODES} variables; this model has {len(model.schema)}."
        )
    found = findings(model, measurements, level, negligible)
    if kind == "network":
        drawing = draw_network(model.schema.names, found.edges, found.marginals, level)
        assert drawing is not None
        axes = _network(drawing, ax)
    else:
        axes = _marginals(model, found.marginals, ax)
    if model.stamp:
        axes.set_title(model.stamp, color=_RED, fontsize="medium", fontweight="bold")
    if path is not None and form is not None:
        _write(axes, path, form)
    return axes


def _format(path: object) -> str | None:
    if path is None:
        return None
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"path must be a file name; got {type(path).__name__}.")
    form = Path(path).suffix.lower().lstrip(".")
    if form not in FORMATS:
        raise InputError(f"path must end in .png, .svg or .pdf; got {str(path)!r}.")
    return form


def _write(axes: Axes, path: str | os.PathLike[str], form: str) -> None:
    import matplotlib as mpl

    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "privfield", "svg.fonttype": "none"}):
        metadata = {"Date": None} if form == "svg" else {"CreationDate": None}
        axes.get_figure(root=True).savefig(  # type: ignore[union-attr]
            buffer,
            format=form,
            dpi=200,
            bbox_inches="tight",
            metadata=None if form == "png" else metadata,
        )
    write_bytes(path, buffer.getvalue())


def _axes(ax: Axes | None, width: float, height: float) -> Axes:
    if ax is not None:
        return ax
    from matplotlib.figure import Figure  # pyplot would keep every figure in memory

    return Figure(figsize=(width, height), layout="constrained").add_subplot()


def _network(drawing: Drawing, ax: Axes | None) -> Axes:
    from matplotlib.patheffects import withStroke

    axes = _axes(ax, 9, 9 * HEIGHT / WIDTH)
    index = dict(zip(drawing.names, drawing.places, strict=True))
    for d in reversed(drawing.edges):
        if drawing.hides_uncertain and d.edge.verdict == "uncertain":
            continue
        (x1, y1), (x2, y2) = index[d.edge.first], index[d.edge.second]
        axes.plot(
            [x1, x2],
            [y1, y2],
            color=d.look.color,
            lw=0.65 * d.look.width,
            alpha=d.look.opacity,
            ls=(0, (3.2, 1.8)) if d.look.dash else "-",
            zorder=1,
        )
    xs, ys = zip(*drawing.places, strict=True)
    size = 0.4 * drawing.size**2
    axes.scatter(xs, ys, s=size, facecolor="white", edgecolor="#333333", lw=1.2, zorder=2)
    font = 0.62 * font_size(len(drawing.names))
    for name, (x, y) in index.items():
        axes.text(
            x,
            y + drawing.size / 2 + 4,
            short(name).replace("$", r"\$"),
            ha="center",
            va="top",
            fontsize=font,
            zorder=3,
            path_effects=[withStroke(linewidth=2.5, foreground="white")],
        )
    axes.set(xlim=(0, WIDTH), ylim=(HEIGHT, 0))
    axes.set_aspect("equal")
    axes.axis("off")
    return axes


def _marginals(model: Model, marginals: tuple[MarginalInterval, ...], ax: Axes | None) -> Axes:
    labels, shares, errors = [], [], []
    for marginal in marginals:
        levels = model.schema[marginal.name].levels
        for code in [1] if len(levels) == 2 else range(len(levels)):
            share = marginal.estimate[code] if marginal.measured else 0.0
            low, high = (
                share if ends is None else ends[code] for ends in (marginal.low, marginal.high)
            )
            label = f"{short(marginal.name)} = {short(levels[code])}".replace("$", r"\$")
            labels.append(label if marginal.measured else f"{label} (not measured)")
            shares.append(share)
            errors.append((max(0.0, share - low), max(0.0, high - share)))
    if len(labels) > _MOST_BARS:
        raise InputError(f"a figure holds up to {_MOST_BARS} bars; this model has {len(labels)}.")
    axes = _axes(ax, 7, 1.0 + 0.26 * len(labels))
    places = range(len(labels))
    below, above = zip(*errors, strict=True)
    bars: dict[str, Any] = {"xerr": [below, above], "error_kw": {"lw": 1.2, "capsize": 2.5}}
    axes.barh(places, shares, color="#8dbfe0", height=0.72, **(bars if any(below + above) else {}))
    axes.set(xlim=(0, 1), ylim=(len(labels) - 0.4, -0.6), xlabel="share")
    axes.set_yticks(list(places), labels)
    axes.spines[["top", "right"]].set_visible(False)
    return axes
