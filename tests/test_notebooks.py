"""What notebooks show: every text escaped, long ones short; tables and rows with their labels."""

from html.parser import HTMLParser

import numpy as np
import pytest

import privfield as pf

EVIL = "<script>alert('x')</script>"
SCHEMA = pf.Schema({EVIL: ["no", "y & s"], "b": ["0", "1"]}, questions={"b": "a < b?"})
ROWS = {EVIL: ["no", "y & s"] * 50, "b": ["1", "0"] * 50}


class Tags(HTMLParser):
    """Which tags there are; each is closed."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.text = [], set(), ""

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def shown(value):
    found = Tags()
    found.feed(value._repr_html_())
    assert not found.open and found.seen <= {"table", "thead", "tr", "th", "td", "p"}
    return found.text


def test_everything_that_a_notebook_shows_is_escaped(tmp_path):
    budget = pf.ApproxDP(1, 1e-6)
    ledger = pf.Ledger(tmp_path / "l", total=pf.ApproxDP(3, 1e-5))
    learner = pf.MarginalLearner(
        budget, schema=SCHEMA, cliques="all-pairs", ledger=ledger, job=EVIL
    )
    assert "not fitted yet" in shown(learner)
    learner.fit(ROWS)
    model = learner.model_
    assert EVIL in shown(SCHEMA) and "a < b?" in shown(SCHEMA) and "y & s" in shown(SCHEMA)
    assert EVIL in shown(model) and model.card.promise() in shown(model)
    assert "spent" in shown(learner) and "released_" in shown(learner)
    assert EVIL in shown(learner.released_) and EVIL in shown(model.edges())
    assert repr(model.ask("P(b=1)")) in shown(model.ask("P(b=1)"))
    assert EVIL in shown(ledger) and "remaining" in shown(ledger)
    plan = pf.plan(SCHEMA, 100, budget)
    assert plan.verdict in shown(plan) and plan.recommended.name in shown(plan)
    moments = pf.IsingLearner(budget, schema=SCHEMA).fit(ROWS)
    assert repr(moments.released_) in shown(moments.released_)
    stamped = pf.estimate(pf.measure(ROWS, SCHEMA, [("b",)], pf.NON_PRIVATE))
    assert shown(stamped).lstrip("<").startswith("NOT PRIVATE")


def test_a_schema_of_many_columns_is_one_line():
    schema = pf.Schema({f"column {i}": ["no", "yes"] for i in range(100)})
    assert repr(schema) == ("<Schema: 100 variables (column 0, column 1, column 2, column 3, …)>")
    assert "and 40 more" in shown(schema) and "column 99" not in shown(schema)
    person = pf.Schema({"a": 2}, unit=pf.Person("id", rows=2))
    assert repr(person) == "<Schema: 1 variable (a), unit 'id'>"
    assert len(repr(pf.IsingLearner(pf.PureDP(1), schema=schema))) < 150


def test_labels():
    """The same numbers as without, at the place of their names."""
    pd = pytest.importorskip("pandas")
    schema = pf.Schema({"a": ["x", "y"], "b": pf.Ordered([1, 2, 3]), "c": 2})
    tables = np.random.default_rng(1).normal(size=(2, 3)), np.random.default_rng(2).normal(size=2)
    model = pf.MarkovRandomField(schema, [("a", "b"), ("c",)], tables)
    plain = model.marginal(["b", "a"])
    frame = model.marginal(["b", "a"], labels=True)
    assert isinstance(plain, np.ndarray) and isinstance(frame, pd.DataFrame)
    assert frame.loc["3", "y"] == plain[2, 1] and (frame.index.name, frame.columns.name) == (
        "b",
        "a",
    )
    assert model.marginal(["a"], labels=True)["y"] == model.marginal(["a"])[1]
    three = model.marginal(["c", "a", "b"], labels=True)
    assert three.loc["1", "x", "2"] == model.marginal(["c", "a", "b"])[1, 0, 1]
    codes = model.sample(500, np.random.default_rng(3))
    rows = model.sample(500, np.random.default_rng(3), labels=True)
    for name, column in zip(schema.names, codes.T, strict=True):
        assert rows[name].tolist() == [schema[name].levels[code] for code in column]
    assert rows["b"].cat.ordered and not rows["a"].cat.ordered
    assert pf.check(rows, schema).alarms == ()  # and read back as they are
    spins = pf.IsingModel([[0, 0.5], [0.5, 0]], names=["p", "q"])
    plain = spins.sample(100, np.random.default_rng(4))
    rows = spins.sample(100, np.random.default_rng(4), labels=True)
    assert (np.where(rows == "+1", 1, -1) == plain).all()
    ring = pf.NetworkIsing(np.roll(np.eye(30), 1, 0) + np.roll(np.eye(30), -1, 0), 0.5)
    assert set(ring.sample(5, labels=True).to_numpy().ravel()) <= {"-1", "+1"}


def test_labels_without_pandas(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(pf.InputError, match="labels=True needs pandas"):
        pf.IsingModel([[0, 0.5], [0.5, 0]]).marginal(["x0"], labels=True)


def test_an_ising_learner_keeps_its_labels(tmp_path):
    schema = pf.Schema({"sleep": ["no", "yes"], "mood": ["bad", "good"]})
    data = {"sleep": ["no", "yes"] * 500, "mood": ["bad", "good"] * 500}
    learner = pf.IsingLearner(pf.ApproxDP(5, 1e-6), schema=schema).fit(data)
    model = learner.model_
    assert isinstance(model, pf.IsingModel) and model.schema == schema
    assert learner.weights_[0, 1] > 0 and (model.weights == learner.weights_).all()
    joint = model.marginal(["sleep", "mood"])
    given = model.condition({"sleep": "yes"}).marginal(["mood"])
    assert given[1] == pytest.approx(joint[1, 1] / joint[1].sum())
    assert model.ask("P(mood=good | sleep=yes)").estimate > 0.9
    assert model.edges()[0].verdict == "clear"
    model.save(tmp_path / "m.pf")
    again = pf.load(tmp_path / "m.pf")
    assert again.schema == schema and again.card.promise() == model.card.promise()
    assert again.most_likely() in ({"sleep": "yes", "mood": "good"}, {"sleep": "no", "mood": "bad"})
    with pytest.raises(pf.InputError, match="two levels for each variable, none forbidden"):
        pf.IsingModel([[0, 1], [1, 0]], schema=pf.Schema({"a": 2, "b": 3}))


def test_lazy_frames_of_polars():
    pl = pytest.importorskip("polars")
    calls = []

    def count(frame):
        calls.append(len(frame))
        return frame

    frame = pl.DataFrame({"a": ["x", "y", "y", None], "b": [0, 1, 1, 7], "other": [1, 2, 3, 4]})
    schema = pf.Schema({"b": 2, "a": ["?", "x", "y"]})
    lazy = frame.lazy().map_batches(count, schema=frame.schema)
    found = pf.measure(lazy, schema, [("a", "b")], pf.NON_PRIVATE)
    expected = pf.measure(frame, schema, [("a", "b")], pf.NON_PRIVATE)
    assert (found.tables[0] == expected.tables[0]).all() and found.total == 4
    assert calls == [4]  # computed once, although it is read twice
    with pytest.raises(pf.InputError, match="lacks 1 column of the schema: 'c'"):
        pf.measure(frame.lazy(), pf.Schema({"c": 2}), [("c",)], pf.NON_PRIVATE)
    broken = frame.lazy().select(pl.col("a").cast(pl.Int64), "b")
    with pytest.raises(pf.InputError, match="data \\(LazyFrame\\) cannot be computed"):
        pf.measure(broken, schema, [("a", "b")], pf.NON_PRIVATE)
