"""Every file that leaves the program says what is NOT PRIVATE, in itself or in a note beside it."""

import json

import numpy as np
import pytest

import privfield as pf
from privfield.cli.commands.export import FORMATS
from privfield.learners.base import attach_card

DATA = np.random.default_rng(1).integers(0, 2, (300, 4)).astype(np.uint8)
BUDGET = pf.ApproxDP(3, 1e-6)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A stamped one and one that keeps its promise."""
    place = tmp_path_factory.mktemp("models")
    for name, seed in (("stamped", 1), ("plain", None)):
        schema = pf.Schema({each: ["no", "yes"] for each in "abcd"})
        learner = pf.MarginalLearner(BUDGET, schema=schema, insecure_seed=seed).fit(DATA)
        attach_card(learner)
        learner.model_.save(place / f"{name}.pf")
    return place


LINES = [
    *(f"export stamped.pf --to {each} -o out" for each in FORMATS),
    *(f"sample stamped.pf -n 500 -o out{end}" for end in (".csv", ".parquet")),
    "sample stamped.pf -n 9 --copies 2 -o out.csv",
    "report stamped.pf -o out.html",
    "compare stamped.pf plain.pf -o out.html",
    "compare plain.pf stamped.pf -o out.html",
    "pool stamped.pf plain.pf -o out.pf",
    "utility stamped.pf rows.csv -o out.html",
    "compare stamped.json plain.json -o out.html",
    "compare stamped.json stamped.json -o out.html",
]


@pytest.mark.parametrize("line", LINES)
def test_files_and_json_say_so(call, models, tmp_path, monkeypatch, line):
    monkeypatch.chdir(models)
    if not (models / "rows.csv").exists():
        assert call("sample", "plain.pf", "-n", "100", "-o", "rows.csv")[0] == 0
        for name in ("stamped", "plain"):
            assert call("export", f"{name}.pf", "--to", "card", "-o", name)[0] == 0
    *command, last = line.split()
    code, out, err = call(*command, tmp_path / last, "--json")
    assert code == 0, err
    assert "NOT PRIVATE" in json.loads(out)["stamp"]
    notes = {path.name for path in tmp_path.glob("*.NOT-PRIVATE.txt")}
    files = [path for path in tmp_path.iterdir() if path.name not in notes]
    assert files
    for path in files:
        if f"{path.name}.NOT-PRIVATE.txt" not in notes:
            told = (
                pf.load(path).stamp if path.suffix == ".pf" else path.read_bytes().decode("latin-1")
            )
            assert "NOT PRIVATE" in told, path.name
            assert "costs no privacy" not in told


def test_without_a_stamp_none_is_told(call, models, tmp_path, monkeypatch):
    monkeypatch.chdir(models)
    for each in FORMATS:
        code, out, _ = call("export", "plain.pf", "--to", each, "-o", tmp_path / each, "--json")
        assert code == 0 and json.loads(out)["stamp"] is None
    for path in tmp_path.iterdir():
        assert "NOT-PRIVATE" not in path.name and b"NOT PRIVATE" not in path.read_bytes()
