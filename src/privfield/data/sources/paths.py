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
    """A file next to it with nearly the same name."""
    from difflib import get_close_matches

    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        return f" There is no folder {folder!r} either."
    close = get_close_matches(os.path.basename(path), os.listdir(folder), 1)
    return f" Did you mean {os.path.join(os.path.dirname(path), close[0])!r}?" if close else ""
