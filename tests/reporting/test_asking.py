"""The page answers: its own arithmetic, in a real browser, against `model.condition`."""

import numpy as np
import pytest

import privfield as pf
from privfield.reporting import write_report

QUESTIONS = 10  # of each of five models


def ising(rng):
    weights = np.triu(rng.normal(0, 0.5, (9, 9)), 1)
    return pf.IsingModel(weights + weights.T, rng.normal(0, 1, 9))


def loopy(rng):
    """Mixed levels, cliques that overlap in a circle, one variable alone."""
    names = "abcdefgh"
    schema = pf.Schema(dict(zip(names, [2, 3, 4, 2, 5, 1, 3, 2], strict=True)))
    cliques = [tuple(c) for c in ("abc", "cd", "de", "fgb", "ga", "e", "ae")]
    shapes = [[schema.shape[names.index(v)] for v in clique] for clique in cliques]
    return pf.MarkovRandomField(schema, cliques, [rng.normal(0, 2, shape) for shape in shapes])


def tree(rng):
    """Potentials so large that probabilities would be lost outside log space."""
    schema = pf.Schema({f"v{i}": int(rng.integers(2, 6)) for i in range(9)})
    cliques = [(f"v{int(rng.integers(i))}", f"v{i}") for i in range(1, 9)]
    tables = [rng.normal(0, 60, [len(schema[v].levels) for v in clique]) for clique in cliques]
    return pf.MarkovRandomField(schema, cliques, tables)


def zeros(rng):
    """Some answers are impossible together: by the schema, and by the potentials."""
    levels = {"sex": ["f", "m"], "pregnant": ["no", "yes"], "job": 3, "age": 4}
    schema = pf.Schema(levels, forbidden=[{"sex": "m", "pregnant": "yes"}])
    table = rng.normal(0, 1, (3, 4))
    table[0, :2] = -np.inf
    pairs = [("pregnant", "age"), ("job", "age")]
    return pf.MarkovRandomField(schema, pairs, [rng.normal(0, 1, (2, 4)), table])


def polynomial(rng):
    monomials = [(0,), (0, 1, 2), (2, 3), (3, 4, 5), (5, 6), (0, 6)]
    return pf.PolynomialMRF({m: float(rng.normal()) for m in monomials}, size=7)


def question(model, rng):
    """Up to four answers: positions and codes."""
    count = int(rng.integers(0, min(5, len(model.schema))))
    chosen = rng.choice(len(model.schema), count, replace=False).tolist()
    return {v: int(rng.integers(model.schema.shape[v])) for v in chosen}


def expected(model, answers):
    """The probability of the answers, and the shares of all levels given them."""
    names, shape = model.schema.names, model.schema.shape
    evidence = {names[v]: model.schema[names[v]].levels[code] for v, code in answers.items()}
    probability = float(model.marginal(list(evidence))[tuple(answers.values())])
    try:
        rest = model.condition(evidence)
    except pf.InputError:  # probability zero
        return 0.0, None
    shares = [
        np.eye(shape[v])[answers[v]] if v in answers else rest.marginal([names[v]])
        for v in range(len(shape))
    ]
    return probability, shares


@pytest.mark.parametrize("make", [ising, loopy, tree, zeros, polynomial])
def test_answers_are_those_of_condition(browser, tmp_path, make):
    rng = np.random.default_rng()  # exact against exact: it holds for every model
    model = make(rng)
    browser.get(write_report(model, tmp_path / "r.html").as_uri())
    asked = [question(model, rng) for _ in range(QUESTIONS)]
    found = browser.execute_script(
        "return arguments[0].map(q => privfieldAsk(q))", [list(q.items()) for q in asked]
    )
    for answers, answer in zip(asked, found, strict=True):
        probability, shares = expected(model, answers)
        assert answer["probability"] == pytest.approx(probability, abs=1e-6)
        for variable, own in enumerate(answer["shares"]):
            if shares is not None:
                assert own == pytest.approx(shares[variable], abs=1e-6)
            elif variable not in answers:
                assert not any(own)
    assert browser.get_log("browser") == []


def choose(page, variable, code):
    page.execute_script(
        "const s = document.getElementById('ask-' + arguments[0]); s.value = arguments[1]; "
        "s.dispatchEvent(new Event('change'))",
        *(variable, code),
    )


def status(page):
    return page.execute_script("return document.getElementById('ask-status').textContent")


def test_a_reader_sets_answers(browser, learner, tmp_path):
    model = learner.model_
    browser.get(write_report(model, tmp_path / "r.html").as_uri())
    assert status(browser).startswith("No answers are set")
    choose(browser, 1, "1")
    share = float(model.marginal(["poor sleep"])[1])
    people = float(f"{3000 * share:.3g}")
    assert (
        f"Rests on about {people:,.0f} of 3,000 people ({100 * share:.1f}%), by the model"
        in status(browser)
    )
    given = model.condition({"poor sleep": "yes"}).marginal(["fatigue"])[1]
    row = browser.execute_script("return document.querySelectorAll('.ask-level')[2].textContent")
    was = model.marginal(["fatigue"])[1]
    assert row == f"yes{100 * given:.1f}%was {100 * was:.1f}%"
    browser.execute_script("document.getElementById('ask-clear').click()")
    assert status(browser).startswith("No answers are set")


def test_impossible_answers_say_so(browser, tmp_path):
    model = zeros(np.random.default_rng())
    browser.get(write_report(model, tmp_path / "r.html").as_uri())
    choose(browser, 0, "1")
    text = "return [...document.querySelectorAll('.ask-level')].map(r => r.textContent)[1]"
    assert browser.execute_script(text).startswith("yesimpossible")
    option = "return document.getElementById('ask-1').options[2].text"
    assert browser.execute_script(option) == "yes (impossible)"
    choose(browser, 1, "1")
    assert status(browser).startswith("Impossible")


def test_a_model_that_is_too_large_says_so(tmp_path):
    schema = pf.Schema({"town": 1100, "job": 1100})
    model = pf.MarkovRandomField(schema, [("town", "job")], [np.zeros((1100, 1100))])
    page = write_report(model, tmp_path / "r.html").read_text()
    assert "too large to be asked in a page" in page and 'id="ask-list"' not in page
