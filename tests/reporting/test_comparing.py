"""`pf.compare`: what it says of two models, and what it refuses."""

import re

import numpy as np
import pytest

import privfield as pf


@pytest.fixture(scope="module")
def groups(symptoms):
    return symptoms().model_, symptoms(rows=2000).model_


def test_a_page_for_two_groups(groups, tmp_path):
    found = pf.compare(*groups, names=("women <1>", "men"))
    assert 0 < found.p <= 1 and found.links == found.edges().pairs == 15
    assert "15 links compared as one" in found.verdict()
    assert "Strengths of women <1> less those of men" in repr(found)
    assert len(found.to_pandas()) == 15
    text = found.write(tmp_path / "c.html").read_text()
    assert "women &lt;1&gt;" in text and "women <1>" not in text
    assert "more positive, or less negative, among women &lt;1&gt; than among men" in text
    assert "taken as different people" in text
    assert ">Difference</button>" in text and ">Strength</button>" not in text
    assert "the two costs add up" in text and "Links: women" in text and "Answers: women" in text


def test_what_was_not_found_is_not_called_equal(symptoms):
    """The sentence says how badly half of the differences are known, or that some are not."""
    group = symptoms(rows=20_000)
    found = pf.compare(group.model_, symptoms(rows=15_000).model_, level=0.999999)
    assert not found.differ
    told = re.search(r"half of the differences are uncertain by ±([0-9.]+) or", found.verdict())
    halves = np.array([(row.high - row.low) / 2 for row in found.edges()])
    assert (halves >= 0.95 * float(told[1])).sum() >= len(halves) / 2
    assert (halves <= 1.05 * float(told[1])).sum() >= len(halves) / 2
    schema = pf.Schema({"a": ["x", "y", "z"], "b": ["u", "v", "w"]})  # no order: no sign
    rows = np.random.default_rng(3).integers(0, 3, (2, 4000, 2))
    budget = pf.ApproxDP(1, 1e-6)
    models = [pf.PairwiseLearner(budget, schema=schema).fit(each).model_ for each in rows]
    unsigned = pf.compare(*models, level=0.999999)
    assert not unsigned.differ and unsigned.verdict().endswith("That does not make them equal.")


def test_centralities_are_compared_where_both_have_intervals(symptoms, tmp_path):
    """Ends of two errors together (Zou & Donner 2008), from each group's own interval."""
    groups = symptoms(rows=20_000).model_, symptoms(rows=15_000).model_
    found = pf.compare(*groups, names=("women", "men"))
    one, two = (model.centrality() for model in groups)
    assert not one.note and not two.note
    rows = [d for d in found.centrality if d.measure == "strength"]
    assert [d.name for d in rows] == list(groups[0].schema.names)
    for row, a, b in zip(rows, one, two, strict=True):
        a, b = a.strength, b.strength
        assert row.estimate == pytest.approx(a.estimate - b.estimate)
        reach = np.hypot(a.estimate - a.low, b.high - b.estimate)
        assert row.low == pytest.approx(row.estimate - reach) and row.low < row.high
    assert {d.measure for d in found.centrality}.isdisjoint({"closeness", "betweenness"})
    assert "Centrality: women less men" in found.write(tmp_path / "c.html").read_text()


def test_order_turns_the_sign(groups):
    one, two = pf.compare(*groups), pf.compare(*groups[::-1])
    assert one.p == pytest.approx(two.p, rel=0.2, abs=0.02)  # simulated
    for a, b in zip(one.edges(), two.edges(), strict=True):
        assert a.estimate == pytest.approx(-b.estimate) and a.low == pytest.approx(-b.high)
        assert a.verdict == b.verdict
    for a, b in zip(one.shares, two.shares, strict=True):
        assert a.estimate == pytest.approx(-b.estimate)


def test_releases_are_compared_as_their_models_are(groups):
    one, two = pf.compare(*groups), pf.compare(*(group.measurements for group in groups))
    assert two.p == pytest.approx(one.p, rel=0.2, abs=0.02)  # simulated
    for a, b in zip(one.edges(), two.edges(), strict=True):
        assert a.estimate == pytest.approx(b.estimate) and a.verdict == b.verdict


def test_what_cannot_be_compared_is_refused(groups, symptoms):
    first = groups[0]
    other = symptoms(names=["a", "b", "c"]).model_
    with pytest.raises(pf.InputError, match="it lacks 'low mood'"):
        pf.compare(first, other)
    bare = pf.IsingModel(np.zeros((6, 6)), np.zeros(6), first.schema.names)
    with pytest.raises(pf.InputError, match=r"second: nothing is known about how far"):
        pf.compare(first, bare)
    with pytest.raises(pf.InputError, match="first must be a privfield model, or what"):
        pf.compare("a.pf", first)
    with pytest.raises(pf.InputError, match="names must be two names"):
        pf.compare(first, first, names=("one",))
    with pytest.raises(pf.InputError, match="second is the same release as first"):
        pf.compare(first, first)


def test_where_noise_rules_no_likeness_is_claimed(symptoms, tmp_path):
    """20 people at ε = 0.001: the noise is thousands of times the number of people."""
    hopeless = [symptoms(pf.ApproxDP(0.001, 1e-9), rows=20).model_ for _ in "ab"]
    found = pf.compare(*hopeless)
    assert found.hopeless
    if not found.differ:  # one time in twenty it says so by chance
        assert "no evidence that the groups are alike" in found.verdict()
        assert "Nothing can be learned" in found.write(tmp_path / "c.html").read_text()


def test_what_was_not_private_says_so(groups, symptoms, tmp_path):
    seeded = symptoms(insecure_seed=1).model_
    found = pf.compare(seeded, groups[1])
    assert found.stamp is not None and "NOT PRIVATE" in repr(found)
    page = found.write(tmp_path / "c.html").read_text()
    promise = groups[1].card.promise()
    assert promise == symptoms().model_.card.promise()  # of the same budget
    assert page.count(promise) == 1  # of the group that has one
