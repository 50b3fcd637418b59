"""Ledgers are kept: no command writes over what was spent, or forgets it."""

from pathlib import Path

import pytest

import privfield as pf
from privfield.cli import main
from privfield.cli.commands.demo import forget_demo


def test_nothing_is_written_over_a_ledger(tmp_path, monkeypatch, capsys):
    """A spent budget would be there again: whoever writes, `--force` or not."""
    monkeypatch.chdir(tmp_path)
    ledger = pf.Ledger("study.ledger", total=pf.PureDP(1))
    ledger.charge("all", pf.PureDP(1), "replace-one")
    model = pf.IsingModel([[0, 1], [1, 0]])
    with pytest.raises(pf.InputError, match="is a ledger"):
        model.save("study.ledger")
    model.save("m.pf")
    pf.Schema({"a": 2}).write("s.toml")
    Path("d.csv").write_text("a\n0\n1\n")
    fit = "fit d.csv -s s.toml -e 1 --cliques a --yes"
    for line in (
        "export m.pf --to graphml -o study.ledger --force",
        f"{fit} -o study.ledger --force",
        "demo -o . --force",
    ):
        assert main(line.split()) == 2
        assert "remembers what was spent" in capsys.readouterr().err
    assert main([*fit.split(), "-o", "new.pf", "--ledger", "./new.pf"]) == 2
    assert "--output must not be the ledger" in capsys.readouterr().err
    assert not Path("new.pf").exists()
    assert [charge.what for charge in ledger.charges()] == ["all"]


def test_a_demo_forgets_the_ledger_of_a_demo_only(tmp_path):
    path = tmp_path / "study.ledger"
    for job, stays in (("demo", False), ("other", True)):
        pf.Ledger(path, total=pf.PureDP(1)).charge("x", pf.PureDP(0.1), "replace-one", job=job)
        if stays:
            with pytest.raises(pf.InputError, match="Choose another folder"):
                forget_demo(path)
        else:
            forget_demo(path)
        assert path.exists() == stays
    path.write_text("what somebody wrote")
    with pytest.raises(pf.InputError, match=r"--output: .* is no ledger of a demo"):
        forget_demo(path)
    assert path.read_text() == "what somebody wrote"
