"""What a new user can do wrong: exit code 2, what is legal, never a private value."""

import errno
import json
import math
import os
import shutil
from contextlib import nullcontext

import numpy as np
import pytest

import privfield as pf
from privfield.mechanisms.tables.mechanism import ContingencyTables
from privfield.privacy.ledger import NoLedger

FIT = ("--epsilon", "1", "--cliques", "all-pairs", "--yes")


@pytest.fixture
def desk(study, tmp_path, monkeypatch):
    """A folder of one's own with the study's files."""
    for name in ("patients.csv", "schema.toml", "model.pf"):
        shutil.copy(study / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    before = set(os.listdir())
    yield tmp_path
    left = {name for name in os.listdir() if name.startswith(".")}
    assert not left and before <= set(os.listdir())


MISTAKES = [
    (
        "fit patient.csv -s schema.toml",
        "there is no file 'patient.csv'. Did you mean 'patients.csv'?",
    ),
    ("fit patients.xlsx -s schema.toml", "is a spreadsheet. Export the table as CSV (UTF-8)"),
    ("fit patients.csv -s scheme.toml", "there is no schema file 'scheme.toml'. Did you mean"),
    ("fit patients.csv -s patients.csv", "is no schema file, which"),
    ("fit waved.csv -s schema.toml", "must be separated by commas, semicolons, tabs or |"),
    ("fit patients.csv -s schema.toml --encoding utf-16", "--encoding must be utf-8, or one with"),
    ("fit patients.csv -s schema.toml --encoding latin-1 --spark local", "leave out --spark"),
    ("fit other.csv -s schema.toml", "lacks 4 columns of the schema: 'low mood'"),
    ("fit patients.csv -s schema.toml --adjacency swap", "replace-one or add-remove"),
    ("fit patients.csv -s schema.toml --cliques worry,aeg", "there is no variable 'aeg'"),
    ("fit patients.csv -s schema.toml --cliques none.json", "there is no file 'none.json'"),
    ("fit patients.csv -s schema.toml --method magic", "--method must be one of auto"),
    ("fit patients.csv -s schema.toml --method moments", "knows no forbidden combinations"),
    ("fit patients.csv -s schema.toml --max-memory lots", "such as 8GB"),
    ("fit patients.csv -s schema.toml --ledger no/l", "does not exist"),
    ("fit patients.csv -s schema.toml --ledger schema.toml", "is not a ledger"),
    ("fit patients.csv -s schema.toml --ledger l --total much", "such as 3,1e-6"),
    ("fit patients.csv -s schema.toml --job j", "--job needs --ledger"),
    ("fit patients.csv -s schema.toml --rho 1", "--rho stands alone"),
]


@pytest.mark.parametrize(("line", "told"), MISTAKES)
def test_mistakes_before_a_fit_spend_nothing_and_write_nothing(call, desk, line, told):
    (desk / "waved.csv").write_text((desk / "patients.csv").read_text().replace(",", "~"))
    (desk / "other.csv").write_text("age;x\nSECRET;1\n")
    command, *rest = line.split()
    code, out, err = call(command, *FIT, *rest, "-o", "m.pf")
    assert code == 2 and told in err
    assert "SECRET" not in err and not out
    assert not (desk / "m.pf").exists() and not (desk / "l").exists()


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("fit patients.csv -s schema.toml --epsilon one -o m.pf", "a number above 0, such as 1"),
        ("fit patients.csv -s schema.toml --epsilon -1 -o m.pf", "a number above 0"),
        ("fit patients.csv -s schema.toml --epsilon 1 --delta 2 -o m.pf", "from 0 to below 1"),
        ("fit patients.csv -s schema.toml -o m.pf --yes", "--epsilon is missing"),
        ("fit patients.csv -s schema.toml --epsilon 1", "Missing option '--output'"),
        ("fit patients.csv -s schema.toml --epsilon 1 -o m.pf", "add --yes"),
        ("plan schema.toml --n many --epsilon 1", "a whole number from 0"),
        ("plan schema.toml --n 0.5 --epsilon 1", "a whole number from 0"),
        ("structure patients.csv -s schema.toml --epsilon 1 -o g.csv", "--delta is missing"),
        ("structure patients.csv -s schema.toml -e 1 -d 1e-6 -o g.png", ".graphml, .json, .csv"),
        ("query model.pf P(wory=yes)", "Did you mean 'worry'?"),
        ("query model.pf P(worry=ye)", "Did you mean 'yes'?"),
        ("query model.pf P(age=40-65|worry=yes,age=18-40)", "both sides"),
        ("query model.pf P(fatigue=yes|worry=yes,age=18-40)", "has probability zero"),
        ("query model.pf P(worry=yes) --level 2", "between 0 and 1"),
        ("query patients.csv P(worry=yes)", "A model file is what `privfield fit"),
        ("query half.pf P(worry=yes)", "damaged"),
        ("query none.pf P(worry=yes)", "there is no file 'none.pf'"),
        ("sample model.pf -n ten -o rows.csv", "a whole number from 0"),
        ("sample model.pf -n 10 -o rows.xlsx", ".csv, .parquet"),
        ("sample model.pf -n 10 -o no/rows.csv", "the folder 'no' does not exist"),
        ("sample model.pf -n 10 -o .", "is a folder"),
        ("sample model.pf -n 10 -o /proc/rows.csv", "cannot write in '/proc'"),
        ("export model.pf --to dot -o g.dot", "graphml, uai, qgraph, json"),
        ("export model.pf --to qgraph -o w.csv", "two levels"),
        ("report half.pf -o r.html", "damaged"),
        ("ledger none.ledger", "there is no ledger 'none.ledger'"),
        ("ledger model.pf", "not a ledger"),
        ("peer none.csv out.csv --epsilon 1 -o p.pf", "there is no file 'none.csv'"),
        ("peer edges.csv none.csv --epsilon 1 -o p.pf", "OUTCOMES: there is no file 'none.csv'"),
        ("peer edges.csv few.csv --epsilon 1 -o p.pf", "or add --missing negative to read"),
        ("peer edges.csv few.csv -e 1 --missing refuse -o p.pf", "negative. Nothing was spent."),
        ("peer edges.csv many.csv -e 1 --missing refuse -o p.pf", "or add --missing ignore to"),
        ("peer edges.csv many.csv -e 1 --missing drop -o p.pf", "ignore, negative, refuse; got"),
        ("peer edges.csv many.csv --epsilon 1 -o p.pf", "add --yes to go on. Nothing was spent"),
        ("peer edges.csv many.csv -e 1 --bounds 3 -o p.pf", "--bounds must be two numbers"),
        ("demo -o patients.csv", "is a file"),
        ("fitt patients.csv", "No such command 'fitt'"),
        ("fit patients.csv --epsilom 1", "No such option"),
    ],
)
def test_other_mistakes(call, desk, line, told):
    (desk / "half.pf").write_bytes((desk / "model.pf").read_bytes()[:3000])
    (desk / "edges.csv").write_text("a,b\nb,c\n")
    (desk / "few.csv").write_text("a,1\nb,0\n")
    (desk / "many.csv").write_text("a,1\nb,0\nc,1\nd,SECRET\n")
    code, out, err = call(*line.split())
    assert code == 2 and told in err and "SECRET" not in err
    assert not out and err.startswith(("privfield: ", "This will spend", "Protected: "))


def test_models_too_large_for_exact_answers_are_simulated(call, desk):
    """40 variables that are all related: treewidth 39. The answer is within 5 of its deviations.

    Nothing but the pair is tied, so the truth is known; 10,000 rows fulfil the condition.
    """
    weights = np.full((40, 40), 1e-9) * (1 - np.eye(40))
    weights[0, 1] = weights[1, 0] = 0.5
    pf.IsingModel(weights, np.zeros(40)).save("wide.pf")
    code, out, err = call("query", "wide.pf", "P(x0=+1 | x1=+1)", "--json")
    found = json.loads(out)
    assert code == 0 and found["low"] is None and found["high"] is None
    assert abs(found["estimate"] - 1 / (1 + math.exp(-1))) < 5 * math.sqrt(0.2 / 5000)
    code, out, err = call("query", "wide.pf", "P(x0=+1)")
    assert code == 0 and "simulated rows" in err
    rare = " , ".join(f"x{i}=+1" for i in range(1, 12))
    code, out, err = call("query", "wide.pf", f"P(x0=+1 | {rare})")
    assert code == 2 and "too rare to be simulated" in err


def test_version(call):
    assert call("--version") == (0, f"privfield {pf.__version__}\n", "")


def test_existing_output_needs_force_before_anything_is_spent(call, desk):
    line = ("fit", "patients.csv", "-s", "schema.toml", *FIT, "--ledger", "l", "-o", "model.pf")
    before = (desk / "model.pf").read_bytes()
    code, _, err = call(*line)
    assert code == 2 and "exists already. Add --force" in err
    assert (desk / "model.pf").read_bytes() == before and not (desk / "l").exists()
    assert call(*line, "--force")[0] == 0
    assert (desk / "model.pf").read_bytes() != before


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_disk_that_fails_after_the_charge(call, desk, monkeypatch, number):
    """What was charged is said, and how to finish without paying twice."""
    line = ("fit", "patients.csv", "-s", "schema.toml", *FIT, "--ledger", "l", "--job", "one")

    def fail(_):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        code, _, err = call(*line, "-o", "m.pf")
    assert code == 2 and "--job one to finish at no further cost." in err
    told = "--output: cannot write 'm.pf'" if number == errno.ENOSPC else "cannot read or write"
    assert f"{told}: {os.strerror(number)}." in err and "l was charged" in err
    assert not (desk / "m.pf").exists() and len(pf.Ledger("l").charges()) == 1
    assert call(*line, "-o", "m.pf")[0] == 0 and len(pf.Ledger("l").charges()) == 1
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        err = call(*line[:-4], "-o", "n.pf")[2]
    assert "count it as spent" in err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_folders(call, desk):
    (desk / "locked").mkdir(mode=0o555)
    code, _, err = call("sample", "model.pf", "-n", "10", "-o", "locked/rows.csv")
    assert code == 2 and "cannot write in 'locked'" in err


def test_a_job_that_is_known_costs_nothing(call, desk):
    line = ("fit", "patients.csv", "-s", "schema.toml", *FIT, "--ledger", "l", "--job", "one")
    assert call(*line, "-o", "a.pf")[0] == 0
    code, out, err = call(*line, "-o", "b.pf")
    assert code == 0 and "nothing more will be charged" in err and "charged before" in out
    assert "This will spend  nothing," in err
    code, out, err = call(*[each for each in line if each != "--yes"], "-o", "yes.pf")
    assert code == 0  # nobody needs to be asked about nothing
    a, b = pf.load("a.pf").measurements, pf.load("b.pf").measurements
    assert all((x == y).all() for x, y in zip(a.tables, b.tables, strict=True))
    without = [each for each in line[:-2] if each != "--yes"]  # refused before anybody is asked
    code, _, err = call(*without, "-o", "c.pf")
    assert code == 3 and "has nothing left of" in err and not (desk / "c.pf").exists()


def test_a_refused_fit_leaves_no_ledger_that_blocks_the_next(call, desk):
    line = ("fit", "patients.csv", "-s", "schema.toml", "--cliques", "all-pairs", "--yes")
    line = (*line, "--ledger", "l", "-o", "m.pf")
    for _ in range(2):
        code, _, err = call(*line, "-e", "2", "--total", "1")
        assert code == 3 and "budget refused" in err and not (desk / "m.pf").exists()
        with pytest.raises(pf.InputError, match="empty file"):
            pf.Ledger("l")
    assert call(*line, "-e", "2", "--total", "2")[0] == 0  # another total
    assert pf.Ledger("l").total == pf.PureDP(2) and len(pf.Ledger("l").charges()) == 1
    assert call(*line, "-e", "1", "--force")[0] == 3
    assert len(pf.Ledger("l").charges()) == 1  # what was charged stays


def test_an_emptied_ledger_is_like_none(call, desk):
    line = ("fit", "patients.csv", "-s", "schema.toml", "--cliques", "all-pairs", "--yes")
    pf.Ledger("l", total=pf.PureDP(1)).withdraw()
    assert call(*line, "-e", "2", "--ledger", "l", "-o", "m.pf")[0] == 0
    assert pf.Ledger("l").total == pf.PureDP(2)


def test_a_promise_that_is_none_is_called_so(call, desk):
    line = ("fit", "patients.csv", "-s", "schema.toml", "--cliques", "all-pairs", "-o", "m.pf")
    for budget in (("-e", "50"), ("--rho", "20")):
        assert "(next to no promise)" in call(*line, *budget)[2]
    for budget in (("-e", "1"), ("--rho", "0.1")):
        assert "no promise" not in call(*line, *budget)[2]


def test_one_is_not_many(call, desk):
    (desk / "one.csv").write_text("a\nno\n")
    assert "1 column," in call("init", "one.csv", "--levels", "no,yes", "-o", "one.toml")[1]
    code, out, err = call("fit", "one.csv", "-s", "one.toml", "-e", "1", "-y", "-o", "one.pf")
    assert "1 variable, 0 pairs linked in the model" in out and "a noisy table of 1 variable" in err
    out = call("sample", "one.pf", "-n", "1", "-o", "r.csv")[1]
    assert "1 synthetic row of 1 variable." in out
    code, out, err = call("query", "one.pf", "a=yes", "--json")
    assert code == 0 and '"low": null' in out  # one person, and noise


def test_peer_and_structure_without_privacy_say_so_first(call, desk):
    (desk / "edges.csv").write_text("a,b\nb,c\n")
    (desk / "outcomes.csv").write_text("a,1\nb,0\nc,1\n")
    line = ("peer", "edges.csv", "outcomes.csv", "-e", "1", "-y", "--insecure-seed", "1")
    code, out, err = call(*line, "-o", "p.pf")
    assert code == 0 and out.startswith("NOT PRIVATE") and err.startswith("NOT PRIVATE")
    assert "Protected: each outcome" not in err
    line = ("structure", "patients.csv", "-s", "schema.toml", "-e", "1", "-d", "1e-6")
    err = call(*line, "--method", "chow-liu", "--insecure-seed", "1", "-o", "g.csv")[2]
    assert err.startswith("NOT PRIVATE")


def test_what_is_not_private_says_so_everywhere(call, desk):
    line = ("fit", "patients.csv", "-s", "schema.toml", *FIT, "--insecure-seed", "1")
    code, out, err = call(*line, "-o", "m.pf")
    assert code == 0 and out.startswith("NOT PRIVATE") and "NOT PRIVATE" in err
    told = json.loads(call(*line, "-o", "again.pf", "--json")[1])
    assert "NOT PRIVATE" in told["stamp"] and told["cost"] is None
    for command in (
        ("query", "m.pf", "P(worry=yes)"),
        ("query", "m.pf", "P(worry=yes)", "--json"),
        ("sample", "m.pf", "-n", "3", "-o", "rows.csv"),
        ("export", "m.pf", "--to", "json", "-o", "g.json"),
        ("report", "m.pf", "-o", "r.html"),
    ):
        code, out, _ = call(*command)
        assert code == 0 and "NOT PRIVATE" in out
    assert "NOT PRIVATE" in (desk / "r.html").read_text()
    assert "NOT PRIVATE" in (desk / "g.json").read_text()


def test_a_bug_of_ours_hides_what_it_knows(call, desk, monkeypatch):
    def broken(*_):
        raise RuntimeError("SECRET")

    monkeypatch.setattr("privfield.models.question.read_question", broken)
    code, out, err = call("query", "model.pf", "P(worry=yes)")
    assert code == 1 and "SECRET" not in out + err and "bug in privfield" in err
    assert "RuntimeError at test_mistakes.py" in err
    monkeypatch.setenv("PRIVFIELD_DEBUG", "1")
    assert "SECRET" in call("query", "model.pf", "P(worry=yes)")[2]


def test_what_was_charged_is_not_called_spared(study, call, tmp_path, monkeypatch):
    """An error after the charge does not say that nothing was spent."""

    def refuse(*_):
        raise pf.InputError("path: the disk is full.")

    monkeypatch.setattr(pf.MarkovRandomField, "save", refuse)
    line = ("fit", study / "patients.csv", "-s", study / "schema.toml", "-e", 1, "-d", "1e-6")
    code, _, err = call(*line, "--cliques", "all-pairs", "-y", "-o", tmp_path / "m.pf")
    assert code == 2 and "the disk is full." in err and "Nothing was spent" not in err


@pytest.mark.parametrize("ledger", [False, True])
@pytest.mark.parametrize("late", [False, True])
def test_an_error_says_whether_the_run_had_begun(study, call, tmp_path, monkeypatch, late, ledger):
    """Something wrong that shows only while records are read: "nothing was spent" is not true."""
    opened = ContingencyTables.open

    def refuse(*_):
        raise pf.InputError("data: no such column.")

    def open_late(self, data):
        opened(self, data)
        return refuse

    monkeypatch.setattr(ContingencyTables, "open", open_late if late else refuse)
    line = ("fit", study / "patients.csv", "-s", study / "schema.toml", "-e", 1, "-d", "1e-6")
    book = ("--ledger", tmp_path / "l") if ledger else ()
    code, _, err = call(*line, "--cliques", "all-pairs", "-y", "-o", tmp_path / "m.pf", *book)
    assert code == 2 and "data: no such column." in err and not (tmp_path / "m.pf").exists()
    assert ("Nothing was spent." in err) is not late
    assert ("The run had begun: count it as spent" in err) is (late and not ledger)
    assert ("l was charged ρ = 0.02801 (Gaussian)" in err) is (late and ledger)
    if ledger:  # one that was made for a charge that did not come is none, and can be made again
        with nullcontext() if late else pytest.raises(NoLedger):
            assert len(pf.Ledger(tmp_path / "l").charges()) == 1


@pytest.mark.parametrize("command", ["", "init", "fit", "peer"])
def test_flags_take_no_value(call, command):
    """`--yes` stands alone: help shows no type next to it."""
    code, out, _ = call(*filter(None, [command]), "--help")
    assert code == 0 and "--help" in out and "bool" not in out.lower()


def test_errors_about_models_name_their_files(call, desk):
    model = pf.IsingModel(np.zeros((2, 2)), names=["first", "number 2"])
    for name in ("first.pf", "b.pf"):
        model.save(name)
    code, _, err = call("compare", "first.pf", "b.pf")
    assert code == 2 and "privfield: 'first.pf': nothing is known about how far" in err
    code, _, err = call("pool", "first.pf", "b.pf", "-o", "all.pf")
    assert code == 2 and "privfield: 'first.pf' must be a model that carries" in err
    code, _, err = call("compare", "none/first.pf", "b.pf")
    assert code == 2 and "MODEL: there is no file 'none/first.pf'" in err
