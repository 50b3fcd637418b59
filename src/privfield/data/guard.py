"""Calls to other libraries whose errors may quote records: nothing of them gets out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from privfield.errors import InputError

T = TypeVar("T")


def guarded(call: Callable[[], T], problem: str) -> T:
    """What `call` gives, or an `InputError` that keeps nothing of the original exception.

    Readers quote values in their messages. The error is raised after the handler, so that it
    does not even carry the original as its context.
    """
    try:
        return call()
    except InputError:
        raise
    except Exception:
        pass
    raise InputError(problem)


def guarded_items(items: Iterator[T], problem: str) -> Iterator[T]:
    """The items of an iterator of a foreign library, with `guarded` errors."""
    done = object()
    while (item := guarded(lambda: next(items, done), problem)) is not done:
        yield item  # type: ignore[misc]
