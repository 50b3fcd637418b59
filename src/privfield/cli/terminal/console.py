"""Results go to stdout, everything else to stderr."""

from __future__ import annotations

import json
import shlex
import sys
from typing import Any

import typer


def say(text: str) -> None:
    """A result."""
    typer.echo(text)


def note(text: str) -> None:
    """Something for the person at the terminal, which is no result."""
    typer.echo(text, err=True)


def warn(text: str) -> None:
    """The same, not to be overlooked."""
    typer.secho(text, err=True, fg=typer.colors.RED, bold=True)


def shout(text: str) -> None:
    """A result that is not to be overlooked."""
    typer.secho(text, fg=typer.colors.RED, bold=True)


def say_json(value: Any) -> None:
    """A result for programs."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def say_stamp(stamp: str | None) -> None:
    """The first line of anything made without privacy."""
    if stamp:
        shout(stamp)


def as_typed(path: object) -> str:
    """A path in a command that people copy: a shell must neither cut nor expand it."""
    return shlex.quote(str(path))


def is_terminal() -> bool:
    """Whether somebody can answer a question."""
    return sys.stdin.isatty() and sys.stderr.isatty()
