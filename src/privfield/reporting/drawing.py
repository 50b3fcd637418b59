"""The drawing of a network: nodes and edges with their looks, for the page and for paper."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape

from privfield.estimation.uncertainty.counted import MarginalInterval
from privfield.estimation.uncertainty.strengths import USELESS, VERDICTS, EdgeInterval, range_text
from privfield.reporting.layout import HEIGHT, WIDTH, node_size, positions
from privfield.words import counted

POSITIVE, NEGATIVE, UNSIGNED = "#0072b2", "#c44601", "#7a66b3"  # told apart by colour-blind eyes
MOST_NODES = 200
MOST_EDGES = 1500
_FEW, _EACH = 150, 2  # edges without a verdict, and for each node: more are a ball of wool
MOST_UNCERTAIN = 40  # so many uncertain edges at most are drawn from the start
MOST_COMMUNITIES = 20  # more numbers would be clutter
_COLORS = 8  # of communities, in page.css
_DASH = "9 5"
_CROWD = 30  # so many edges have room to be thick


@dataclass(frozen=True)
class Look:
    """How an edge is drawn: colour and dashes say the sign, width the strength."""

    color: str
    dash: str
    width: float
    opacity: float


@dataclass(frozen=True)
class Drawn:
    """An edge and what a reader is told about it."""

    edge: EdgeInterval
    look: Look
    text: str


@dataclass(frozen=True)
class Drawing:
    """A network that is ready to be drawn."""

    names: tuple[str, ...]
    places: tuple[tuple[float, float], ...]
    size: float
    edges: tuple[Drawn, ...]
    infos: tuple[str, ...]
    hides_uncertain: bool  # at first
    left_out: int  # edges that would not have been seen
    groups: tuple[int, ...] = ()  # the community of each node

    @cached_property
    def labels(self) -> list[str]:
        """What nodes are called in the picture."""
        return short_names(self.names)


def draw_network(
    names: Sequence[str],
    edges: Sequence[EdgeInterval],
    marginals: Sequence[MarginalInterval],
    level: float,
    questions: Mapping[str, str] | None = None,
    groups: Sequence[int] = (),
) -> Drawing | None:
    """None where there are too many variables for a picture; questions are shown with nodes.

    `groups` are the communities of nodes, from 1, where they are to be shown.
    """
    if len(names) > MOST_NODES:
        return None
    seen = [edge for edge in edges if _is_drawn(edge)]
    seen.sort(key=lambda edge: (edge.verdict == "uncertain", -magnitude(edge)))
    judged = any(edge.verdict in VERDICTS for edge in seen)
    kept = seen[: MOST_EDGES if judged else max(_FEW, _EACH * len(names))]
    firm = [edge for edge in kept if edge.verdict != "uncertain"] or kept
    largest = max((magnitude(edge) for edge in firm), default=1.0) or 1.0
    looks = [look(edge, largest, len(firm)) for edge in kept]
    texts = [edge_text(edge, level) for edge in kept]
    drawn = [Drawn(*each) for each in zip(kept, looks, texts, strict=True)]
    index = {name: number for number, name in enumerate(names)}
    links = [(index[edge.first], index[edge.second], magnitude(edge) / largest) for edge in firm]
    spots = positions(len(names), links).tolist()
    shares = {marginal.name: marginal_text(marginal) for marginal in marginals}
    wording = {name: f"{text} ·" for name, text in (questions or {}).items() if text}
    return Drawing(
        tuple(names),
        tuple((x, y) for x, y in spots),
        node_size(len(names)),
        tuple(drawn),
        tuple(" ".join(filter(None, [wording.get(name), shares.get(name)])) for name in names),
        sum(edge.verdict == "uncertain" for edge in kept) > MOST_UNCERTAIN,
        len(seen) - len(kept),
        tuple(groups),
    )


def _is_drawn(edge: EdgeInterval) -> bool:
    if edge.low is None:
        return edge.estimate != 0
    return edge.verdict in ("clear", "uncertain")


def magnitude(edge: EdgeInterval) -> float:
    """The strength without its sign, as far as pictures go."""
    return min(abs(edge.estimate), USELESS)


def look(edge: EdgeInterval, largest: float, crowd: int = 1) -> Look:
    """Colour-blind safe, and told apart on grey paper too: negative edges are dashed.

    Where many edges are drawn all of them are thinner, or the picture would be one patch.
    """
    color = POSITIVE if edge.estimate >= 0 else NEGATIVE
    color = color if edge.signed else UNSIGNED
    dash = _DASH if edge.signed and edge.estimate < 0 else ""
    thickest = 8.5 * min(1.0, math.sqrt(_CROWD / crowd))
    width = 1.5 + thickest * min(magnitude(edge) / largest, 1.0)
    if edge.verdict == "uncertain":
        return Look(color, dash, min(max(1.0, width / 2.5), 3.0), 0.4)
    return Look(color, dash, width, 0.9)


def edge_text(edge: EdgeInterval, level: float) -> str:
    """What hovering over an edge shows."""
    text = f"{edge.first} – {edge.second}: strength {strength(edge)}"
    if edge.low is not None and edge.high is not None:
        text += f", {level:.0%} interval {range_text(edge.low, edge.high, minus)}"
    if edge.signed:
        text += f"; odds ratio {odds(edge.estimate, edge)}"
        if edge.low is not None and edge.high is not None:
            text += f" ({range_text(edge.low, edge.high, lambda end: odds(end, edge))})"
    return f"{text}; {edge.verdict}"


def strength(edge: EdgeInterval) -> str:
    """With its sign, where it has one."""
    if math.isinf(edge.estimate):
        return f"beyond {minus(math.copysign(USELESS, edge.estimate), '+g')}"
    return minus(edge.estimate, "+.2f" if edge.signed else ".2f")


def minus(value: float, form: str = ".2f") -> str:
    """A number with a proper minus sign, and none before a zero."""
    text = format(value, form)
    return (text.lstrip("+-") if not float(text) else text).replace("-", "−")


def odds(weight: float, edge: EdgeInterval) -> str:
    """The odds ratio that belongs to a weight, for one step on both scales: exp(4W) of yes/no."""
    return "" if math.isinf(weight) else f"{edge.step_odds(weight):#.3g}".removesuffix(".")


def marginal_text(marginal: MarginalInterval) -> str:
    """The distribution of a variable in one line."""
    if not marginal.measured:
        return "not measured"
    return ", ".join(f"{100 * share:.0f}%" for share in marginal.estimate[:6])


def for_page(drawing: Drawing) -> dict[str, object]:
    """What the page's script reads."""
    index = {name: number for number, name in enumerate(drawing.names)}
    return {
        "size": drawing.size,
        "font": font_size(len(drawing.names)),
        "nodes": [
            {
                "name": name,
                "label": label(drawing, number),
                "fill": fill(drawing, number),
                "x": round(x, 1),
                "y": round(y, 1),
                "info": info,
            }
            for number, (name, (x, y), info) in enumerate(
                zip(drawing.names, drawing.places, drawing.infos, strict=True)
            )
        ],
        "edges": [
            {
                "from": index[d.edge.first],
                "to": index[d.edge.second],
                "status": d.edge.verdict.replace(" ", "-"),
                "color": d.look.color,
                "dashed": bool(d.look.dash),
                "width": round(d.look.width, 2),
                "opacity": d.look.opacity,
                "text": d.text,
            }
            for d in drawing.edges
        ],
    }


def as_svg(drawing: Drawing) -> str:
    """The same picture for paper, and for readers whose browser runs no scripts."""
    index = {name: number for number, name in enumerate(drawing.names)}
    parts = [
        f'<svg class="static" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" '
        f'aria-label="{escape(alt_text(drawing))}" font-family="sans-serif">'
    ]
    for d in reversed(drawing.edges):
        if drawing.hides_uncertain and d.edge.verdict == "uncertain":
            continue
        (x1, y1), (x2, y2) = (drawing.places[index[n]] for n in (d.edge.first, d.edge.second))
        dash = f' stroke-dasharray="{d.look.dash}"' if d.look.dash else ""
        parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            f'stroke="{d.look.color}" stroke-width="{d.look.width:.2f}" '
            f'stroke-opacity="{d.look.opacity:g}"{dash}/>'
        )
    radius, font = drawing.size / 2, font_size(len(drawing.names))
    for number, (x, y) in enumerate(drawing.places):
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" stroke-width="1.6" '
            f'style="fill:var(--{fill(drawing, number)});stroke:var(--ink)"/>'
            f'<text x="{x:.1f}" y="{y + radius + font:.1f}" text-anchor="middle" '
            f'font-size="{font:g}" style="fill:var(--ink);stroke:var(--paper)" stroke-width="3.5" '
            f'paint-order="stroke">{escape(label(drawing, number))}</text>'
        )
    return "".join(parts) + "</svg>"


def font_size(count: int) -> float:
    """Of labels: larger where there is room."""
    return 16.0 if count <= 12 else 14.0 if count <= 30 else 12.0


def label(drawing: Drawing, node: int) -> str:
    """A node's name, with the number of its community."""
    name = drawing.labels[node]
    return f"{name} {_circled(drawing.groups[node])}" if drawing.groups else name


def _circled(number: int) -> str:
    """①, ②, …; above ten many fonts have no such letter."""
    return chr(0x245F + number) if number <= 10 else f"({number})"


def fill(drawing: Drawing, node: int) -> str:
    """What page.css calls a node's colour."""
    if not drawing.groups:
        return "paper"
    return f"group-{(drawing.groups[node] - 1) % _COLORS + 1}"


def short_names(names: Sequence[str]) -> list[str]:
    """Labels that do not run across the picture; how several names begin alike is left out."""
    found = [short(name) for name in names]
    alike: dict[str, list[str]] = {}
    for name, text in zip(names, found, strict=True):
        alike.setdefault(text, []).append(name)
    for place, (name, text) in enumerate(zip(names, found, strict=True)):
        if len(alike[text]) > 1:
            first, last = min(alike[text]), max(alike[text])  # these two differ soonest
            same = next(
                (n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first)
            )
            found[place] = "…" + short(name[name.rfind(" ", 0, same) + 1 :])
    return found


def short(name: str, most: int = 24) -> str:
    """A label that does not run across the picture."""
    return name if len(name) <= most else name[: most - 1] + "…"


def alt_text(drawing: Drawing) -> str:
    """The picture in words."""
    clear = [d for d in drawing.edges if d.edge.verdict != "uncertain"]
    text = f"Network of {len(drawing.names)} variables with {counted(len(clear), 'edge')}"
    if clear:
        strong = "; ".join(d.text for d in clear[:3])
        text += f". The strongest: {strong}"
    return text + ". All edges are in the table below."
