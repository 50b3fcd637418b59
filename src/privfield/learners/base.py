"""Scikit-learn manners without scikit-learn: parameters in, `fit`, results that end in `_`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from math import isfinite
from pathlib import PurePath
from typing import Any, Self

from privfield.checks import check_declared_rows
from privfield.data.table import unit_of
from privfield.errors import InputError
from privfield.html import table_html
from privfield.models.card import GAPS, Card, attach
from privfield.models.solution import Solution
from privfield.privacy.adjacency import Adjacency, Unit
from privfield.privacy.budgets import Budget, NonPrivate, check_budget
from privfield.privacy.ledger import Ledger
from privfield.privacy.mechanism import Mechanism, R
from privfield.privacy.released import Released
from privfield.progress import ProgressCallback
from privfield.schema import Schema
from privfield.stamps import stamp_of


def result() -> Any:
    """A field that `fit` fills."""
    return field(init=False, repr=False)


@dataclass(repr=False, eq=False)
class Learner:
    """Keeps what the constructor was given, unchanged; `fit` does the work and returns self.

    A subclass is a dataclass with keyword-only fields and no logic in its constructor. After `fit`,
    `released_` is all that was released, `cost_` what was really spent and `adjacency_` which data
    sets count as neighbours.
    """

    budget: Budget | NonPrivate
    _: KW_ONLY
    schema: Schema | None = None
    adjacency: str = "replace-one"
    ledger: Ledger | None = None
    job: str | None = None
    insecure_seed: int | None = None
    progress: ProgressCallback | None = None

    released_: Any = result()
    cost_: Budget | NonPrivate | None = result()
    adjacency_: Adjacency | None = result()

    @classmethod
    def _names(cls) -> list[str]:
        return [each.name for each in fields(cls) if each.init]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments by name."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **parameters: Any) -> Self:
        """Change some of the constructor's arguments."""
        legal = self._names()
        for name, value in parameters.items():
            if name not in legal:
                raise InputError(
                    f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(legal)}."
                )
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks: values never raise, and noise differs from fit to fit."""
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            input_tags=InputTags(allow_nan=True),
            no_validation=True,
            non_deterministic=True,
        )

    @property
    def solution_(self) -> Solution | None:
        """How the estimate of `model_` was solved; None where no equation says that."""
        found: Solution | None = getattr(self.model_, "solution", None)
        return found

    # what was released, under the names that some learners gave it
    measurements_ = trajectory_ = release_ = property(lambda self: self.released_)

    def _terms(self) -> dict[str, Any]:
        """On what terms it releases, as every `measure…` function takes them."""
        names = ("adjacency", "ledger", "job", "insecure_seed", "progress")
        return {name: getattr(self, name) for name in names}

    def _forget(self) -> None:
        """Drop the results of an earlier fit: one that stops half-way shows none of them."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    def _keep(self, released: Any) -> None:
        """What was paid for is there from now on, even if the estimate is interrupted."""
        self.released_ = released
        whole = getattr(released, "measurements", released)  # of what selecting edges released
        self.cost_, self.adjacency_ = whole.cost, whole.adjacency

    def _release(
        self, kind: type[Mechanism[R]], data: Any, unit: Unit | None = None, **settings: Any
    ) -> R:
        """Release on the learner's own terms, and keep it."""
        whose = unit_of(self.schema) if unit is None else unit
        found = kind.measure(data, self.budget, whose, **settings, **self._terms())
        self._keep(found)
        return found

    def _best(self, data: Any, schema: Schema | int, among: Sequence[str], **study: Any) -> str:
        """The way with the best forecast, as in `pf.plan`; a number of ±1 variables will do."""
        from privfield.mechanisms.forecasting.choose import choose
        from privfield.mechanisms.forecasting.study import table_study

        rows = check_declared_rows(getattr(self, "declared_rows", None))
        asked = table_study(
            *(data, schema, check_budget(self.budget), self.adjacency), declared_rows=rows, **study
        )
        return choose(asked, among).name

    def _schema(self) -> Schema:
        if not isinstance(self.schema, Schema):
            raise InputError(
                "schema must be a pf.Schema, which says what the columns may hold; "
                f"got {type(self.schema).__name__}."
            )
        return self.schema

    def __getattr__(self, name: str) -> Any:
        if name.endswith("_") and not name.startswith("_"):
            raise AttributeError(
                f"{type(self).__name__} has no result {name}; results are there after fit."
            )
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}.")

    def _repr_html_(self) -> str:
        results = [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]
        found = vars(self).get("released_")
        stamp = getattr(getattr(found, "measurements", found), "stamp", None)
        spent = stamp or f"spent {vars(self).get('cost_')}"  # which promises nothing if stamped
        said = spent if "cost_" in results else "not fitted yet"
        rows = [(name, repr(getattr(self, name))) for name in self._names()]
        title = f"{type(self).__name__}: {said}. Results: {', '.join(results) or 'none'}"
        return table_html(title, ("parameter", "value"), rows)

    def __repr__(self) -> str:
        given = [
            f"{each.name}={getattr(self, each.name)!r}"
            for each in fields(self)
            if each.init and not _is_default(getattr(self, each.name), each.default)
        ]
        return f"{type(self).__name__}({', '.join(given)})"


def _is_default(value: Any, default: Any) -> bool:
    plain = isinstance(value, str | int | float | tuple)  # others may not compare
    return value is default or (plain and type(value) is type(default) and value == default)


# -- the card of what a learner made ---------------------------------------------------------------


def attach_card(learner: Learner, notes: Sequence[str] = ()) -> None:
    """Give the model of a fitted learner its card and what was released for it.

    Learners call this at the end of `fit`. A learner without a model (nothing stable to release) is
    left alone.
    """
    model = vars(learner).get("model_")
    if model is not None:
        found = vars(learner).get("released_")
        attach(model, card_of(learner, notes), found if isinstance(found, Released) else None)


def card_of(learner: Learner, notes: Sequence[str] = ()) -> Card:
    """The card of what a fitted learner made."""
    results = vars(learner)
    if "cost_" not in results:
        raise InputError(f"{type(learner).__name__} has no results yet; call fit first.")
    found = results.get("released_")
    found = getattr(found, "measurements", found)  # of what selecting edges released
    estimate = results.get("estimate_")
    ledger, job, charged = _charge(learner.ledger, learner.job)
    return Card(
        unit=_unit(learner.schema, found),
        adjacency=results.get("adjacency_"),
        cost=results["cost_"],
        budget=learner.budget,
        method=_method(learner),
        noise=_noise(found),
        rows=getattr(found, "total", None),
        ledger=ledger,
        job=job,
        charged=charged,
        levels_are_public=_public_levels(learner.schema, found),
        notes=(*notes, *[GAPS] * getattr(learner.schema, "has_gaps", False)),
        intervals={} if estimate is None else _finite(estimate.parameters),
        level=float(results.get("level", 0.95)),
        stamp=stamp_of(found),
    )


def _method(learner: Learner) -> str:
    """The learner, and which of its ways it took."""
    results = vars(learner)
    names = ("method_", "method", "queries_", "queries")
    way = next((results[name] for name in names if isinstance(results.get(name), str)), None)
    return type(learner).__name__ + (f": {way}" if way else "")


def _finite(
    parameters: Mapping[str, tuple[float, float, float]],
) -> dict[str, tuple[float, float, float]]:
    return {name: three for name, three in parameters.items() if all(map(isfinite, three))}


def _unit(schema: Schema | None, found: Any) -> str:
    named = getattr(found, "unit", None)
    if isinstance(named, str):
        return named
    if getattr(found, "adjacency", None) is Adjacency.FLIP_OUTCOME:
        return "outcome of a node"
    unit = getattr(schema, "unit", None)
    if unit is None:
        return "row"
    limit = "all rows" if unit.rows is None else f"up to {unit.rows} row{'s' * (unit.rows != 1)}"
    return f"person ({unit.column}, {limit})"


def _public_levels(*sources: Any) -> bool:
    """Whether a schema says so: the learner's own, or that of what was released."""
    schemas = [getattr(source, "schema", source) for source in sources]
    return any(getattr(schema, "levels_are_public", False) for schema in schemas)


def _noise(found: Any) -> str | None:
    law = getattr(found, "noise", None)
    if law is None and getattr(found, "laws", None):
        law = found.laws[0].name
    return law if isinstance(law, str) else None


def _charge(ledger: Ledger | None, job: str | None) -> tuple[str | None, str | None, str | None]:
    """File name, job and time of the charge; a job that was not named cannot be told apart."""
    if ledger is None:
        return None, None, None
    name = PurePath(ledger.path).name
    times = [charge.time for charge in ledger.charges() if charge.job == job]
    return name, job, times[0] if times else None
