"""What the shell sees when a command ends."""

from __future__ import annotations

DONE = 0
OUR_BUG = 1
BAD_INPUT = 2
REFUSED = 3
NOTHING_STABLE = 4
INTERRUPTED = 130


class Stopped(Exception):
    """A command ends with that code; everything has been said."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code
