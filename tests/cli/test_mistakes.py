"""What a new user can do wrong: exit code 2, what is legal, never a private value."""

import os
import shutil

import pytest

import privfield as pf

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
    ("fit patients.csv -s patients.csv", "not valid TOML"),
    ("fit piped.csv -s schema.toml", "must be separated by commas, semicolons or tabs"),
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
    (desk / "piped.csv").write_text((desk / "patients.csv").read_text().replace(",", "|"))
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
        ("demo -o patients.csv", "is a file"),
        ("fitt patients.csv", "No such command 'fitt'"),
        ("fit patients.csv --epsilom 1", "No such option"),
    ],
)
def test_other_mistakes(call, desk, line, told):
    (desk / "half.pf").write_bytes((desk / "model.pf").read_bytes()[:3000])
    code, out, err = call(*line.split())
    assert code == 2 and told in err
    assert not out and err.startswith(("privfield: ", "This will spend"))


def test_existing_output_needs_force_before_anything_is_spent(call, desk):
    line = ("fit", "patients.csv", "-s", "schema.toml", *FIT, "--ledger", "l", "-o", "model.pf")
    before = (desk / "model.pf").read_bytes()
    code, _, err = call(*line)
    assert code == 2 and "exists already. Add --force" in err
    assert (desk / "model.pf").read_bytes() == before and not (desk / "l").exists()
    assert call(*line, "--force")[0] == 0
    assert (desk / "model.pf").read_bytes() != before


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
    a, b = pf.load("a.pf").measurements, pf.load("b.pf").measurements
    assert all((x == y).all() for x, y in zip(a.tables, b.tables, strict=True))
    code, _, err = call(*line[:-2], "-o", "c.pf")
    assert code == 3 and "Remaining: nothing" in err and not (desk / "c.pf").exists()


def test_what_is_not_private_says_so_everywhere(call, desk):
    line = ("fit", "patients.csv", "-s", "schema.toml", *FIT, "--insecure-seed", "1")
    code, out, err = call(*line, "-o", "m.pf")
    assert code == 0 and out.startswith("NOT PRIVATE") and "NOT PRIVATE" in err
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

    monkeypatch.setattr("privfield.query_text.read_question", broken)
    code, out, err = call("query", "model.pf", "P(worry=yes)")
    assert code == 1 and "SECRET" not in out + err and "bug in privfield" in err
    assert "RuntimeError at test_mistakes.py" in err
    monkeypatch.setenv("PRIVFIELD_DEBUG", "1")
    assert "SECRET" in call("query", "model.pf", "P(worry=yes)")[2]
