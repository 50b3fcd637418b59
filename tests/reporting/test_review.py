"""The card for reviewers: what it says is true of the release, and nothing is passed over."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

import privfield as pf
from privfield.cli import main
from privfield.mechanisms.registry import MECHANISMS
from privfield.models.card import Card, attach
from privfield.reporting.review import card_page, compare_cards, review_card
from privfield.reporting.review_questions import NIST, REGISTRY

DOCS = Path(__file__).parents[2]


def fitted(folder, epsilon=1.0, job=None):
    data = np.random.default_rng(1).integers(0, 2, (500, 3)).astype(np.uint8)
    ledger = pf.Ledger(folder / "l.ledger", total=pf.ApproxDP(3, 1e-6))
    schema = pf.Schema({"a": ["no", "yes"], "b": ["no", "yes"], "c": ["no", "yes"]})
    budget = pf.ApproxDP(epsilon, 1e-6)
    learner = pf.MarginalLearner(budget, schema=schema, noise="gaussian", ledger=ledger, job=job)
    return learner.fit(data).model_, ledger


def statuses(card):
    return {
        each["question"]: each["status"] for part in card["questions"].values() for each in part
    }


def test_a_card_says_what_was_released(tmp_path):
    model, ledger = fitted(tmp_path, job="one")
    card = review_card(model, ledger)
    promise = card["guarantee"]
    assert (promise["epsilon"], promise["delta"]) == (1.0, 1e-6)
    odds = math.e
    assert promise["right_guess_at_most"] == pytest.approx((odds + 1e-6) / (1 + odds))
    assert promise["delta_in_words"].endswith("Times 500 records that is 0.0005.")
    assert card["ledger"]["head"] == ledger.head and card["ledger"]["job"] == "one"
    assert [each["cost"] for each in card["ledger"]["charges"]] == [promise["cost"]]
    assert card["neighbours"] == "replace-one" and card["unit"] == "row"
    assert card["data"]["records"] == 500 and card["data"]["variables"]["a"] == ["no", "yes"]
    assert [each["name"] for each in card["mechanisms"]] == ["ContingencyTables"]
    assert sum(card["utility"]["pairs"].values()) == 3
    assert json.loads(json.dumps(card, allow_nan=False)) == card


def test_every_question_is_answered_or_open(tmp_path):
    model, ledger = fitted(tmp_path)
    for card in (review_card(model, ledger), review_card(model)):
        assert [len(card["questions"][name]) for name in (NIST, REGISTRY)] == [17, 17]
        for part in card["questions"].values():
            assert all(each["status"] in ("answered", "open") and each["answer"] for each in part)
    left = [question for question, status in statuses(review_card(model, ledger)).items()
            if status == "open"]  # fmt: skip
    assert left == [
        "Mixed with releases without differential privacy?",
        "Systemic and human bias in what was collected?",
        "Data security and access control?",
        "Exposure while data were collected?",
        "Curator",
        "Intended use",
        "Date of publication",
        "Exploration, preparation and tuning on these data",
        "Why these parameters and this method?",
    ]


def test_what_is_not_known_is_open():
    """A model without a card or a release promises nothing."""
    model = pf.IsingModel(np.zeros((2, 2)), np.zeros(2))
    found = statuses(review_card(model))
    for question in ("Privacy parameters: how strong is the promise?", "Privacy loss",
                     "Unit of privacy: whose data?", "Privacy unit", "Utility: how accurate is it?",
                     "Accounting: composition"):  # fmt: skip
        assert found[question] == "open"
    assert "0 mechanisms" not in card_page(model, review_card(model))


def test_a_weak_delta_is_remarked_on():
    model = pf.IsingModel(np.zeros((2, 2)), np.zeros(2))
    cost = pf.ApproxDP(1, 1e-2)
    attach(model, Card(cost=cost, budget=cost, rows=1000))
    assert "a promise that lets one record" in review_card(model)["guarantee"]["delta_in_words"]


def test_not_private_is_on_the_card():
    data = np.random.default_rng(1).integers(0, 2, (50, 2)).astype(np.uint8)
    model = pf.IsingLearner(pf.NON_PRIVATE).fit(data).model_
    card = review_card(model)
    assert card["stamp"] and card["guarantee"]["epsilon"] is None
    found = statuses(card)
    assert found["Implementation: floating point and random numbers?"] == "open"
    assert "NOT PRIVATE" in card_page(model, card)


def test_repeatable_noise_is_no_answer_to_how_strong_a_promise_is():
    data = np.random.default_rng(1).integers(0, 2, (50, 2)).astype(np.uint8)
    model = pf.IsingLearner(pf.ApproxDP(1, 1e-6), insecure_seed=1).fit(data).model_
    card = review_card(model)
    assert {*card["guarantee"].values()} == {None, "non-private"}
    found = {each["question"]: each for part in card["questions"].values() for each in part}
    for question in ("Privacy parameters: how strong is the promise?", "Privacy loss"):
        assert found[question]["status"] == "open"
        assert "NOT PRIVATE" in found[question]["answer"]
    assert "differential privacy with" not in card_page(model, card)


@pytest.mark.parametrize("kind", MECHANISMS, ids=lambda kind: kind.__name__)
def test_every_proof_exists(kind):
    assert (DOCS / "docs" / "privacy" / kind.page).is_file()


def test_chains_and_networks_have_cards():
    chain = pf.ChainModel(["a", "b"], [1, 0], [[0.5, 0.5], [0.25, 0.75]])
    peer = pf.NetworkIsing([[0, 1], [1, 0]], 0.4)
    assert review_card(chain)["what"] == "Markov chain of 2 states"
    assert review_card(peer)["what"] == "peer effect on a network of 2 nodes"


def test_the_command_writes_two_files_and_compares(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, epsilon in (("a", 1.0), ("b", 2.0)):
        folder = tmp_path / name
        folder.mkdir()
        fitted(folder, epsilon)[0].save(f"{name}.pf")
        line = ["export", f"{name}.pf", "--to", "card", "--ledger", f"{name}/l.ledger"]
        Path(f"{name}.html").write_text("a report")
        assert main([*line, "-o", f"{name}.json", "--force"]) == 0
        assert f"Wrote {name}.json and {name}.card.html." in capsys.readouterr().out
    assert "Card for reviewers" in Path("a.card.html").read_text()
    assert Path("a.html").read_text() == "a report"
    assert main([*line, "-o", "new-card.json"]) == 0 and Path("new-card.html").exists()
    capsys.readouterr()
    assert main(["compare", "a.json", "b.json", "-o", "c.html"]) == 0
    assert "guarantee.epsilon: 1 | 2" in capsys.readouterr().out
    assert "Where they differ" in Path("c.html").read_text()
    card = json.loads(Path("a.json").read_text())
    assert compare_cards(card, card) == []
    other = json.loads(Path("b.json").read_text())
    card["ledger"], card["data"]["variables"]["a"] = None, ["yes", "no"]
    found = {place: said for place, *said in compare_cards(card, other)}
    assert found["data.variables.a"] == ["yes, no", "no, yes"]
    assert all(one != two for one, two in found.values())
    rho = [float(said) for said in found["guarantee.cost.rho"]]
    assert rho == pytest.approx([pf.load(f"{name}.pf").card.cost.rho for name in "ab"], rel=1e-9)
    Path("d.json").write_text("{}")
    assert main(["compare", "a.json", "d.json"]) == 2
    assert "'d.json' is no card" in capsys.readouterr().err
    assert main(["export", "a.pf", "--to", "card", "-o", "a.txt"]) == 2
    assert main(["export", "a.pf", "--to", "uai", "--ledger", "x", "-o", "a.uai"]) == 2
    assert main(["export", "a.pf", "--to", "card", "--ledger", "x", "-o", "e.json"]) == 2
    assert "--ledger: there is no file 'x'" in capsys.readouterr().err


def test_a_comparison_says_why_each_card_protects_nobody(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stamps = {
        "a": "NOT PRIVATE: no noise was added (NON_PRIVATE)",
        "b": "NOT PRIVATE: the noise is repeatable (insecure_seed)",
        "c": None,
    }
    for name, stamp in stamps.items():
        card = review_card(pf.IsingModel(np.zeros((2, 2)), stamp=stamp))
        Path(f"{name}.json").write_text(json.dumps(card))
    both = "NOT PRIVATE: a: no noise was added (NON_PRIVATE); b: the noise is repeatable (insecure_"
    for files, told in (
        ("ab", both),
        ("ac", "NOT PRIVATE: a: no noise was added (NON_PRIVATE)\n"),
        ("cb", "NOT PRIVATE: b: the noise is repeatable (insecure_seed)\n"),
        ("bb", stamps["b"]),
    ):
        assert main(["compare", *(f"{f}.json" for f in files), "-o", "p.html", "--force"]) == 0
        assert told in capsys.readouterr().out
        assert told.partition(": ")[2].strip() in Path("p.html").read_text()
    assert main(["compare", "c.json", "c.json"]) == 0
    assert "NOT PRIVATE" not in capsys.readouterr().out
    for name, folder in (("a", "old"), ("b", "new")):  # files of the same name
        Path(folder).mkdir()
        Path(f"{name}.json").rename(f"{folder}/card.json")
    assert main(["compare", "old/card.json", "new/card.json", "-o", "p.html", "--force"]) == 0
    assert "old/card: no noise was added (NON_PRIVATE); new/card: " in capsys.readouterr().out
    assert "Cards of old/card and new/card" in Path("p.html").read_text()
    assert main(["compare", "c.json", "m.pf"]) == 2
    assert "a card is compared with a card: 'c.json' and 'm.pf'" in capsys.readouterr().err


def test_estimates_of_two_cards_have_the_digits_that_tell_them_apart():
    first = {"guarantee": {"epsilon": 1.00001}, "utility": {"like": 1741.152, "ratio": 0.25}}
    second = {"guarantee": {"epsilon": 1.00002}, "utility": {"like": 1741.4, "ratio": 0.3}}
    assert compare_cards(first, second) == [
        ("guarantee.epsilon", "1.00001", "1.00002"),
        ("utility.like", "1741.2", "1741.4"),
        ("utility.ratio", "0.25", "0.3"),
    ]
