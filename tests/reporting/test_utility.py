"""What synthetic rows keep: distances against counts by hand, and what chance would make."""

import json
import math
from itertools import product

import numpy as np
import pandas as pd
import pytest

import privfield as pf
from privfield.cli import main
from privfield.reporting.utility import utility

SCHEMA = pf.Schema(
    {"age": pf.Bins([0, 18, 40, 65, 120]), "job": ["none", "part", "full"], "smoker": ["no", "yes"]}
)
PAIRS = [("age", "job"), ("job", "smoker"), ("age", "smoker")]


def rows(rng, n):
    age = rng.integers(0, 4, n)
    return np.stack([age, (age + rng.integers(0, 2, n)) % 3, rng.integers(0, 2, n)], axis=1)


def shares(codes, scope):
    found = np.zeros([SCHEMA.shape[v] for v in scope])
    np.add.at(found, tuple(codes[:, v] for v in scope), 1 / len(codes))
    return found


def test_distances_are_those_of_counted_tables():
    """Without noise the released numbers are the records' own tables."""
    rng = np.random.default_rng()
    records, synthetic = rows(rng, 800), rows(rng, 500)
    model = pf.MarginalLearner(pf.NON_PRIVATE, cliques=PAIRS, schema=SCHEMA).fit(records).model_
    found = utility(model, synthetic)
    assert [each.names for each in found.kept[3:]] == [
        ("age", "job"), ("age", "smoker"), ("job", "smoker")
    ]  # fmt: skip
    for each in found.kept:
        scope = [SCHEMA.index(name) for name in each.names]
        own, theirs = shares(synthetic, scope), shares(records, scope)
        assert each.to_released == pytest.approx(np.abs(own - theirs).sum() / 2, abs=1e-9)
        exact = model.marginal(list(each.names))
        assert each.to_model == pytest.approx(np.abs(own - exact).sum() / 2, abs=1e-9)
        sampling = np.sqrt(theirs * (1 - theirs) / 800)
        assert each.chance == pytest.approx(sampling.sum() * math.sqrt(2 / math.pi) / 2)
    assert all(each.to_released < 1e-9 for each in utility(model, records).kept)


def test_chance_is_that_of_four_cells():
    """A cell of a yes/no pair is (N ± a ± b ± ab)/4N, each sum with the same noise."""
    rng = np.random.default_rng()
    truth = pf.IsingModel([[0, 0.5, 0], [0.5, 0, 0.3], [0, 0.3, 0]])
    learner = pf.IsingLearner(pf.ApproxDP(1, 1e-6), method="moments")
    model = learner.fit(truth.sample(3000, rng, method="independent")).model_
    moments, n = model.measurements, model.measurements.rows
    drawn = model.sample(2000, rng)
    found = utility(model, drawn)
    for each in found.kept:
        places = [model.schema.index(name) for name in each.names]
        noisy, own = np.zeros([2] * len(places)), np.zeros([2] * len(places))
        for signs in product((-1, 1), repeat=len(places)):
            cell = tuple(int(sign > 0) for sign in signs)
            sums = sum(s * moments.singles[v] for s, v in zip(signs, places, strict=True))
            sums += math.prod(signs) * moments.pairs[tuple(places)] if len(places) == 2 else 0
            noisy[cell] = (n + sums) / (noisy.size * n)
            own[cell] = (drawn[:, places] == signs).all(axis=1).mean()
        terms = noisy.size - 1
        variance = terms * (moments.law.deviation / (noisy.size * n)) ** 2
        variance = variance + np.clip(noisy * (1 - noisy), 0, None) / n
        assert each.to_released == pytest.approx(np.abs(own - noisy).sum() / 2, abs=1e-9)
        assert each.chance == pytest.approx(np.sqrt(variance * 2 / math.pi).sum() / 2)
        assert each.outside == (np.abs(own - noisy) > 1.959964 * np.sqrt(variance)).mean()


def test_rows_that_break_a_rule_are_counted():
    schema = pf.Schema(
        {"sex": ["f", "m"], "pregnant": ["no", "yes"]},
        forbidden=[{"sex": "m", "pregnant": "yes"}],
    )
    model = pf.MarkovRandomField(schema, [("sex", "pregnant")], [np.zeros((2, 2))])
    found = utility(model, pd.DataFrame({"sex": list("fmm"), "pregnant": ["no", "yes", "yes"]}))
    assert (found.rows, found.forbidden) == (3, 2)
    assert found.kept[0].to_released is None
    with pytest.raises(pf.InputError, match="synthetic must hold rows"):
        utility(model, pd.DataFrame({"sex": [], "pregnant": []}, dtype=str))


def test_the_command_writes_a_page(learner, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    learner.model_.save("m.pf")
    assert main(["sample", "m.pf", "-n", "1000", "-o", "s.csv"]) == 0
    header = (tmp_path / "s.csv").read_text().splitlines()[0]
    capsys.readouterr()
    assert main(["utility", "m.pf", "s.csv", "-o", "u.html", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["rows"] == 1000 and told["single"]["count"] == 6 and told["pairs"]["count"] == 15
    page = (tmp_path / "u.html").read_text()
    assert "What 1,000 synthetic rows keep" in page and "it spends nothing" in page
    assert main(["utility", "m.pf", "none.csv", "-o", "v.html"]) == 2
    assert "FILE: there is no file 'none.csv'" in capsys.readouterr().err
    rows = (tmp_path / "s.csv").read_text().replace("yes", "1").replace("no", "0")
    (tmp_path / "codes.csv").write_text(rows.replace(rows.splitlines()[0], header, 1))
    assert main(["utility", "m.pf", "codes.csv", "-o", "w.html"]) == 0
    assert "These rows do not fit the model" in capsys.readouterr().err
    assert "These rows do not fit the model" in (tmp_path / "w.html").read_text()


def test_rows_of_other_levels_are_told():
    """0 and 1 where the model has no and yes: the distances would look like a bad model."""
    schema = pf.Schema({"a": ["no", "yes"], "b": ["no", "yes"]})
    model = pf.MarkovRandomField(schema, [("a", "b")], [np.zeros((2, 2))])
    codes = pd.DataFrame({"a": ["0", "1"] * 20, "b": ["no", "yes"] * 20})
    found = utility(model, codes)
    assert "100% of “a” is none of its levels (no, yes)" in found.alarm
    assert found.summary()["alarm"] == found.alarm
    few = pd.DataFrame({"a": ["no"] * 39 + ["1"], "b": ["no", "yes"] * 20})
    assert utility(model, few).alarm == ""
