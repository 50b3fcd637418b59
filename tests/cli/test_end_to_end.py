"""Each command, and a study through the installed program: stdout, exit codes, files."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys

import networkx as nx
import numpy as np
import pyarrow.parquet as pq
import pytest

import privfield as pf
from command_line import NAMES, installed
from privfield.audit import run


@pytest.fixture
def here(call, monkeypatch):
    """The same in this process, where everything is loaded already."""

    def run(*arguments, cwd="."):
        with monkeypatch.context() as patch:
            patch.chdir(cwd)
            return subprocess.CompletedProcess(arguments, *call(*arguments))

    return run


def ok(done):
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_from_a_csv_to_a_report(study, tmp_path):
    """Three commands: init, fit, report; then everything that is free."""
    with open(study / "patients.csv") as file, open(tmp_path / "symptoms.csv", "w") as out:
        for line in file:
            out.write(line.split(",", 1)[1])  # without age: two levels each
    run = lambda *arguments: installed(*arguments, cwd=tmp_path)  # noqa: E731
    assert "4 columns, from the header only" in ok(
        run("init", "symptoms.csv", "--levels", "no,yes", "-o", "s.toml")
    )
    assert "PRIVATE" in ok(run("check", "symptoms.csv", "--schema", "s.toml")).splitlines()[0]
    plan = json.loads(
        ok(run("plan", "s.toml", "--n", "3000", "--epsilon", "1", "--delta", "1e-6", "--json"))
    )
    assert plan["expected_error"] > 0
    fit = run(
        *("fit", "symptoms.csv", "--schema", "s.toml", "--epsilon", "1", "--delta", "1e-6"),
        *("--ledger", "l.ledger", "--yes", "--json", "-o", "m.pf"),
    )
    found = json.loads(ok(fit))
    assert found["method"] == plan["recommended"] == "moments"
    assert found["expected_error"] == pytest.approx(plan["expected_error"])
    assert 0 <= found["linked_in_model"] <= 6 and "edges" not in found  # verdicts: `report`
    assert found["solution"]["converged"] and found["solution"]["contradicted"] == []
    assert found["ledger"]["remaining"] is None  # a new ledger has this fit's budget
    for told in (
        "This will spend  ε = 1, δ = 1e-06",
        "Expected error",
        "unknown",
        "privfield check",
    ):
        assert told in fit.stderr
    model = pf.load(tmp_path / "m.pf")
    assert model.schema.names == tuple(NAMES) and model.schema["worry"].levels == ("no", "yes")
    assert model.solution.to_json() == found["solution"]  # also with the schema's labels
    assert model.card.job == found["ledger"]["jobs"][0] and not model.card.levels_are_public
    page = ok(run("report", "m.pf", "-o", "r.html"))
    assert "r.html" in page and "<html" in (tmp_path / "r.html").read_text()[:500]
    assert "Remaining  nothing" in ok(run("ledger", "l.ledger"))
    again = run(
        "fit", "symptoms.csv", "-s", "s.toml", "-e", "1", "--ledger", "l.ledger", "-y", "-o", "n.pf"
    )
    assert again.returncode == 3 and "budget refused" in again.stderr
    assert not (tmp_path / "n.pf").exists()


def test_query_with_its_interval(study, here):
    done = here("query", study / "model.pf", "P(low mood=yes | age=40-65)", "--json")
    found = json.loads(ok(done))
    assert set(found) == {"estimate", "low", "high", "level", "note", "stamp"}
    answer = pf.load(study / "model.pf").ask("P(low mood=yes | age=40-65)")
    assert (found["estimate"], found["low"], found["high"]) == (
        answer.estimate,
        answer.low,
        answer.high,
    )
    text = ok(here("query", study / "model.pf", "P(poor sleep=yes)"))
    assert text.startswith("P(poor sleep=yes) = 0.") and "95%" in text


def test_reports_and_exports_count_pairs_by_verdict(study, tmp_path, here):
    edges = pf.load(study / "model.pf").edges()
    names = ("clear", "uncertain", "absent", "not measured")
    for line in (
        ("report", study / "model.pf", "-o", tmp_path / "r.html", "--json"),
        ("export", study / "model.pf", "--to", "json", "-o", tmp_path / "g.json", "--json"),
    ):
        found = json.loads(ok(here(*line)))["edges"]
        assert found == {name: edges.count(name) for name in names}
    links = json.loads((tmp_path / "g.json").read_text())["edges"]
    assert {link["verdict"] for link in links} == {edge.verdict for edge in edges}


def test_two_models_are_compared(study, tmp_path, call):
    page = tmp_path / "compare.html"
    model = study / "model.pf"
    other = tmp_path / "other.pf"
    fit = ("fit", study / "patients.csv", "-s", study / "schema.toml", "-e", "1", "-d", "1e-6")
    assert call(*fit, "--cliques", "all-pairs", "--yes", "-o", other)[0] == 0
    code, out, _ = call("compare", model, other, "-o", page, "--json")
    found = json.loads(out)
    assert code == 0 and page.exists() and 0 < found["p"] <= 1
    code, _, err = call("compare", model, model)
    assert code == 2 and "the same release" in err
    code, _, err = call("compare", model, study / "patients.csv")
    assert code == 2 and "not a privfield file" in err


def test_sites_are_pooled_and_planned(study, tmp_path, call):
    model, whole = study / "model.pf", tmp_path / "all.pf"
    fit = ("fit", study / "patients.csv", "-s", study / "schema.toml", "-e", "1", "-d", "1e-6")
    others = [tmp_path / "south.pf", tmp_path / "west.pf"]
    for other in others:
        assert call(*fit, "--cliques", "all-pairs", "--yes", "-o", other)[0] == 0
    code, _, err = call("pool", model, others[0], model, "-o", whole)
    assert (
        code == 2
        and f"{str(model)!r} is the same release as {str(model)!r}: name each site once" in err
    )
    code, out, _ = call("pool", model, *others, "-o", whole, "--overlap", "--json")
    found = json.loads(out)
    assert code == 0 and found["sites"] == 3
    one = pf.load(model).card.cost
    assert pf.load(whole).card.cost == one + one + one
    assert call("report", whole, "-o", tmp_path / "all.html")[0] == 0
    code, out, _ = call(
        *("plan", study / "schema.toml", "--n", "3000", "--rho", "0.3", "--sites", "3")
    )
    assert code == 0 and "3 sites with ρ = 0.3 (zCDP) each" in out and "ρ = 0.1 (zCDP)" in out


def test_copies_for_combining(study, tmp_path, here):
    line = ("sample", study / "model.pf", "-n", "500", "-o", tmp_path / "s.csv", "--copies", "3")
    said = json.loads(ok(here(*line, "--seed", "4", "--json")))
    files = [tmp_path / f"s-{k}.csv" for k in (1, 2, 3)]
    assert said["output"] == [str(file) for file in files] and said["method"] == "independent"
    texts = [file.read_text() for file in files]
    assert len(set(texts)) == 3 and all(text.count("\n") == 501 for text in texts)
    ok(here(*line, "--seed", "4", "--force"))
    assert [file.read_text() for file in files] == texts
    assert "exists already" in here(*line).stderr
    assert "--copies must lie between" in here(*line[:-1], "1").stderr
    balanced = here(*line, "--force", "--method", "balanced")
    assert balanced.returncode == 2 and "independent" in balanced.stderr


def test_sample_writes_rows_that_honour_structural_zeros(study, tmp_path, here):
    ok(here("sample", study / "model.pf", "-n", "2e5", "-o", tmp_path / "rows.parquet"))
    rows = pq.read_table(tmp_path / "rows.parquet")
    assert rows.num_rows == 200_000 and rows.column_names == ["age", *NAMES]
    worried = {
        age
        for age, worry in zip(*(rows[c].to_pylist() for c in ("age", "worry")), strict=True)
        if worry == "yes"
    }
    assert worried == {"40-65", "65-100"}


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_synthetic_rows_read_back_with_the_same_schema(study, tmp_path, suffix, here):
    """Bins are written by their labels; every cell must come back as the level it was."""
    rows = tmp_path / f"rows.{suffix}"
    ok(here("sample", study / "model.pf", "-n", "4000", "-o", rows, "--seed", "1"))
    schema, model = pf.Schema.read(study / "schema.toml"), pf.load(study / "model.pf")
    found = pf.check(rows, schema)
    assert found.rows == 4000 and all(v.missing == v.unknown == 0 for v in found.variables)
    exact = pf.measure(rows, schema, [("age", "worry")], pf.NON_PRIVATE).tables[0]
    states = model.sample(4000, np.random.default_rng(1))
    assert (exact == np.histogram2d(states[:, 0], states[:, 4], (3, 2))[0]).all()
    ok(
        here(
            *("fit", rows, "-s", study / "schema.toml", "-e", "5", "--cliques", "all-pairs"),
            *("--yes", "-o", tmp_path / "again.pf"),
        )
    )
    again = pf.load(tmp_path / "again.pf")
    assert np.abs(again.marginal(["age"]) - model.marginal(["age"])).max() < 0.1


def test_export_for_other_programs(study, tmp_path, here):
    model = pf.load(study / "model.pf")
    for kind, name in (("graphml", "g.graphml"), ("json", "g.json"), ("uai", "g.uai")):
        ok(here("export", study / "model.pf", "--to", kind, "-o", tmp_path / name))
    graph = nx.read_graphml(tmp_path / "g.graphml")
    assert set(graph.nodes) == set(model.schema.names)
    same = nx.node_link_graph(json.loads((tmp_path / "g.json").read_text()), edges="edges")
    assert set(same.edges) == set(model.graph().edges)
    assert (tmp_path / "g.uai").read_text().startswith("MARKOV\n5\n3 2 2 2 2\n")


def test_peer_says_first_what_is_protected(tmp_path, here):
    graph = nx.cycle_graph(14)
    with open(tmp_path / "edges.csv", "w") as file:
        file.writelines(["source,target\n", *(f"n{a},n{b}\n" for a, b in graph.edges)])
    with open(tmp_path / "outcomes.csv", "w") as file:
        file.writelines(["node,ill\n", *(f"n{a},{int(a < 7)}\n" for a in graph)])
    line = ("peer", "edges.csv", "outcomes.csv", "--epsilon", "1", "--yes", "-o", "peer.pf")
    done = here(*line, cwd=tmp_path)
    first = ok(done).splitlines()[0]
    assert (
        first.startswith("Protected: each node's outcome") and "Not protected: the network" in first
    )
    told = ("the odds of a positive outcome are multiplied by", "Nothing can be learned")
    assert sum(words in done.stdout for words in told) == 1
    model = pf.load(tmp_path / "peer.pf")
    assert isinstance(model, pf.NetworkIsing) and "beta" in model.card.intervals
    perturbed = ("--method", "objective-perturbation", "--bounds=-2,3", "--insecure-seed", "1")
    found = json.loads(ok(here(*line, *perturbed, "--force", "--json", cwd=tmp_path)))
    # at ε = 1 noise hides all of 14 people
    assert -2 <= found["low"] <= found["beta"] <= found["high"] <= 3
    assert not found["outside_the_model"] and not found["ranges"]
    assert found["nothing_learned"] is ([found["low"], found["high"]] == [-2, 3])
    assert any("reaches the bound" in note for note in found["notes"])


def test_structure_writes_what_is_stable_and_nothing_else(tmp_path, here):
    rng = np.random.default_rng(3)
    first = rng.random(40_000) < 0.5
    second = np.where(rng.random(40_000) < 0.8, first, ~first)
    third = rng.random(40_000) < 0.5
    with open(tmp_path / "d.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow("abc")
        writer.writerows(np.stack([first, second, third], 1).astype(int).tolist())
    (tmp_path / "few.csv").write_text("a,b,c\n0,0,1\n1,1,0\n")
    pf.Schema({name: ["0", "1"] for name in "abc"}).write(tmp_path / "s.toml")
    budget = ("--schema", "s.toml", "--epsilon", "1", "--delta", "1e-6", "--min-weight", "0.4")
    ok(here("structure", "d.csv", *budget, "-o", "g.csv", cwd=tmp_path))
    assert (tmp_path / "g.csv").read_text() == "first,second\na,b\n"
    budget = (*budget, "--method", "chow-liu")
    done = here("structure", "few.csv", *budget, "-o", "none.graphml", cwd=tmp_path)
    assert done.returncode == 4 and not (tmp_path / "none.graphml").exists()
    assert "stable enough" in done.stderr and "more rows" in done.stderr
    budget = budget[:-2]
    done = here("structure", "few.csv", *budget, "-o", "few.csv", "--force", cwd=tmp_path)
    assert "0 edges" in ok(done)  # stable, since no block could see anything
    assert "all right, with a chance of below 1% (2 rows)" in done.stderr
    assert "No edge does not mean that nothing is related" in done.stderr


def test_audit_and_ledger_for_programs(study, call, monkeypatch, here):
    """Two of the audits: `tests/audit` runs them all."""
    few = dict(list(run.audits().items())[:2])
    monkeypatch.setattr(run, "audits", lambda: few)
    code, out, _ = call("audit", "--json")
    found = json.loads(out)
    assert code == 0 and found["passed"] and len(found["findings"]) >= 2 and found["not_audited"]
    found = json.loads(ok(here("ledger", study / "study.ledger", "--json")))
    assert found["charges"][0]["job"] == "first" and found["remaining"] is not None
    assert found["head"] == pf.Ledger(study / "study.ledger").head


def test_the_head_of_a_ledger_tells_an_older_copy(study, tmp_path, call):
    shutil.copy(study / "study.ledger", tmp_path / "old")
    shutil.copy(study / "study.ledger", tmp_path / "new")
    ledger = pf.Ledger(tmp_path / "new")
    ledger.charge("one more", pf.ZCDP(0.001), str(ledger.adjacency))
    heads = []
    for name in ("old", "new"):
        code, out, _ = call("ledger", tmp_path / name)
        assert code == 0
        heads += re.findall(r"^Head       ([0-9a-f]{64})$", out, re.MULTILINE)
    assert len(set(heads)) == 2 and heads[1] == ledger.head


def test_demo_ends_with_a_report(tmp_path):
    done = installed("demo", cwd=tmp_path)
    lines = ok(done).splitlines()
    assert (
        len(lines) == 6 and lines[-1] == f"Report   {tmp_path / 'privfield-demo' / 'report.html'}"
    )
    assert os.path.getsize(tmp_path / "privfield-demo" / "report.html") > 10_000
    again = installed("demo", cwd=tmp_path)
    assert again.returncode == 2 and "--force" in again.stderr


def test_the_module_runs_too():
    done = subprocess.run(
        [sys.executable, "-m", "privfield", "--help"], capture_output=True, text=True
    )
    commands = ("init", "check", "plan", "fit", "structure", "peer", "sample", "query", "report")
    for command in (*commands, "export", "ledger", "audit", "demo"):
        assert f" {command} " in done.stdout
