"""What a page needs to answer questions by itself: the model's potentials and how to sum them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from privfield.inference.contraction.plan import plan_contraction
from privfield.inference.factors import Factors
from privfield.models.base import Model
from privfield.models.canonical import canonical
from privfield.reporting.on_models import is_small

_MOST_BYTES = 1_000_000  # of what is written into the page
_MOST_CELLS = 2**22  # of one answer, which then takes about a second
_DIGITS = 12


def asking(model: Model, people: float | None, people_are_public: bool) -> dict[str, Any]:
    """Texts and, where the model is small enough, the numbers that `asking.js` reads."""
    data = _numbers(model)
    if data is None:
        return {"texts": [_too_large(model)], "data": None}
    data |= {"people": people, "peopleArePublic": people_are_public}
    texts = [
        "Set answers and see every share move. The page works them out from the model, here and "
        f"offline{_free(model)}, and nobody learns what you asked.",
        "How many people a question rests on is an estimate: the number of records times the "
        "model’s share. No intervals are shown here, since the variables of a question need not "
        "have been counted together; `privfield query` gives one where it is known. Answers hold "
        "for people like those in the data. They do not say what happens if an answer is changed.",
    ]
    return {"texts": texts, "data": data}


def _numbers(model: Model) -> dict[str, Any] | None:
    """Variables, potentials and an order of elimination; None where that is too much for a page."""
    if not is_small(model) or model.inference_size().joint_cells > _MOST_CELLS:
        return None
    factors, _ = canonical(model.factors)
    if sum(table.size for table in factors.tables) > _MOST_BYTES:
        return None
    order = list(plan_contraction(factors.shape, factors.cliques).order)
    rest = [variable for variable in range(len(factors.shape)) if variable not in order]
    data = {
        "variables": [
            {"name": v.name, "question": v.question, "levels": list(v.levels)}
            for v in model.schema.variables
        ],
        "factors": _plain(factors),
        "order": [*order, *rest],
    }
    return data if len(json.dumps(data)) <= _MOST_BYTES else None


def _plain(factors: Factors) -> list[list[Any]]:
    """Pairs of positions and numbers in row-major order; null stands for what is impossible."""
    return [
        [
            list(clique),
            [
                float(f"{value:.{_DIGITS}g}") if np.isfinite(value) else None
                for value in table.ravel().tolist()
            ],
        ]
        for clique, table in zip(factors.cliques, factors.tables, strict=True)
    ]


def _too_large(model: Model) -> str:
    a, b = (model.schema.variables * 2)[:2]
    return (
        "This model is too large to be asked in a page. On a computer with privfield, "
        f'`privfield query model.pf "P({a.name}={a.levels[-1]} | {b.name}={b.levels[-1]})"` '
        f"answers such questions{', at no privacy cost either' if model.stamp is None else ''}."
    )


def _free(model: Model) -> str:
    """What a question costs; nothing is said of a model that protects nobody."""
    return ": the model was released, so asking costs no privacy" if model.stamp is None else ""
