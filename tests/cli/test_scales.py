"""Items on a scale on the command line: init, plan, fit, and what is free afterwards."""

import csv
import json

import numpy as np

import privfield as pf


def test_from_a_scale_to_a_signed_network(call, tmp_path):
    rng = np.random.default_rng(0)
    mood = rng.normal(size=3_000)
    answers = np.clip(np.round(3 + np.outer(mood, [1, 1, -1]) + rng.normal(size=(3_000, 3))), 1, 5)
    data, schema, model = tmp_path / "items.csv", tmp_path / "s.toml", tmp_path / "m.pf"
    with data.open("w", newline="") as file:
        csv.writer(file).writerows([["calm", "sleep", "worry"], *answers.astype(int).tolist()])
    budget = ("--epsilon", "1", "--delta", "1e-6")
    assert call("init", data, "--levels", "1-5", "--ordered", "-o", schema)[0] == 0
    code, out, _ = call("plan", schema, "--n", "3000", *budget, "--json")
    plan = json.loads(out)
    assert code == 0 and plan["recommended"] == "ordinal"
    code, out, told = call("fit", data, "--schema", schema, *budget, "--yes", "--json", "-o", model)
    found = json.loads(out)
    assert code == 0 and found["method"] == "ordinal" and "products of scores" in told
    assert np.isclose(found["expected_error"], plan["expected_error"])
    clear = [edge for edge in pf.load(model).edges() if edge.verdict == "clear"]
    signs = {(edge.first, edge.second): edge.estimate for edge in clear}
    assert signs["calm", "sleep"] > 0 > signs["calm", "worry"]  # twenty standard errors from none
    code, _, _ = call("export", model, "--to", "qgraph", "-o", tmp_path / "w.csv")
    assert code == 0
    rows = (tmp_path / "w-thresholds.csv").read_text().splitlines()
    assert rows[0] == "variable,level,score,threshold" and len(rows) == 16
    code, out, _ = call("sample", model, "-n", "20", "-o", tmp_path / "rows.csv")
    assert code == 0 and len((tmp_path / "rows.csv").read_text().splitlines()) == 21


def test_options_that_do_not_go_together(call, tmp_path):
    data, schema = tmp_path / "d.csv", tmp_path / "s.toml"
    data.write_text("a,b\n1,2\n")
    pf.Schema({"a": ["1", "2", "3"], "b": pf.Ordered([1, 2, 3])}).write(schema)
    base = ("fit", data, "--schema", schema, "-o", tmp_path / "m.pf", "--method", "ordinal")
    code, _, told = call(*base, "--epsilon", "1", "--delta", "1e-6")
    assert code == 2 and "every variable must be ordered" in told
    pf.Schema({"a": pf.Ordered([1, 2, 3]), "b": pf.Ordered([1, 2, 3])}).write(schema)
    code, _, told = call(*base, "--epsilon", "1", "--delta", "1e-6", "--cliques", "a,b")
    assert code == 2 and "leave out --cliques" in told
    code, _, told = call(*base, "--epsilon", "1")
    assert code == 2 and "no pure ε" in told


def test_yes_no_items_in_two_stages(call, tmp_path):
    data, schema, model = tmp_path / "d.csv", tmp_path / "s.toml", tmp_path / "m.pf"
    rng = np.random.default_rng(0)
    first = rng.random(5_000) < 0.1
    columns = first, first ^ (rng.random(5_000) < 0.02), rng.random(5_000) < 0.1
    rows = np.where(np.column_stack(columns), "yes", "no").tolist()
    with data.open("w", newline="") as file:
        csv.writer(file).writerows([["a", "b", "c"], *rows])
    pf.Schema({name: ["no", "yes"] for name in "abc"}).write(schema)
    budget = ("--epsilon", "1", "--delta", "1e-6", "--yes", "--json", "--method", "two-stage")
    code, out, told = call("fit", data, "--schema", schema, *budget, "-o", model)
    assert code == 0 and json.loads(out)["method"] == "two-stage" and "products of scores" in told
    found = pf.load(model).edges()[0]
    assert found.verdict == "clear" and found.low > 0  # twenty standard errors from none
