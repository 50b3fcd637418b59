"""Every text of an error stands in a test; those of tables, networks, schemas and pages here.

Those that no other test quotes are here, each with a call that raises it, and, of the rooms that
come after the table, in tests/test_error_texts_of_releases.py and _of_models.py. Errors of the
command line have a place of their own, tests/cli/test_error_texts.py.
"""

import ast
import math
import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import networkx as nx
import numpy as np

import privfield as pf
from mistakes import told_by
from privfield.cli.arguments.files import check_data_path
from privfield.data.counting.plan import plan_counts
from privfield.data.network.outcomes import check_missing, positive_values
from privfield.data.network.read import read_network
from privfield.data.sequences.form import StateSet
from privfield.data.sequences.read import SequenceSource
from privfield.data.sources.files import column_names
from privfield.data.sources.find import find_source
from privfield.data.spark.files import SparkFiles
from privfield.data.spark.plans import check_plan
from privfield.reporting import write_report
from privfield.reporting.figures import plot_model
from privfield.reporting.review import read_card
from small_releases import AB_LEVELS as AB
from small_releases import PAIR, PATH

SOURCES = Path(pf.__file__).parent
QUOTED = re.compile(r"""\"[^"\n]*\"|'[^'\n]*'""")
SEAM = re.compile(r"""["']\s*\n\s*[rf]*["']""")  # between parts of one text
ERRORS = {"InputError", "BudgetRefused", "NoLedger"}
RAISED = re.compile(r"raise (InputError|BudgetRefused|NoLedger)\(")
BARE = (["must lie between"], ["columns; got"])  # two texts have nothing else that is constant
LEAST, MANY = 13, 6  # letters of a text that tell it from others, and in how many they may be
NOT_HERE = (
    "--spark needs PySpark",  # raised where PySpark is not installed
    "names SPSS or Stata files, which one machine",  # needs both
    "names CSV files on a remote file system",
    "no common links explain both groups",  # a guard for a solver that fails
    "couplings add up to more than 64-bit",  # takes more couplings than fit in memory
    "Schema: 'state' ",  # is taken out of a text
    "is too small: its ρ is 0.",  # no budget is so small today
    "is too small for a stable release.",  # takes many seconds to find out
    "cannot be drawn on whole numbers",  # a guard: no mechanism asks for another law
    "backtracks: pass start=",  # takes a model whose allowed states are hard to find
)

FORMAT = 'format = 1\n[unit]\nprotects = "row"\n[variables.a]\nlevels = ["x", "y"]\n'


def written(name, text):
    Path(name).write_text(text)
    return name


def outcomes(values, **options):
    return pf.PeerEffect(pf.PureDP(1), **options).fit(PATH, values)


def masked(shape):
    return np.ma.masked_array(np.zeros(shape))


def model(names, levels=("no", "yes")):
    """One that can be compared: with its release."""
    schema = pf.Schema({name: list(levels) for name in names})
    m = pf.measure(np.zeros((9, len(names)), np.uint8), schema, [tuple(names)], pf.PureDP(5))
    return pf.estimate(m)


MISTAKES = [
    (lambda: plan_counts((2, 2), [(0, 0)]), "a column may come only once"),
    (lambda: read_network(written("e.xyz", "")), "must end in .csv, .tsv, .txt, .edges, .gml"),
    (lambda: read_network(written("e.csv", "")), "graph is empty: the edge file has no lines."),
    (lambda: read_network(written("e.csv", "source,target\n")), "the edge file has a header only."),
    (
        lambda: read_network(written("e.csv", "source,target,w\na,b,x\n"), weight="w"),
        "has an edge without a number as weight.",
    ),
    (lambda: read_network(PATH, weight=3), "weight must be None or an edge attribute; got int"),
    (lambda: read_network(nx.Graph()), "graph is empty: it has no nodes."),
    (lambda: read_network(np.zeros((0, 0))), "graph is empty: it has no nodes."),
    (lambda: read_network(np.zeros((2, 2))), "graph has no edges: there is no peer effect"),
    (lambda: read_network(-PAIR), "needs weights that are not negative; with negative ones pass"),
    (lambda: read_network(PATH, scaling="regular"), "needs a graph whose nodes all have the same"),
    (lambda: check_missing("drop"), "missing must be 'error', 'ignore' or 'negative'; got 'drop'"),
    (
        lambda: read_network(nx.Graph([("a", "b", {"w": math.inf})]), weight="w"),
        "weight: every edge must have a finite number",
    ),
    (lambda: positive_values(pf.Schema(AB)), "schema: outcomes need one variable with two levels."),
    (
        lambda: outcomes(written("o.csv", "who\n0,1\n1,0\n2,1\n"), missing="negative"),
        "names no node, and is no header of two cells such as",
    ),
    (
        lambda: outcomes({0: 1, 1: 0, 2: 1, 7: 1}, missing="error"),
        'no node of the graph. Leave them out, or pass missing="ignore" to ignore them.',
    ),
    (lambda: StateSet.of(1), "states must list at least two states; got 1."),
    (
        lambda: SequenceSource.of(StateSet.of(2), np.zeros((2, 2, 2))),
        "sequences: an array must be 2-D; it has 3 axes.",
    ),
    (
        lambda: SequenceSource.of(StateSet.of(2), masked((2, 2))),
        "an array must hold numbers, texts or objects, unmasked",
    ),
    (lambda: find_source(masked((2, 2)), ["a", "b"], False), "data is a masked array: fill it"),
    (
        lambda: column_names(written("n.csv", "a~b\n")),
        " holds one cell only. Cells must be separated by commas",
    ),
    (lambda: column_names(written("n.csv", ",,\n")), "has no column names in its first line."),
    (lambda: check_data_path("t.xlsx"), ". Export the table as CSV (UTF-8) or Parquet, and name"),
    (lambda: SparkFiles(7, "t.parquet"), "spark must be a SparkSession; got int."),
    (
        lambda: check_plan(SimpleNamespace(isStreaming=True)),
        "data: the Spark frame is a stream, which has no end. Read a table.",
    ),
    (
        lambda: find_source(type("Frame", (), {"__module__": "pyspark.pandas"})(), ["a"], False),
        ". A pandas-on-Spark frame is one after data.to_spark().",
    ),
    (lambda: pf.Schema(AB, unit=pf.Person("a", rows=1)), "'a' cannot also be a variable."),
    (lambda: pf.Schema(AB, questions=[1]), "must map names of variables to one text or level each"),
    (lambda: pf.Schema(AB, questions={"c": "x"}), "questions names 'c', which is not a variable."),
    (lambda: pf.Schema(AB).only([]), "only: names must be a list of at least one variable."),
    (
        lambda: pf.Schema({"a": 0.5}),
        "must be a list of levels, pf.Ordered, pf.Bins or a number of levels; got",
    ),
    (lambda: pf.Schema(AB).only(["a", "a"]), "only: names must not repeat a variable."),
    (lambda: pf.Schema(AB, gaps={"a": " "}), "the gap of 'a' needs a name, such as 'no answer'."),
    (lambda: pf.Schema({"a": [1, 2**9999]}), "a level must have at most"),
    (
        lambda: pf.Schema.read(written("s.toml", FORMAT.replace("1", "9"))),
        ": format must be 1; got 9. Is this a privfield schema?",
    ),
    (
        lambda: pf.Schema.read(written("s.toml", f"{FORMAT}number = {2**70}\n")),
        ": a whole number has more than 64 bits.",
    ),
    (
        lambda: pf.Schema.read(written("s.toml", FORMAT.replace('"row"', '"x"'))),
        ': protects must be "row" or "person"; got \'x\'.',
    ),
    (lambda: pf.Schema.read("."), "as UTF-8 text."),
    (lambda: pf.Schema.from_codebook(written("c.json", "{")), "is not readable as JSON."),
    (
        lambda: pf.Schema.from_codebook(written("c.json", '{"fields": [{"type": "string"}]}')),
        ": each column must have a name and a description.",
    ),
    (
        lambda: pf.Schema.from_codebook(written("c.json", '{"fields": [{"name": "a"}]}')),
        "says of no column what it may hold.",
    ),
    (
        lambda: pf.Schema(AB, forbidden=[{"a": "no", "b": "yes"}]).given({"a": "no", "b": "yes"}),
        "is a forbidden combination of the schema.",
    ),
    (lambda: write_report(pf.IsingModel(PAIR), "r.html", title=7), "title must be text; got int."),
    (lambda: read_card(written("c.json", "{}")), "is no card of privfield export --to card."),
    (
        lambda: pf.compare(7, model("ab")),
        "first must be a privfield model, or what was released; got int.",
    ),
    (lambda: pf.compare(pf.IsingModel(PAIR), model("ab")), "nothing is known about how far its"),
    (
        lambda: pf.compare(model("ab"), model("ac")),
        "second must have the variables of first; it lacks 'b'.",
    ),
    (
        lambda: pf.compare(model("ab"), model("abc")),
        "second must have the variables of first, in the same order.",
    ),
    (
        lambda: pf.compare(model("ab"), model("ab", "xy")),
        "second must have the levels of first; those of 'a' differ.",
    ),
    (lambda: plot_model(model("ab"), kind="x"), "kind must be 'network' or 'marginals'; got 'x'."),
    (lambda: plot_model(model("ab"), 7), "path must be a file name; got "),
    (
        lambda: plot_model(pf.NetworkIsing(PAIR, 0.4)),
        "a peer effect has no figure here; use PeerEffect.plot().",
    ),
    (
        lambda: plot_model(pf.IsingModel(np.zeros((201, 201)))),
        "a figure holds up to 200 variables; this model has 201.",
    ),
]


test_mistakes = told_by(MISTAKES)


def strings(tree):
    return [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and type(n.value) is str]


def error_texts():
    """Place and constant parts of each error that is raised with a text of its own."""
    for path in sorted(SOURCES.rglob("*.py")):
        if path.is_relative_to(SOURCES / "cli"):
            continue
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if RAISED.search(text) else ():
            call = node.exc if isinstance(node, ast.Raise) else None
            if not isinstance(call, ast.Call) or getattr(call.func, "id", "") not in ERRORS:
                continue
            parts = [each.strip() for each in strings(call) if len(each) >= LEAST]
            if parts and parts not in BARE:
                yield f"{path.relative_to(SOURCES)}:{node.lineno}", parts


def test_every_error_text_is_tested():
    """Here, or in any other test, of which patterns may stand for parts of a text.

    What stands in many errors, such as "must be a list", tells none of them from the others.
    """
    told = set(NOT_HERE)
    for path in Path(__file__).parent.rglob("test_*.py"):
        text = SEAM.sub("", path.read_text())  # an ast of all tests takes several seconds
        found = (each.strip("\"'").replace("\\", "") for each in QUOTED.findall(text))
        told.update(each for each in found if len(each) >= LEAST)
    every = "\n".join(told)
    texts = list(error_texts())
    assert len(texts) > 700
    quoted = [
        {each for part in parts for each in told if each in part} | {p for p in parts if p in every}
        for _, parts in texts
    ]
    times = Counter(each for found in quoted for each in found)
    untested = [
        f"{place}: {' … '.join(parts)}"
        for (place, parts), found in zip(texts, quoted, strict=True)
        if not any(times[each] <= MANY for each in found)
    ]
    assert not untested, "\n".join(untested)
