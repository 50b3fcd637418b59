"""Paths that a user typed: files of other programs are recognised before anything is read."""

from __future__ import annotations

import os
from pathlib import Path

from privfield.errors import InputError

_OTHER_PROGRAMS = {
    (".xlsx", ".xls", ".xlsm", ".ods"): "a spreadsheet",
    (".por",): "an SPSS file",
    (".sas7bdat", ".xpt"): "a SAS file",
    (".rds", ".rdata", ".rda"): "an R file",
}
_NEAR = 0.75  # likeness of names of which one may be the other, mistyped


def is_remote(path: str) -> bool:
    """Whether it is an address such as s3a://bucket/table, not a path on this machine."""
    return "://" in path


def check_data_path(path: str) -> None:
    """Point out files of other programs; what is left is checked where it is opened."""
    suffix = Path(path).suffix.lower()
    for suffixes, what in _OTHER_PROGRAMS.items():
        if suffix in suffixes:
            raise InputError(
                f"FILE: {path!r} is {what}. Export the table as CSV (UTF-8) or Parquet, and name "
                "that file."
            )
    if os.path.isfile(path) and suffix in (".csv", ".tsv", ".txt"):
        with open(path, "rb") as file:
            start = file.read(4)
        if start in (b"PK\x03\x04", b"\xd0\xcf\x11\xe0"):
            raise InputError(
                f"FILE: {path!r} is a spreadsheet with another name. Export the table as CSV "
                "(UTF-8), and name that file."
            )


def nearby(path: str) -> str:
    """A file next to it with nearly the same name; nothing where none is near."""
    folder, wanted = os.path.split(path)
    if not os.path.isdir(folder or "."):
        return f" There is no folder {folder!r} either."
    likeness = {name: _likeness(wanted, name) for name in sorted(os.listdir(folder or "."))}
    best = max(likeness, key=lambda name: likeness[name], default="")
    near = bool(best) and likeness[best] >= _NEAR
    return f" Did you mean {os.path.join(folder, best)!r}?" * near


def _likeness(typed: str, name: str) -> float:
    """Of what stands before the first dot, from 0 to 1; 0 where what follows is of another kind.

    Endings that are compared together make all tables of a folder look alike.
    """
    from difflib import SequenceMatcher

    stem, _, end = typed.lower().partition(".")
    own, _, own_end = name.lower().partition(".")
    same_kind = not end or SequenceMatcher(None, end, own_end).ratio() > 0.5  # csv, tsv, csv.gz
    return SequenceMatcher(None, stem, own).ratio() if same_kind else 0.0
