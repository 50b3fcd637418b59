"""Where results go, and what is needed: no figure of a page is replaced by less than it shows."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path


def folder_for(
    parser: argparse.ArgumentParser, given: Path | None, page: Path, small: bool
) -> Path:
    """The folder that was given; else that of the page, or a new one for small settings."""
    if not small:
        return given or page
    if given is None:
        given = Path(tempfile.mkdtemp(prefix="privfield-quick-"))
        print(f"Small settings: results go to {given}", file=sys.stderr)
    elif given.resolve() == page.resolve():
        parser.error(f"small settings are not for {page.name}: give another --out, or none")
    return given


def needed(parser: argparse.ArgumentParser, path: Path) -> Path:
    """The data, or a sentence on where they should be."""
    if not path.exists():
        parser.error(f"{path} is not there: docs/papers/README.md says where to get it")
    return path
