"""What --help shows."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup


class _PlainFlags:
    """Options that take no value show none: `--yes`, not `--yes <bool>`."""

    def get_params(self, context: Any) -> list[Any]:
        """The parameters of a command, with flags told from options that take a value."""
        found: list[Any] = super().get_params(context)  # type: ignore[misc]
        for parameter in found:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
        return found


class Command(_PlainFlags, TyperCommand):
    """A command."""


class Commands(_PlainFlags, TyperGroup):
    """The program itself."""
