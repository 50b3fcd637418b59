"""One HTML file that holds everything: it loads nothing, sends nothing and prints well."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from functools import cache
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from privfield.checks import check_level, check_rng
from privfield.errors import InputError
from privfield.estimation.uncertainty.strengths import NEGLIGIBLE, check_negligible
from privfield.files import check_target, write_bytes
from privfield.models.base import Model
from privfield.models.card import Card
from privfield.models.chain import ChainModel
from privfield.models.network import NetworkIsing
from privfield.progress import ProgressCallback, check_progress, tell

_LONG_WORD, _SHORT_CODE = 12, 30  # letters


def write_report(
    model: Model | ChainModel,
    path: str | os.PathLike[str],
    *,
    measurements: Any = None,
    card: Card | None = None,
    level: float = 0.95,
    negligible: float = NEGLIGIBLE,
    title: str | None = None,
    rng: np.random.Generator | None = None,
    progress: ProgressCallback | None = None,
) -> Path:
    """Write what a model says, and what it cost, as one self-contained HTML page.

    `card` and `measurements` are the model's own unless given. An edge whose whole interval lies
    within ±`negligible` is called absent. Everything is computed from released numbers: a report
    costs no privacy. `rng` is for models so large that their statistics are simulated.
    """
    target = _check(model, path, level, negligible, progress, title)
    if rng is not None:
        check_rng(rng)
    page = build_page(
        model,
        measurements=measurements,
        card=card,
        level=level,
        negligible=negligible,
        title=title,
        rng=rng,
        progress=progress,
    )
    tell(progress, "writing")
    write_bytes(target, page.encode())
    return target


def build_page(
    model: Model | ChainModel,
    *,
    measurements: Any = None,
    card: Card | None = None,
    level: float = 0.95,
    negligible: float = NEGLIGIBLE,
    title: str | None = None,
    rng: np.random.Generator | None = None,
    progress: ProgressCallback | None = None,
) -> str:
    """The text of the page."""
    card = getattr(model, "card", None) if card is None else card
    if not isinstance(card, Card | None):
        raise InputError(f"card must be a pf.Card or None; got {type(card).__name__}.")
    if measurements is None:
        measurements = getattr(model, "measurements", None)
    if isinstance(model, ChainModel):
        from privfield.reporting.other_pages import chain_page

        page = chain_page(model, card, measurements, level, title)
    elif isinstance(model, NetworkIsing):
        from privfield.reporting.other_pages import peer_page

        page = peer_page(model, card, title)
    else:
        from privfield.reporting.content import graph_page
        from privfield.reporting.findings import findings

        tell(progress, "uncertainty")
        found = findings(model, measurements, level, negligible, rng)
        tell(progress, "drawing")
        page = graph_page(model, card, found, level, negligible, title)
    return render(page)


def render(page: dict[str, Any]) -> str:
    """The text of a page with this content."""
    from jinja2 import Environment, StrictUndefined
    from jinja2.loaders import FunctionLoader

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, loader=FunctionLoader(_template)
    )
    environment.filters["codes"] = _with_codes
    environment.filters["words"] = _with_breaks
    scripts = {"script": _asset("page.js")}
    if page.get("network"):
        scripts["cytoscape"] = _asset("cytoscape.min.js")
    if page["data"].get("asking"):
        scripts["asking_script"] = _asset("asking.js")
    optional = ("nothing", "peer", "chain", "network", "asking", "edges", "centrality", "marginals")
    everything = {
        **dict.fromkeys(optional),
        "tables": [],
        **page,
        "data": _json(page["data"]),
        "css": _asset("page.css"),
        **scripts,
        "script_hashes": " ".join(map(_hash, scripts.values())),
    }
    return environment.get_template("page.html").render(everything)


def _with_codes(text: str) -> Any:
    """A text whose `commands` are set as such; short ones are not broken, as "--" might be."""
    from markupsafe import Markup, escape

    def code(found: re.Match[str]) -> str:
        whole = ' class="whole"' * (len(found[1]) <= _SHORT_CODE)
        return f"<code{whole}>{found[1]}</code>"

    return Markup(re.sub("`([^`]+)`", code, str(escape(text))))


def _with_breaks(text: str) -> Any:
    """A text that may be broken in very long words and after a slash, for narrow columns."""
    from markupsafe import Markup, escape

    def parts(word: re.Match[str]) -> str:
        """About equally long, so that no two letters stand alone."""
        count = -(-len(word[0]) // _LONG_WORD)
        ends = [len(word[0]) * k // count for k in range(count + 1)]
        return "<wbr>".join(word[0][a:b] for a, b in pairwise(ends))

    safe = re.sub(r"(?<=/)(?=\w)", "<wbr>", str(escape(str(text))))
    return Markup(re.sub(rf"[^\W_]{{{_LONG_WORD + 1},}}", parts, safe))


def _json(data: Any) -> str:
    """JSON that is safe inside a script element, whatever names the variables have."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _hash(script: str) -> str:
    """What the page's policy calls a script that may run; nothing else may."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"'sha256-{digest}'"


@cache
def _asset(name: str) -> str:
    return files("privfield.reporting").joinpath("assets", name).read_text(encoding="utf-8")


def _template(name: str) -> str:
    return files("privfield.reporting").joinpath("templates", name).read_text(encoding="utf-8")


def _check(
    model: object, path: object, level: object, negligible: object, progress: object, title: object
) -> Path:
    if not isinstance(model, Model | ChainModel):
        raise InputError(f"model must be a privfield model; got {type(model).__name__}.")
    check_level(level)
    check_negligible(negligible)
    check_progress(progress)
    if not isinstance(title, str | None):
        raise InputError(f"title must be text; got {type(title).__name__}.")
    return check_target(path)  # before the work, not after it
