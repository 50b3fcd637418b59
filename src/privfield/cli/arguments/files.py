"""Paths that a user typed: checked before anything is read or spent."""

from __future__ import annotations

import glob
import os
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privfield.data.sources.paths import check_data_path, is_remote, nearby
from privfield.errors import InputError
from privfield.files import KEPT, is_ledger

if TYPE_CHECKING:
    from privfield.data.table import Table
    from privfield.models.base import Model
    from privfield.schema import Schema


PAGES = (".html", ".htm")


def check_output(path: str, force: bool, suffixes: Sequence[str] = ()) -> Path:
    """Refuse, before any work, an output that could not be written at its end."""
    target = Path(path)
    if not path or target.is_dir():
        raise InputError(f"--output: {path!r} is a folder; a file name is needed.")
    if not target.parent.is_dir():
        raise InputError(f"--output: the folder {str(target.parent)!r} does not exist.")
    if is_ledger(target):
        raise InputError(f"--output: {path!r} {KEPT}")
    if target.exists() and not force:
        raise InputError(f"--output: {path!r} exists already. Add --force to replace it.")
    try:
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}."):
            pass
    except OSError as error:
        raise InputError(
            f"--output: cannot write in {str(target.parent)!r}: {error.strerror}."
        ) from None
    if suffixes and target.suffix.lower() not in map(str.lower, suffixes):
        raise InputError(f"--output must end in {', '.join(suffixes)}; got {target.name!r}.")
    return target


def named_data(path: str, spark: str | None = None, encoding: str | None = None) -> Any:
    """What a command reads: files on this machine, or by the tasks of Spark."""
    if encoding is not None:
        from privfield.data.sources.files import CsvFiles

        if spark is not None:
            raise InputError("--encoding: Spark reads UTF-8 only; leave out --spark.")
        with in_options():
            return CsvFiles(path, encoding=encoding)
    if spark is None:
        return path
    from privfield.data.spark.files import SparkFiles
    from privfield.data.spark.session import start_session

    return SparkFiles(start_session(spark), path)


def open_data(path: str, schema: Schema, data: Any = None) -> Table:
    """The table in a file, or in `data` of that name; reads its header only."""
    from privfield.data.table import open_table

    with typed(path):
        return open_table(path if data is None else data, schema)


@contextmanager
def in_options() -> Iterator[None]:
    """Errors about the encoding speak of the option."""
    try:
        yield
    except InputError as error:
        text = str(error)
        raise InputError(f"--{text}" if text.startswith("encoding") else text) from None


@contextmanager
def typed(path: str) -> Iterator[None]:
    """Point out files of other programs; errors about this file speak of FILE."""
    check_data_path(path)
    if not (os.path.exists(path) or glob.has_magic(path) or is_remote(path)):
        raise InputError(f"FILE: there is no file {path!r}.{nearby(path)}")
    try:
        yield
    except InputError as error:
        raise InputError(str(error).replace("path: ", "FILE: ", 1)) from None


def read_schema(path: str, name: str = "--schema") -> Schema:
    """A schema file; columns that still wait for their levels are named. `name` is the option's."""
    from privfield.schema import Schema

    waiting = _unfilled(path)
    if waiting:
        more = f" and {len(waiting) - 1} more" if len(waiting) > 1 else ""
        raise InputError(
            f"{name}: {path!r} is not filled in yet: write what {waiting[0]!r}{more} may hold, "
            'such as levels = ["no", "yes"], or delete the section of a column you do not need.'
        )
    try:
        return Schema.read(path)
    except InputError as error:
        hint = "" if os.path.exists(path) else f"{nearby(path)} `privfield init` begins one."
        if not hint and not path.lower().endswith(".toml"):
            raise InputError(
                f"{name}: {path!r} is no schema file, which `privfield init` makes from a table."
            ) from None
        raise InputError(str(error).replace("path: ", f"{name}: ", 1) + hint) from None


def _unfilled(path: str) -> list[str]:
    try:
        document: Any = tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
        sections = document["variables"].items()
        return [name for name, section in sections if section.get("levels") == []]
    except (OSError, ValueError, KeyError, AttributeError):  # Schema.read tells what is wrong
        return []


def load_model(path: str) -> Any:
    """Whatever model is in a file."""
    from privfield.learners.files import load

    try:
        return load(path)
    except InputError as error:
        hint = ""
        if path.lower().endswith((".csv", ".parquet", ".toml", ".ledger")):
            hint = " A model file is what `privfield fit … -o model.pf` writes."
        raise InputError(str(error).replace("path: ", "MODEL: ", 1) + hint) from None


def short_names(paths: Sequence[str]) -> list[str]:
    """What files are called in results: without folder and ending, unless two would be the same."""
    stems = [Path(path).stem for path in paths]
    if len(set(stems)) == len(stems):
        return stems
    return [os.path.splitext(path)[0] for path in paths]


def load_field(path: str) -> Model:
    """A model over variables of a schema; chains are something else."""
    from privfield.models.base import Model

    model = load_model(path)
    if not isinstance(model, Model):
        raise InputError(
            f"MODEL: {path!r} holds a chain of states; this command needs a model of variables. "
            "Use it from Python: pf.load(path)."
        )
    return model
