"""A model for R: one file that builds a qgraph plot and a list shaped like bootnet's result."""

from __future__ import annotations

import math
import os
import textwrap
from collections.abc import Iterable, Mapping, Sequence

from privfield.errors import InputError
from privfield.files import csv_bytes, write_bytes
from privfield.models.base import Model
from privfield.models.ordinal import OrdinalModel
from privfield.schema.variables import Variable, level_numbers
from privfield.stamps import note_beside

Matrix = Sequence[Sequence[float | None]]

_RELEASED = "released numbers: running this costs no privacy."
_SCRIPT = """\
# Made by privfield from {source}{note}
#
# labels, questions   names of the variables, and their wording
# weights             edges in the model, shrunk so that it predicts well: what the plot shows
# estimate, low, high what the released numbers say of each edge, with the ends of its interval;
#                     NA where nothing is known, infinite where there is no end
# verdict             "clear", "uncertain", "absent" or "not measured"
# thresholds          {thresholds_note}
# groups              communities: greedy modularity, as in the report
# network             a list shaped like the result of bootnet::estimateNetwork
# graph               a qgraph object: plot(graph) draws it; qgraph::centralityPlot(graph) works too
#
{scale}

labels <- {labels}
questions <- {questions}
square <- function(x) matrix(x, length(labels), byrow = TRUE, dimnames = list(labels, labels))
weights <- square({weights})
estimate <- square({estimate})
low <- square({low})
high <- square({high})
verdict <- square({verdict})
thresholds <- {thresholds}
groups <- {groups}
network <- structure(
  list(
    graph = weights,
    results = list(estimate = estimate, low = low, high = high, verdict = verdict),
    intercepts = thresholds,
    labels = labels,
    nNode = length(labels),
    nPerson = {people},
    default = "privfield",
    weighted = TRUE,
    signed = {signed},
    directed = FALSE,
    thresholded = FALSE
  ),
  class = c("bootnetResult", "list")
)
if (requireNamespace("qgraph", quietly = TRUE)) {{
  graph <- qgraph::qgraph(
    weights,
    labels = labels,
    nodeNames = ifelse(questions == "", labels, questions),
    groups = groups,
    theme = "colorblind",
    palette = if (length(groups) > 8) "rainbow" else "colorblind",
    layout = "spring",
    legend = FALSE,
    DoNotPlot = TRUE
  )
}}
"""


_YES_NO = """\
# Weights between yes/no variables are for states -1 and +1; for states 0 and 1, as IsingFit has
# them, they are 4 * weights, with thresholds 2 * thresholds - 2 * rowSums(weights)."""
_ITEMS = """\
# Weights are for these scores of the levels of each item, from -1 to 1. Where scores are equally
# spaced, weights for steps of one (0, 1, 2, ...) are weights * outer(steps, steps) with
# steps <- sapply(scores, function(s) abs(s[2] - s[1])). Per standard deviation of both items, about
# as large as partial correlations, they are weights * outer(spread, spread), unless spread is NULL
# (not known). The same goes for estimate, low and high.

scores <- {scores}
spread <- {spread}"""


def write_r(
    model: Model,
    path: str | os.PathLike[str],
    matrices: Mapping[str, Matrix],
    verdicts: Sequence[Sequence[str | None]],
    groups: Mapping[str, Sequence[int]],
    signed: bool,
    note: str = "",
) -> None:
    """One .R file; `matrices` holds weights, estimate, low and high, one number for each pair.

    `note` says what else is to be known of them.
    """
    schema = model.schema
    rows = None if model.card is None else model.card.rows
    thresholds, about = _thresholds(model)
    communities = [
        f"{_text(name)} = {_vector(map(str, places))}" for name, places in groups.items()
    ]
    text = _SCRIPT.format(
        source=f"a model.\n# {model.stamp}" if model.stamp else _RELEASED,
        note=_comment(note),
        thresholds_note=about,
        labels=_vector(map(_text, schema.names)),
        questions=_vector(_text(variable.question) for variable in schema.variables),
        **{name: _numbers(x for row in matrix for x in row) for name, matrix in matrices.items()},
        verdict=_vector(
            "NA_character_" if word is None else _text(word) for row in verdicts for word in row
        ),
        thresholds=thresholds,
        groups=f"list({', '.join(communities)})" if communities else "NULL",
        people="NA" if rows is None else str(rows),
        signed="TRUE" if signed else "FALSE",
        scale=_scale(model),
    )
    write_bytes(path, text.encode("ascii"))


def _scale(model: Model) -> str:
    """What weights are weights of."""
    if not isinstance(model, OrdinalModel):
        return _YES_NO
    try:
        spread = _numbers(model.deviations())
    except InputError:  # too large for exact answers, and made by hand
        spread = "NULL"
    return _ITEMS.format(scores=f"list({', '.join(map(_numbers, model.scores))})", spread=spread)


def _comment(text: str) -> str:
    """Lines of R that say it, in ASCII, after a line of their own."""
    plain = text.encode("ascii", "backslashreplace").decode()
    lines = textwrap.wrap(plain, 96, break_long_words=False, break_on_hyphens=False)
    return "".join(f"\n# {line}" for line in ("", *lines)) if lines else ""


def _thresholds(model: Model) -> tuple[str, str]:
    """In R, and in words."""
    if isinstance(model, OrdinalModel):
        return f"list({', '.join(map(_numbers, model.thresholds))})", "one for each level"
    try:
        return _numbers(model.to_ising().field), "one for each variable, for states -1 and +1"
    except InputError:
        three = any(len(clique) > 2 for clique in model._structure()[1])
        why = "three variables interact" if three else "not all variables have two levels"
        return "NULL", f"NULL: {why}"


def write_jasp(model: Model, path: str | os.PathLike[str], n: int, method: str) -> None:
    """Synthetic people as CSV, which is what JASP's network module reads: it takes no weights.

    Levels that have an order are numbers, as JASP wants them: their own on a scale of numbers,
    else from 0; others are names. Gaps are empty.
    """
    import numpy as np

    drawn = model.sample(n, np.random.default_rng(0), method=method)
    codes = (drawn > 0).astype(np.uint8) if drawn.dtype == np.int8 else drawn
    columns = []
    for variable, column in zip(model.schema.variables, codes.T.tolist(), strict=True):
        named = not variable.is_ordered or _are_numbers(variable)
        answers = variable.answers if named else range(len(variable.answers))
        shown = [*answers, ""]
        columns.append([shown[code] for code in column])
    with note_beside(path, model.stamp):
        write_bytes(path, csv_bytes([model.schema.names, *zip(*columns, strict=True)]))


def _are_numbers(variable: Variable) -> bool:
    """Whether answers on a scale are numbers by name; yes and no are 0 and 1."""
    scale = variable.kind == "ordered" and len(variable.answers) > 2
    return scale and level_numbers(variable.answers) is not None


def _vector(items: Iterable[str]) -> str:
    return f"c({', '.join(items)})"


def _numbers(values: Iterable[float | None]) -> str:
    return _vector(_number(value) for value in values)


def _number(value: float | None) -> str:
    if value is None or math.isnan(value):
        return "NA"
    return ("Inf" if value > 0 else "-Inf") if math.isinf(value) else repr(float(value))


def _text(text: str) -> str:
    """A text in R, in letters that every encoding has; R's texts hold no zero byte."""
    return f'"{"".join(map(_letter, text))}"'


def _letter(letter: str) -> str:
    code = ord(letter)
    if 32 <= code < 127:
        return f"\\{letter}" if letter in '"\\' else letter
    return f"\\U{code:08x}" if code else " "
