"""Options that several commands share, with one wording."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer

_NAMES = (
    *("method", "scaling", "bounds", "prevalence", "cliques", "max_memory", "min_weight", "width"),
    *("release", "accuracy", "field", "missing", "model", "sites"),
)


def as_options(text: str) -> str:
    """An error text that speaks of arguments in Python, about options.

    method="local" is --method local there, field=True is --field, and "method must" begins anew.
    """
    for name in _NAMES:
        option = f"--{name.replace('_', '-')}"
        text = re.sub(rf"^{name} (?=must|below|and)", f"{option} ", text)
        text = re.sub(rf"""(?<![\w.]){name}=(["'])(.*?)\1""", rf"{option} \2", text)
        text = re.sub(rf"(?<![\w.]){name}=True", option, text)
    text = re.sub("^path: cannot write", "--output: cannot write", text)
    return re.sub("^query: ", "QUESTION: ", text)


def flow(text: str) -> str:
    """Paragraphs without line ends, so that terminals break lines where they must."""
    return "\n\n".join(" ".join(part.split("\n")).strip() for part in text.split("\n\n"))


def number(text: str) -> float:
    """A number above 0 as people write it: 1, 0.5, 1e-6."""
    value = _float(text)
    if not 0 < value < float("inf"):
        raise typer.BadParameter(f"it must be a number above 0, such as 1 or 1e-6; got {text!r}.")
    return value


def chance(text: str) -> float:
    """δ: a number from 0 to below 1."""
    value = _float(text)
    if not 0 <= value < 1:
        raise typer.BadParameter(
            f"it must be a number from 0 to below 1, such as 1e-6; got {text!r}."
        )
    return value


def share(text: str) -> float:
    """A number between 0 and 1: a level of intervals, a share of people."""
    value = _float(text)
    if not 0 < value < 1:
        raise typer.BadParameter(
            f"it must be a number between 0 and 1, such as 0.95; got {text!r}."
        )
    return value


def count(text: str) -> int:
    """A whole number from 0, also written as 1e7 or 10,000."""
    value = _float(text.replace(",", "").replace("_", ""))
    if not 0 <= value < float("inf") or value % 1:
        raise typer.BadParameter(
            f"it must be a whole number from 0, such as 5000 or 1e7; got {text!r}."
        )
    return int(value)


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def neighbours(text: str) -> str:
    """Which data sets may hardly be told apart."""
    if text not in ("replace-one", "add-remove"):
        raise typer.BadParameter(f"it must be replace-one or add-remove; got {text!r}.")
    return text


DataFile = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="CSV or .txt, Parquet, SPSS or Stata: a file, a folder, or a quoted 'glob*.parquet'.",
    ),
]
Spark = Annotated[
    str | None,
    typer.Option(
        "--spark",
        metavar="MASTER",
        help="Read on Spark: local[2], spark://host:7077, yarn; default under spark-submit.",
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding", metavar="E", help="Of CSV files that are not UTF-8: latin-1, cp1252, …"
    ),
]
SchemaFile = Annotated[
    str, typer.Option("--schema", "-s", metavar="S", help="The schema file that `init` began.")
]
ModelFile = Annotated[
    str, typer.Argument(metavar="MODEL", help="A model file that `fit` or `peer` wrote.")
]
Epsilon = Annotated[
    float | None,
    typer.Option("--epsilon", "-e", metavar="E", parser=number, help="ε of the promise."),
]
Delta = Annotated[
    float | None,
    typer.Option("--delta", "-d", metavar="D", parser=chance, help="δ of the promise, e.g. 1e-6."),
]
Rho = Annotated[
    float | None,
    typer.Option("--rho", metavar="R", parser=number, help="ρ of zCDP, in place of ε and δ."),
]
Adjacency = Annotated[
    str,
    typer.Option(
        "--adjacency",
        metavar="A",
        parser=neighbours,
        help="replace-one (the number of rows is public) or add-remove (it is not).",
    ),
]
LedgerRead = Annotated[
    str | None,
    typer.Option("--ledger", metavar="L", help="The ledger that was charged; it is only read."),
]
LedgerFile = Annotated[
    str | None,
    typer.Option("--ledger", metavar="L", help="A file that remembers what was spent."),
]
Total = Annotated[
    str | None,
    typer.Option(
        "--total",
        metavar="E,D",
        help="Total of a new ledger: ε,δ or ε or rho=ρ. Without it: this release's budget.",
    ),
]
Job = Annotated[
    str | None,
    typer.Option(
        "--job",
        metavar="J",
        help="A name for this release: the same again returns it and costs nothing.",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        "--insecure-seed", metavar="K", min=0, help="For study: repeatable, so NOT PRIVATE."
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before spending.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for programs.")]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing output.")]


def output(metavar: str, what: str) -> Any:
    """The option -o."""
    return typer.Option("--output", "-o", metavar=metavar, help=what)


def text(metavar: str, what: str) -> Any:
    """An option of one command that takes a text."""
    return typer.Option(metavar=metavar, help=what)


def between(metavar: str, what: str) -> Any:
    """An option of one command that takes a number between 0 and 1."""
    return typer.Option(metavar=metavar, parser=share, help=what)


def positive(metavar: str, what: str) -> Any:
    """An option of one command that takes a number above 0."""
    return typer.Option(metavar=metavar, parser=number, help=what)
