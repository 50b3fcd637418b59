"""What new users stumble over: levels, encodings, forecasts, δ, names of files, completion."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys

import numpy as np
import pytest

import privfield as pf


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A folder with a table of 0 and 1."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("a,b,c\n" + "0,1,0\n1,1,0\n" * 200)
    return tmp_path


def test_a_table_of_0_and_1_that_is_called_no_and_yes(call, desk):
    code, _, err = call("init", "t.csv", "--levels", "no,yes", "-o", "s.toml")
    assert code == 0 and "Where the file has 0 and 1, the levels are 0,1." in err
    code, out, _ = call("check", "t.csv", "-s", "s.toml")
    assert code == 0 and out.count("ATTENTION") == 1
    assert "3 columns ('a', 'b', 'c') with more than 5% of values outside the schema" in out
    found = json.loads(call("check", "t.csv", "-s", "s.toml", "--json")[1])
    assert len(found["alarms"]) == 1 and found["PRIVATE"]
    fit = ("fit", "t.csv", "-e", "1", "-d", "1e-6", "-o", "m.pf")
    code, _, err = call(*fit, "-s", "s.toml")
    reminders = [line for line in err.splitlines() if "privfield check" in line]
    assert code == 2 and len(reminders) == 1 and "Nothing was spent" in err
    call("init", "t.csv", "--levels", "0,1", "-o", "right.toml")
    assert "ATTENTION" not in call("check", "t.csv", "-s", "right.toml")[1]
    same = call(*fit, "-s", "right.toml")[2].replace("(0)", "(no)")
    assert same == err  # what `fit` says before it asks depends on no record


STUDIES = {
    "two levels": ({name: ["0", "1"] for name in "abcdef"}, ("-e", "1", "-d", "1e-6")),
    "a pure promise": ({name: ["0", "1"] for name in "abcdef"}, ("-e", "1")),
    "scales": ({name: pf.Ordered([1, 2, 3, 4]) for name in "abcd"}, ("--rho", "0.1")),
    "mixed": ({"a": 3, "b": ["0", "1"], "c": pf.Bins([0, 1, 5, 9])}, ("-e", "2", "-d", "1e-7")),
    "one": ({"a": 3}, ("-e", "1")),
    "listed": ({"a": 3, "b": 2, "c": 4}, ("-e", "1", "--cliques", "a,b; b,c")),
}


@pytest.mark.parametrize("name", STUDIES)
def test_fit_forecasts_what_plan_forecasts(call, desk, name):
    variables, options = STUDIES[name]
    pf.Schema(variables).write("s.toml")
    (desk / "d.csv").write_text(",".join(variables) + "\n" + "1" + ",1" * (len(variables) - 1))
    line = ("-s", "s.toml", "--n", "7000", *options)
    err = call("fit", "d.csv", *line, "-o", "m.pf")[2]
    plan = json.loads(call("plan", "s.toml", *line[2:], "--json")[1])
    best = plan["methods"][0]
    assert f"Expected error   {best['expected_error']:.2g}: {plan['metric']}" in err
    assert plan["verdict"] in err
    shown = re.search(r"Expected time    (.*) on one core, with (.*) of memory", err)
    screen = call("plan", "s.toml", *line[2:])[1]
    row = next(row for row in screen.splitlines() if row.startswith(f"{best['name']} "))
    assert shown is not None and shown[1] in row and shown[2] in row


def test_a_large_delta_is_remarked_on(call, desk):
    call("init", "t.csv", "--levels", "0,1", "-o", "s.toml")
    told = "is not below 1/n = 0.0025: showing all about one person in n"
    line = ("fit", "t.csv", "-s", "s.toml", "-e", "1", "-o", "m.pf")
    assert told in call(*line, "-d", "0.01")[2] and told in call(*line, "-d", "0.0025")[2]
    assert "not below" not in call(*line, "-d", "0.0024")[2]
    assert "not below" not in call(*line)[2]
    # the number of rows is private: nothing may be said about it, but about a declared one
    assert "not below" not in call(*line, "-d", "0.5", "--adjacency", "add-remove")[2]
    declared = call(*line, "-d", "0.5", "--adjacency", "add-remove", "--n", "400")[2]
    assert "δ = 0.5 is not below 1/n = 0.0025" in declared
    out = call("plan", "s.toml", "--n", "400", "-e", "1", "-d", "0.01")[1]
    assert told in " ".join(out.split()) and "such as 1e-5." in out
    graph = ("structure", "t.csv", "-s", "s.toml", "-e", "1", "-d", "0.01", "-o", "g.csv")
    assert told in call(*graph)[2]
    (desk / "edges.csv").write_text("a,b\nb,c\nc,d\n")
    (desk / "few.csv").write_text("a,1\n")
    peer = ("peer", "edges.csv", "few.csv", "-e", "1", "-d", "0.3", "-o", "p.pf")
    assert "δ = 0.3 is not below 1/n = 0.25" in call(*peer)[2]


def test_a_table_in_latin_1_with_bars(call, desk):
    (desk / "items.txt").write_bytes("Müde|schläfrig\n".encode("latin-1") + b"ja|nein\n\xe4|ja\n")
    code, _, err = call("init", "items.txt", "--levels", "nein,ja", "-o", "s.toml")
    assert code == 2 and "not UTF-8 text; if it is Latin-1, say so: --encoding latin-1" in err
    latin = ("--encoding", "latin-1")
    code, _, err = call("init", "items.txt", "--levels", "nein,ja,ä", "-o", "s.toml", *latin)
    assert code == 0 and "privfield check items.txt --schema s.toml --encoding latin-1" in err
    assert pf.Schema.read("s.toml").names == ("Müde", "schläfrig")
    code, out, _ = call("check", "items.txt", "-s", "s.toml", *latin, "--json")
    assert code == 0 and [v["unknown"] for v in json.loads(out)["variables"]] == [0, 0]
    public = ("--levels-are-public", "-o", "public.toml", *latin)
    assert call("init", "items.txt", *public)[0] == 0
    assert pf.Schema.read("public.toml")["Müde"].levels == ("ja", "ä")
    for command, more in (("fit", ()), ("structure", ("-d", "1e-6", "--method", "chow-liu"))):
        line = (command, "items.txt", "-s", "s.toml", "-e", "1", *more, "--yes")
        line = (*line, "-o", f"{command}.csv")
        code, _, err = call(*line)
        assert code == 2 and "lacks 2 columns of the schema: 'Müde', 'schläfrig'" in err
        code, _, err = call(*line, *latin)
        assert code in (0, 4), err  # 4: nothing stable
    assert pf.load("fit.csv").schema["Müde"].levels == ("nein", "ja", "ä")


def test_exports_for_r_have_names_that_end_in_csv(call, desk):
    pf.IsingModel([[0, 0.5], [0.5, 0]]).save("m.pf")
    code, out, _ = call("export", "m.pf", "--to", "qgraph", "-o", "symptoms")
    assert code == 0 and out == "Wrote symptoms.csv and symptoms-thresholds.csv.\n"
    code, _, err = call("export", "m.pf", "--to", "qgraph", "-o", "symptoms")
    assert code == 2 and "'symptoms.csv' exists already" in err
    assert call("export", "m.pf", "--to", "jasp", "-o", "people")[1] == "Wrote people.csv.\n"
    assert call("export", "m.pf", "--to", "qgraph", "-o", "w.txt")[1].startswith("Wrote w.txt")
    assert (desk / "people.csv").exists() and (desk / "w-thresholds.txt").exists()


def test_people_outside_the_network(call, desk):
    (desk / "edges.csv").write_text("a,b\nb,c\n")
    (desk / "all.csv").write_text("a,1\nb,0\nc,1\nd,SECRET\ne,0\n")
    (desk / "few.csv").write_text("a,1\nb,0\n")
    line = ("peer", "edges.csv", "all.csv", "-e", "1", "--ledger", "l", "-o", "p.pf")
    code, _, err = call(*line)
    assert code == 2 and "Nothing was spent." in err and not os.path.exists("l")
    assert "Ignored   2 outcomes of people outside the network: without contacts they say" in err
    code, _, err = call(*line, "--missing", "negative", "--yes")
    assert code == 0 and "Ignored" not in err  # who is listed is private then
    few = ("peer", "edges.csv", "few.csv", "-e", "1", "--yes", "-o", "f.pf")
    code, _, err = call(*few)
    assert code == 2 and "1 of 3 nodes has none, such as 'c'" in err
    assert err.strip().endswith("to read them as negative. Nothing was spent.")
    assert call(*few, "--missing", "negative")[0] == 0
    spent = call("peer", "edges.csv", "all.csv", "-e", "1", "--yes", "--json", "-o", "q.pf")
    assert spent[0] == 0 and json.loads(spent[1])["cost"]


def test_what_counts_as_positive_is_said_and_can_be_named(call, desk):
    ring = [f"p{k}" for k in range(40)]
    pairs = zip(ring, ring[1:] + ring[:1], strict=True)
    (desk / "edges.csv").write_text("".join(f"{a},{b}\n" for a, b in pairs))
    for name, no, yes in (("numbers", 0, 1), ("words", "nein", "ja"), ("codes", 1, 2)):
        (desk / f"{name}.csv").write_text(
            "".join(f"{who},{yes if k < 20 else no}\n" for k, who in enumerate(ring))
        )
    line = ("-e", "5", "--insecure-seed", "1", "--yes", "--force", "--json", "-o", "p.pf")
    code, plain, err = call("peer", "edges.csv", "numbers.csv", *line)
    assert code == 0 and "numbers above 0, yes, true, y and t count as positive" in err
    assert json.loads(plain)["stamp"] and json.loads(plain)["cost"] is None
    code, same, err = call("peer", "edges.csv", "words.csv", "--positive", "ja", *line)
    assert code == 0 and same == plain
    assert "Outcomes  'ja' counts as positive, all else as negative" in err
    two = ("--positive", "2,3", "--positive", "positiv")
    code, same, err = call("peer", "edges.csv", "codes.csv", *two, *line)
    assert same == plain and "'2', '3' and 'positiv' count as positive" in err
    code, _, err = call("peer", "edges.csv", "codes.csv", "--positive", "", *line)
    assert code == 2 and "--positive must name values" in err
    assert "an empty cell" in " ".join(call("peer", "--help")[1].split())


def test_a_hopeless_study_is_called_so_to_its_end(call, desk):
    rows = np.random.default_rng(0).integers(0, 2, (100, 3))
    (desk / "t.csv").write_text("a,b,c\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows))
    pf.Schema(dict.fromkeys("abc", 2)).write("s.toml")
    line = ("fit", "t.csv", "-s", "s.toml", "-e", "0.001", "-d", "1e-6", "--yes", "-o", "m.pf")
    code, out, err = call(*line, "--insecure-seed", "1")
    assert code == 0 and "linked" not in out and "3 variables; what is related is likely" in out
    assert "which links stand out" not in err and "more rows or a larger budget are needed." in err
    asked = ("query", "m.pf", "P(a=1 | b=1)")
    assert "P(a=1 | b=1) is not measured: noise would allow any probability\n" in call(*asked)[1]
    told = json.loads(call(*asked, "--json")[1])
    assert told["low"] is told["high"] is None and told["note"].startswith("not measured")


def test_a_hopeless_peer_effect_is_called_so(call, desk):
    ring = range(50)
    (desk / "edges.csv").write_text("".join(f"p{k},p{(k + 1) % 50}\n" for k in ring))
    (desk / "out.csv").write_text("".join(f"p{k},{k % 2}\n" for k in ring))
    line = ("peer", "edges.csv", "out.csv", "--yes", "--force", "-o", "p.pf")
    assert "Next to nothing" not in call(*line, "-e", "5")[2]
    code, _, err = call(*line, "-e", "0.001")
    assert code == 0 and "Next to nothing can be learned" in err


def test_the_ledger_says_in_epsilon_what_is_left(call, desk):
    assert call("init", "t.csv", "--levels", "0,1", "-o", "s.toml")[0] == 0
    line = ("fit", "t.csv", "-s", "s.toml", "-d", "1e-5", "--yes", "--ledger", "l")
    line = (*line, "--cliques", "all-pairs", "--force", "-o", "m.pf")
    code, out, _ = call(*line, "-e", "1", "--total", "2,1e-5")
    words = r"ε = (\S+) at δ = 1e-05 with Gaussian noise or ε = (\S+) with Laplace noise \(ρ"
    left = re.search(words, out)
    assert code == 0 and f"Remaining  {left[0]}" in call("ledger", "l")[1]
    assert json.loads(call("ledger", "l", "--json")[1])["remaining_epsilon"] == float(left[1])
    assert left[2] == "1"  # small tables have Laplace noise, and pure costs add up
    assert call(*line, "-e", "1.002")[0] == 3
    code, out, err = call(*line, "-e", "1")
    assert code == 0 and left[0] in err


def test_a_network_in_latin_1(call, desk):
    (desk / "edges.csv").write_bytes("Jürg,Zoë\nZoë,Ann\n".encode("latin-1"))
    (desk / "who.csv").write_bytes("Jürg,1\nZoë,0\nAnn,1\n".encode("latin-1"))
    line = ("peer", "edges.csv", "who.csv", "-e", "1", "--missing", "refuse", "--yes", "-o", "p.pf")
    code, _, err = call(*line)
    assert code == 2 and "'edges.csv' is not a UTF-8 text file" in err
    assert call(*line, "--encoding", "latin-1")[0] == 0
    assert set(pf.load("p.pf").names) == {"Jürg", "Zoë", "Ann"}
    assert "--encoding must be utf-8" in call(*line, "--force", "--encoding", "utf-16")[2]


def test_the_module_is_the_program():
    done = subprocess.run(
        [sys.executable, "-m", "privfield", "--version"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, f"privfield {pf.__version__}\n")


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_completion_in_bash():
    """As the shell asks for it."""
    words = {
        "_PRIVFIELD_COMPLETE": "complete_bash",
        "COMP_WORDS": "privfield fi",
        "COMP_CWORD": "1",
    }
    program = [sys.executable, "-m", "privfield"]
    done = subprocess.run(program, env=os.environ | words, capture_output=True, text=True)
    assert (done.returncode, done.stdout.split()) == (0, ["fit"])
    asked = (
        f"{shlex.join([*program, '--show-completion'])}; exit $?"  # the shell that asks is found
    )
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True)
    assert done.returncode == 0 and "complete -o default -F" in done.stdout
    assert subprocess.run(["bash", "-n"], input=done.stdout, text=True).returncode == 0


def test_a_triple_is_told_of_in_every_export_that_takes_it(call, desk):
    pf.Schema({name: ["0", "1"] for name in "abc"}).write("s.toml")
    line = ("fit", "t.csv", "-s", "s.toml", "-e", "1", "--cliques", "a,b,c", "-o", "m.pf", "--yes")
    assert call(*line)[0] == 0
    told = "Three or more variables were measured together (a"
    for kind, name in (("r", "m.R"), ("graphml", "m.graphml"), ("json", "m.json")):
        assert call("export", "m.pf", "--to", kind, "-o", name)[0] == 0
        assert told in (desk / name).read_text()
    lines = (desk / "m.R").read_text().partition("\nlabels <-")[0].splitlines()
    assert all(each.startswith("#") or not each for each in lines)  # R reads past it
    code, _, err = call("export", "m.pf", "--to", "qgraph", "-o", "weights")
    assert code == 2 and "--to r and graphml take it" in err and not (desk / "weights.csv").exists()


@pytest.mark.parametrize(
    ("shape", "n", "epsilon", "told"),
    [
        ([2] * 6, 3000, "1", "Selection may err less (0.017), but leaves the pairs that it does"),
        ([3, 4, 5, 2], 100, "0.01", "only if shrunk by exactly the right amount; on real tables"),
    ],
)
def test_a_choice_against_a_smaller_error_says_why(call, desk, shape, n, epsilon, told):
    """The same in `plan` and in `fit`; where nothing is looked for, `fit` does not speak of it."""
    pf.Schema({f"v{place}": levels for place, levels in enumerate(shape)}).write("s.toml")
    (desk / "v.csv").write_text(",".join(f"v{place}" for place in range(len(shape))) + "\n")
    budget = ("-e", epsilon, "-d", "1e-6", "--n", str(n))
    planned = " ".join(call("plan", "s.toml", *budget)[1].split())
    fitted = " ".join(call("fit", "v.csv", "-s", "s.toml", *budget, "-o", "m.pf")[2].split())
    assert told in planned and told in fitted
    hopeless = epsilon == "0.01"
    assert ("Chosen: single variables alone, not tables 0." in fitted) is hopeless
    assert ("single variables get the whole budget. All pairs read" in planned) is hopeless


def test_a_plan_counts_gaps_apart_from_answers(call, desk):
    answers = {name: pf.Ordered([1, 2, 3, 4]) for name in "ab"}
    for gaps, told in (
        (["a", "b"], "and gaps"),
        (["a"], "(one level is a gap in 1 of them)"),
    ):
        pf.Schema(answers, gaps=dict.fromkeys(gaps, "none")).write("s.toml")
        assert told in " ".join(call("plan", "s.toml", "--n", "1000", "-e", "1")[1].split())
        (desk / "s.toml").unlink()
    pf.Schema(answers).write("s.toml")
    assert "a gap" not in call("plan", "s.toml", "--n", "1000", "-e", "1")[1]
