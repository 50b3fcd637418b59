"""Every error text of the command line stands in a test: here in part, word for word."""

import ast
from pathlib import Path

import numpy as np
import pytest

import privfield as pf
import privfield.cli

SOURCES = Path(privfield.cli.__file__).parent
TESTS = Path(__file__).parents[1]
ERRORS = {"InputError", "BudgetRefused", "BadParameter"}
LEAST = 13  # letters of a text that tell it from others


GUARD = "this method found no β"  # no option of `peer` leads there today
FIT = "fit t.csv -s s.toml -e 1 --yes -o m.pf"
MISTAKES = [
    (f"{FIT} --cliques ;", "--cliques must be auto, all-pairs, learn, a list such as"),
    (f"{FIT} --cliques flat.json", "must hold a list of lists of variable names"),
    (f"{FIT} --cliques none.json", "--cliques: there is no file 'none.json'"),
    (f"{FIT} --cliques t.csv.json", "is not a JSON file."),
    (f"{FIT} --method moments", "needs two levels of every variable. Use auto or frank-wolfe."),
    (f"{FIT} --total 3", "--total needs --ledger: a file that remembers what was spent."),
    ("fit t.csv -s s.toml -e 1 -o .", "is a folder; a file name is needed."),
    ("fit t.csv -s flat.toml -e 1 --yes -o m.pf", "no variable has two levels, so there is"),
    ("fit t.csv -s open.toml -e 1 -o m.pf", " is not filled in yet: write what 'a' may hold"),
    ("sample ising.pf -n 3 -o rows.xlsx", "--output must end in .csv, .parquet, .pq"),
    ("sample ising.pf -n 3 -o /proc/rows.csv", "--output: cannot write in '/proc'"),
    (
        "sample ising.pf -n 3 --method exact -o r.csv",
        "--method must be auto, balanced, independent or gibbs; got 'exact'",
    ),
    (
        "sample ising.pf -n 3 --copies 2 --method balanced -o r.csv",
        "rows of --copies are independent, as rules for combining them ask; leave it.",
    ),
    ("report ising.pf -o r.pdf", "--output must end in .html, .htm; got 'r.pdf'"),
    ("compare ising.pf ising.pf -o r.pdf", "--output must end in .html, .htm; got 'r.pdf'"),
    ("export ising.pf --to r -o w.csv", "--output must end in .R; got 'w.csv'"),
    ("export ising.pf --to qgraph -o w.R", "--output must end in .csv, .txt; got 'w.R'"),
    ("report ising.pf --level 0 -o r.html", "it must be a number between 0 and 1, such as 0.95"),
    ("query ising.pf P(a=1) --level 1", "it must be a number between 0 and 1, such as 0.95"),
    ("plan t.csv -n 100 -e 1", " is no schema file, which `privfield init` makes from a table."),
    ("plan s.toml -n 100 -e 1 --max-memory x", "--max-memory must be bytes or text"),
    (f"{FIT} --cliques a,c", "--cliques: there is no variable 'c'"),
    ("peer e.csv o.csv -e 1 --scaling x -o p.pf", "--scaling must be one of 'laplacian'"),
    ("peer e.csv o.csv -e 1 --prevalence 2 -o p.pf", "'--prevalence': it must be a number between"),
    (
        "peer e.csv o.csv -e 1 --method mple -o p.pf",
        "--method must be one of auto, sufficient-statistic, local, objective-perturbation; got",
    ),
    ("peer e.csv o.csv -e 1 -y --bounds=1,2 -o p.pf", "--bounds must be two numbers, from −100 to"),
    (
        "peer e.csv o.csv -e 1 -y --field --method local -o p.pf",
        "--field and covariates need --method sufficient-statistic; got 'local'",
    ),
    ("report chain.pf.csv -o r.html", "MODEL: there is no file 'chain.pf.csv'"),
    ("ledger none.ledger", "LEDGER: there is no ledger 'none.ledger'"),
    ("plan s.toml -e 1", "Missing option '--n' / '-n': Rows, or a guess."),
    (
        "fit missing_table.csv -s s.toml -e 1 -o m.pf",
        "FILE: there is no file 'missing_table.csv'. Nothing was spent.",
    ),
    ("fit t.csv -s s.toml -e 0 -o m.pf", "such as 1 or 1e-6; got '0'. Nothing was spent."),
    (
        "peer none.csv o.csv -e 1 -o p.pf",
        "EDGES: there is no file 'none.csv'. Nothing was spent.",
    ),
    ("query chain.pf P(a=1)", "holds a chain of states; this command needs a model of variables."),
    ("export ising.pf --to dot -o g.dot", "--to must be one of graphml, uai, qgraph, json, r"),
    ("export ising.pf --to uai --ledger l -o g.uai", "--ledger is for --to card."),
    ("demo -o t.csv", "is a file; a folder is needed."),
    ("demo -o full", "--output: the folder 'full' is not empty. Add --force to use it."),
    ("demo -o /proc/demo", "--output: cannot make '/proc/demo'"),
    ("init t.csv --levels= -o o.toml", "--levels must list at least two different levels"),
    ("init t.csv --ordered -o o.toml", "--ordered needs the levels: --levels 1-6, from least"),
    ("init t.csv --levels 0,1 --missing 1 -o o.toml", "'1' is a level of 'a', so it cannot mean"),
    ("init t.csv --levels 0,1 --missing 9,, -o o.toml", "--missing must list codes, such as 99,-1"),
    ("peer e.csv o.csv -e 1 --missing drop -o p.pf", "--missing must be one of ignore, negative"),
]


@pytest.mark.parametrize(("line", "told"), MISTAKES)
def test_mistakes(call, tmp_path, monkeypatch, line, told):
    """Exit code 2, the text, and nothing new in the folder."""
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("a,b\n1,2\n")
    Path("t.csv.json").write_text("a,b\n1,2\n")
    Path("e.csv").write_text("a,b\n")
    Path("o.csv").write_text("a,1\nb,0\n")
    Path("flat.json").write_text('["a", "b"]')
    pf.Schema({"a": 3, "b": 3}).write("s.toml")
    pf.Schema({"a": 1, "b": 1}).write("flat.toml")
    assert call("init", "t.csv", "-o", "open.toml")[0] == 0
    text = Path("open.toml").read_text()
    Path("open.toml").write_text(text[: text.index("\n[variables.b]")] + "\n")
    pf.IsingModel(np.zeros((2, 2))).save("ising.pf")
    pf.ChainModel(["x", "y"], [0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]]).save("chain.pf")
    Path("full").mkdir()
    Path("full/file").write_text("")
    before = sorted(tmp_path.rglob("*"))
    code, out, err = call(*line.split())
    assert code == 2 and told in err and not out
    assert sorted(tmp_path.rglob("*")) == before


def strings(tree):
    return [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and type(n.value) is str]


def error_texts():
    """Place and constant parts of each error that is raised with a text of its own."""
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            call = node.exc if isinstance(node, ast.Raise) else None
            if not isinstance(call, ast.Call):
                continue
            name = getattr(call.func, "id", getattr(call.func, "attr", ""))
            parts = [each for each in strings(call) if len(each) >= LEAST]
            if name in ERRORS and parts:
                yield f"{path.name}:{node.lineno}", parts


def test_every_error_text_is_tested():
    told = set()
    for folder in ("cli", "reporting"):
        for path in (TESTS / folder).glob("test_*.py"):
            told.update(s for s in strings(ast.parse(path.read_text())) if len(s) >= LEAST)
    told -= {GUARD}
    found = list(error_texts())
    assert len(found) > 40
    untested = [
        f"{place}: {' … '.join(parts)}"
        for place, parts in found
        if not any(s in part or part in s for s in told for part in parts)
        and GUARD not in " ".join(parts)
    ]
    assert not untested, "\n".join(untested)
