"""Scikit-learn manners without scikit-learn: parameters in, `fit`, results that end in `_`."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Self

from privfield.errors import InputError

if TYPE_CHECKING:
    from privfield.privacy.adjacency import Adjacency
    from privfield.privacy.budgets import Budget, NonPrivate


class Learner:
    """Keeps what the constructor was given, unchanged; `fit` does the work and returns self.

    A subclass stores each argument of its `__init__` under its own name and nothing else. After
    `fit`, `cost_` is what was really spent and `adjacency_` which data sets count as neighbours.
    """

    if TYPE_CHECKING:
        cost_: Budget | NonPrivate | None
        adjacency_: Adjacency | None

    @classmethod
    def _names(cls) -> list[str]:
        return [name for name in inspect.signature(cls).parameters if name != "self"]

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

    def _forget(self) -> None:
        """Drop the results of an earlier fit: one that stops half-way shows none of them."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    def __getattr__(self, name: str) -> Any:
        if name.endswith("_") and not name.startswith("_"):
            raise AttributeError(
                f"{type(self).__name__} has no result {name}; results are there after fit."
            )
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}.")

    def __repr__(self) -> str:
        defaults = {n: p.default for n, p in inspect.signature(type(self)).parameters.items()}
        given = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if value is not defaults[name]
        ]
        return f"{type(self).__name__}({', '.join(given)})"
