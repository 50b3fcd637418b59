"""The HTML report: complete, honest, harmless."""

import dataclasses
import json
import re
from html.parser import HTMLParser

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privfield as pf
from privfield.estimation.peers.one import NOTHING, PeerEstimate, separate_text
from privfield.estimation.uncertainty.counted import MarginalInterval
from privfield.estimation.uncertainty.strengths import EdgeInterval, Edges
from privfield.learners.base import attach_card
from privfield.mechanisms.edges.selection import SelectedPair, Selection
from privfield.models.card import Card, attach
from privfield.reporting import write_report
from privfield.reporting.content import bars
from privfield.reporting.drawing import edge_text, look, marginal_text
from privfield.reporting.edge_table import edge_table, record
from privfield.reporting.findings import Findings
from privfield.reporting.report import build_page
from privfield.reporting.sentences import Promise, promise_of, success


class Page(HTMLParser):
    """Tags with their attributes, the text outside scripts and styles, and what scripts hold."""

    def __init__(self, text):
        super().__init__()
        self.source = text
        self.tags, self.words, self.scripts, self.open = [], [], [], []
        self.feed(text)
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in ("meta", "input", "line", "circle", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        inside = self.open[-1] if self.open else ""
        if inside == "script":
            self.scripts.append(data)
        elif inside != "style":
            self.words.append(data)

    def attribute(self, name):
        return [found[name] for _, found in self.tags if name in found]

    @property
    def data(self):
        return json.loads(self.scripts[0])


@pytest.fixture(scope="module")
def page(learner):
    return Page(build_page(learner.model_))


def test_it_is_one_complete_file(learner, tmp_path):
    path = write_report(learner.model_, tmp_path / "r.html")
    text = path.read_text(encoding="utf-8")
    page = Page(text)
    for name in ("src", "srcset", "action", "data", "poster"):
        assert page.attribute(name) == []
    assert all(target.startswith("#") for target in page.attribute("href"))
    assert "@import" not in text and "url(" not in re.search("<style>(.*?)</style>", text, re.S)[1]
    assert any("default-src 'none'" in content for content in page.attribute("content"))
    assert len(text.encode()) < 3e6
    assert [p.name for p in tmp_path.iterdir()] == ["r.html"]


def test_the_same_model_gives_the_same_page(learner):
    assert build_page(learner.model_) == build_page(learner.model_)


def test_a_loaded_model_gives_the_same_page(learner, tmp_path):
    learner.model_.save(tmp_path / "m.pf")
    assert build_page(pf.load(tmp_path / "m.pf")) == build_page(learner.model_)


def test_the_methods_paragraph_has_the_numbers_of_the_card(learner, page):
    card = learner.model_.card
    text = page.text
    assert f"from {card.rows:,} records" in text
    assert "(ε = 1, δ = 1e-06)-differential privacy" in text
    assert f"ρ = {card.cost.rho:.4g}" in text
    assert "unit of privacy: one row, “replace-one” neighbours" in text
    assert "Discrete Gaussian noise" in text and card.noise == "discrete-gaussian"
    assert f"privfield {card.version} ({card.method})" in text
    verdicts = [row[8] for row in page.data["edges"]["rows"]]
    clear, absent, uncertain = map(verdicts.count, ("clear", "absent", "uncertain"))
    assert clear + absent + uncertain == 15
    assert f"Of 15 pairs of variables, 15 could be measured; of these, {clear} stand out" in text
    assert f"{absent} are absent or negligible, and {uncertain} are uncertain" in text


def test_the_numbers_of_the_table_are_those_of_the_estimate(learner, page):
    edges = learner.model_.edges()
    rows = {(row[0], row[1]): row for row in page.data["edges"]["rows"]}
    assert len(rows) == len(edges) == 15
    for edge in edges:
        row = rows[edge.first, edge.second]
        np.testing.assert_allclose(row[2:5], [edge.estimate, edge.low, edge.high], rtol=1e-5)
        np.testing.assert_allclose(row[5], np.exp(4 * edge.estimate), rtol=5e-3)
        np.testing.assert_allclose(row[6:8], [edge.fitted, edge.p], rtol=1e-5)
        assert row[8] == edge.verdict and edge.low <= edge.estimate <= edge.high
        i, j = (learner.model_.schema.index(name) for name in row[:2])
        own = learner.model_.to_ising().weights[i, j]
        np.testing.assert_allclose(edge.fitted, own, atol=1e-9)


def test_tiles_count_what_stands_out(learner, page):
    edges = learner.model_.edges()
    tile = f"Clear edges {edges.count('clear')} {edges.count('uncertain')} uncertain"
    assert tile in page.text
    assert "pulled towards zero, or towards a size that the edges have in common" in page.text


def test_a_hopeless_study_says_one_thing(symptoms):
    """100 people at ε = 0.01: privacy noise is hundreds of times larger than sampling error."""
    learner = symptoms(pf.ApproxDP(0.01, 1e-6), rows=100)
    found = Page(build_page(learner.model_))
    banner = next(seen for _, seen in found.tags if "banner" in seen.get("class", ""))
    assert banner["role"] == "alert"
    skip = "Skip to the report "
    assert found.text.partition(skip)[2].startswith("Nothing can be learned from these numbers")
    assert "Clear edges none no pair could be measured" in found.text
    assert found.data == dict.fromkeys(("network", "edges", "asking", "stamp"))
    assert found.text.count("Of 15 pairs of variables none could be measured.") == 1
    assert learner.model_.edges().count("not measured") == 15
    assert "Noise hides how common each answer is, too." in found.text
    assert "Each variable on its own" not in found.text


def test_a_share_that_noise_hides_is_not_measured():
    """Beside one that is known: no number, no bar, no interval."""
    hidden = MarginalInterval("a", (0.4, 0.6), None, None, measured=False)
    known = MarginalInterval("b", (0.4, 0.6), (0.3, 0.5), (0.5, 0.7))
    (row,) = bars(hidden, ("no", "yes"), [1])["rows"]
    assert (row["share"], row["width"], row["interval"], row["low"]) == (
        "not measured",
        "0",
        "",
        None,
    )
    (row,) = bars(known, ("no", "yes"), [1])["rows"]
    assert (row["share"], row["interval"]) == ("60.0%", "50.0–70.0%")
    assert marginal_text(hidden) == "not measured" and marginal_text(known) == "40%, 60%"


def test_a_table_read_with_other_levels_is_remarked_on(symptoms):
    """A file of 0 and 1 under a schema of no and yes: all values are read as no."""
    schema = pf.Schema({name: ["no", "yes"] for name in "abc"})
    rows = np.random.default_rng(0).integers(0, 2, (2000, 3))
    table = {name: list(map(str, column)) for name, column in zip("abc", rows.T, strict=True)}
    learner = pf.IsingLearner(pf.ApproxDP(5, 1e-6), schema=schema, insecure_seed=1).fit(table)
    text = Page(build_page(learner.model_)).text
    assert "Almost everybody has the same answer (“no”) in every variable" in text
    assert "More records or a larger privacy budget" not in text
    other = symptoms(pf.ApproxDP(0.01, 1e-6), rows=100)
    assert "Almost everybody" not in Page(build_page(other.model_)).text


@pytest.mark.parametrize("silent", [3, 2, 0])
def test_chosen_pairs_that_missed_links_would_show_in_have_no_interval(silent):
    """A chain of strong links among 10,000 people, found by tests with noise of 3,000.

    Where nobody says yes to d, or to any of b, c and d, pairs with them would tell nothing even if
    no link had been missed.
    """
    schema = pf.Schema({name: ["no", "yes"] for name in "abcd"})
    rows = pf.IsingModel(0.8 * np.eye(4, k=1) + 0.8 * np.eye(4, k=-1)).sample(
        10_000, np.random.default_rng(1), method="independent"
    )
    rows[:, 3 if silent == 2 else 1 : 4 if silent < 3 else 1] = -1
    pairs = [("a", "b"), ("b", "c"), ("c", "d")]
    tables = pf.measure((rows > 0).astype(np.uint8), schema, pairs, pf.NON_PRIVATE)
    chosen = [SelectedPair(i, i + 1, 1, 9e9, 4500.0) for i in range(3)]
    missed = [SelectedPair(0, 2, 2, 0.0, 4500.0)] * 2
    model = pf.MarkovRandomField(schema, pairs, [np.zeros((2, 2))] * 3)
    selection = Selection((*chosen, *missed), 6, 6, tables)
    text = Page(build_page(model, measurements=selection)).text
    if not silent:
        assert "Nothing can be learned" in text and "may have missed would" not in text
        return
    assert "chose 3 pairs of variables that seem to go together (a – b, b – c, c – d)" in text
    assert f"{silent} pairs that private selection chose have no interval" in text
    mixed = "would show in 2 of them, and noise or rare answers hide the other."
    assert (mixed if silent == 2 else "may have missed would show there.") in text
    assert "chosen pairs seem to go together; which are linked cannot be told" in text
    assert "Nothing can be learned" not in text and "Ask the model" in text


def test_pairs_that_selection_did_not_pick_were_not_measured():
    schema = pf.Schema(dict.fromkeys("abcd", 2))
    rows = np.random.default_rng(0).integers(0, 2, (3000, 4)).astype(np.uint8)
    rows[:, 1] = rows[:, 0]
    learner = pf.MarginalLearner(pf.ApproxDP(1, 1e-6), cliques="learn", schema=schema).fit(rows)
    edges, found = learner.model_.edges(), Page(build_page(learner.model_))
    outside = edges.pairs - len(edges)
    assert edges.pairs == 6 and outside > 0 and edges.count("not measured") >= outside
    assert f"The other {outside} pair" in found.text and "were not measured" in found.text
    listed = {(row[0], row[1]) for row in found.data["edges"]["rows"]}
    names = found.data["network"]["nodes"]
    drawn = found.data["network"]["edges"]
    assert {(names[e["from"]]["name"], names[e["to"]]["name"]) for e in drawn} <= listed


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (-0.5, 0.5, "−0.50 to 0.50"),
        (0.3, np.inf, "at least 0.30"),
        (-np.inf, 0.3, "at most 0.30"),
        (0.0, np.inf, "no useful upper limit"),
        (0.0, 411.57, "no useful upper limit"),
        (-np.inf, np.inf, "no useful limits"),
    ],
)
def test_intervals_without_an_end(low, high, words):
    estimate = min(max(low, -1e3), 1.0)
    edge = EdgeInterval("a", "b", estimate, low, high, True, 0.5, verdict="uncertain")
    assert f"interval {words}" in edge_text(edge, 0.95)
    row = record(edge)
    json.dumps(row, allow_nan=False)
    assert [x is None for x in row[3:5]] == [np.isinf(low), np.isinf(high)]


def test_an_infinite_estimate_has_its_place():
    edge = EdgeInterval("a", "b", np.inf, 0.2, np.inf, True, 0.001, 0.7, "clear")
    assert "strength beyond +5, 95% interval at least 0.20" in edge_text(edge, 0.95)
    assert look(edge, 1.0).width == 10 and record(edge)[2] is None


def test_lines_are_thinner_where_there_are_many():
    strong, weak = (EdgeInterval("a", "b", w, w, w, True, 0.0, w, "clear") for w in (0.5, 0.1))
    assert look(strong, 0.5, 12).width == look(strong, 0.5).width == 10
    widths = [look(edge, 0.5, 480).width for edge in (strong, weak)]
    assert 3 < widths[0] < 4 and 1.5 < widths[1] < widths[0] - 1


def test_commands_are_set_as_commands(tmp_path):
    schema = pf.Schema({"<b>": 1100, "`job`": 1100})
    model = pf.MarkovRandomField(schema, [("<b>", "`job`")], [np.zeros((1100, 1100))])
    page = write_report(model, tmp_path / "r.html").read_text()
    assert "with privfield, <code>privfield query model.pf" in page and "<b>=" not in page


def test_the_methods_of_an_ordinal_model(tmp_path):
    """Its own kind of field, and the prior that its intervals rest on: weak, no spikes."""
    rows = np.random.default_rng(1).integers(0, 4, (2000, 3)).astype(np.uint8)
    schema = pf.Schema({name: pf.Ordered([1, 2, 3, 4]) for name in "abc"})
    model = pf.OrdinalLearner(pf.ApproxDP(2, 1e-6), schema=schema).fit(rows).model_
    page = write_report(model, tmp_path / "r.html").read_text()
    assert "graphical model (ordinal Markov random field) of 3 ordinal variables" in page
    assert "all others under a weak prior" in page and "spike" not in page
    assert "odds ratio between the lowest and the highest level of both variables." in page
    assert "who answered" not in page


def test_gaps_are_told_in_methods_and_shares(tmp_path):
    rows = np.random.default_rng(1).integers(0, 4, (2000, 3)).astype(np.uint8)
    gaps = dict.fromkeys("abc", "no answer")
    schema = pf.Schema({name: pf.Ordered([1, 2, 3]) for name in "abc"}, gaps=gaps)
    model = pf.OrdinalLearner(pf.ApproxDP(2, 1e-6), schema=schema).fit(rows).model_
    page = write_report(model, tmp_path / "r.html").read_text()
    assert "no record was left out: estimates are from available cases" in page
    assert "shared out, among those who answered, by the released counts" in page
    other = pf.OrdinalLearner(pf.ApproxDP(2, 1e-6), schema=schema).fit(rows).model_
    compared = pf.compare(model, other).write(tmp_path / "c.html").read_text()
    assert "in percentage points, with 95% intervals, among those who answered" in compared


def test_the_page_can_be_read_without_eyes(page):
    """Headings, table semantics, labels; every figure has words; no colour alone says a thing."""
    kinds = [tag for tag, _ in page.tags]
    assert kinds.count("h1") == 1 and kinds.count("main") == 1
    assert kinds.count("table") == kinds.count("caption")
    for tag, attributes in page.tags:
        if tag == "th":
            assert attributes.get("scope") in ("col", "row", "rowgroup")
        if tag == "svg" and attributes.get("class") == "static":
            assert "Network of 6 variables" in attributes["aria-label"]
    network = next(found for _, found in page.tags if found.get("id") == "network")
    assert network["tabindex"] == "0" and "Network of 6 variables" in network["aria-label"]
    assert dict(page.tags)["html"]["lang"] == "en"
    dashed = [edge for edge in page.data["network"]["edges"] if edge["dashed"]]
    assert dashed and all(re.search("strength (−|0.00)", edge["text"]) for edge in dashed)


def test_no_banner_for_a_private_model(page):
    assert "NOT PRIVATE" not in page.text


@pytest.mark.parametrize(
    ("budget", "seed", "why"),
    [(pf.NON_PRIVATE, None, "no noise was added"), (pf.PureDP(1), 3, "the noise is repeatable")],
)
def test_a_red_banner_for_what_protects_nobody(symptoms, budget, seed, why):
    model = symptoms(budget, seed).model_
    found = Page(build_page(model))
    banner = next(attributes for _, attributes in found.tags if attributes.get("class") == "banner")
    assert banner["role"] == "alert"
    assert f"NOT PRIVATE {why}" in found.text
    assert "no privacy guarantee is claimed" in found.text
    assert "Nothing. NOT PRIVATE" in found.text


def test_other_stamps_keep_their_words():
    model = pf.IsingModel([[0, 0.5], [0.5, 0]], stamp="NOT PROVED: for study")
    assert "NOT PROVED for study. This page protects nobody." in Page(build_page(model)).text


def test_selected_edges_have_the_intervals_of_their_tables(learner):
    """What selecting edges releases holds tables: they are found inside."""
    inside = type("Released", (), {"measurements": learner.measurements_})()
    chosen, given = (
        Page(build_page(learner.model_, measurements=m)) for m in (inside, learner.measurements_)
    )
    ends = [[row[:6] for row in page.data["edges"]["rows"]] for page in (chosen, given)]
    assert ends[0] == ends[1] and ends[0]
    words = "a chosen pair may stand for a connection by way of another variable"
    assert words in chosen.text and words not in given.text


HOSTILE = ["</script><img src=x onerror=alert(1)>", "{{ 7*7 }}", "a\u2028b", '"><b>&amp;', "'; --"]


def test_hostile_names_stay_text(symptoms):
    model = symptoms(names=HOSTILE).model_
    text = build_page(model, title="</title><script>alert(2)</script>")
    found = Page(text)
    assert not any(tag in ("img", "b") and "onerror" in seen for tag, seen in found.tags)
    assert [tag for tag, _ in found.tags].count("script") == 4
    assert [node["name"] for node in found.data["network"]["nodes"]] == HOSTILE
    assert "{{ 7*7 }}" in found.text and " 49 " not in found.text
    assert found.text.count(HOSTILE[0]) > 1


@settings(max_examples=15, deadline=None)
@given(
    name=st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=30)
)
def test_any_name_can_be_shown(name):
    if not name.strip():
        name += "x"
    model = pf.IsingModel([[0, 0.5], [0.5, 0]], names=[name, name + "y"])
    found = Page(build_page(model))
    assert found.data["network"]["nodes"][0]["name"] == name


# -- every kind of model ---------------------------------------------------------------------------


def test_a_model_without_a_card(tmp_path):
    found = Page(build_page(pf.IsingModel([[0, 0.5], [0.5, 0]])))
    assert "This model carries no card" in found.text
    assert "No intervals" in found.text and found.data["edges"]["rows"][0][3:5] == [None, None]


def test_how_the_estimate_was_solved_is_on_the_card(learner, page):
    found = learner.solution_
    assert found.converged and not found.contradicted and found == learner.model_.solution
    assert f"solved ({found.residual:.2g} standard deviations per parameter left" in page.text
    assert "Do not rely on" not in page.text


@pytest.mark.parametrize(
    ("solution", "told"),
    [
        (pf.Solution(False, 2.5, 400), "not solved: 2.5 standard deviations per parameter"),
        (
            pf.Solution(True, 0.1, 40, ("age", *"bcdefg")),
            "contradicts released numbers of 'age', 'b', 'c', 'd', 'e' and 2 more",
        ),
    ],
)
def test_a_model_that_must_not_be_trusted_says_so_at_the_head(solution, told):
    model = attach(pf.IsingModel([[0, 0.5], [0.5, 0]]), solution=solution)
    found = build_page(model)
    banner = re.search(r'<div class="banner nothing" role="alert">(.*?)</div>', found)[1]
    text = Page(banner).text
    assert told in text and "Do not rely on the numbers of this page" in text


def test_mixed_levels_forbidden_combinations_and_no_edges():
    schema = pf.Schema(
        {"a": 2, "b": pf.Bins([0, 1, 2, 3]), "c": ["x", "y", "z"], "one": 1},
        forbidden=[{"a": "0", "c": "z"}],
    )
    truth = pf.MarkovRandomField(schema, [("a", "b"), ("b", "c")], [np.eye(2, 3), np.eye(3)])
    data = truth.sample(2000, np.random.default_rng(0), method="independent")
    learner = pf.MarginalLearner(pf.PureDP(1), schema=schema).fit(data)
    attach_card(learner)
    found = Page(build_page(learner.model_))
    assert "related (no sign)" in found.text and "z" in found.text
    lonely = pf.MarkovRandomField(pf.Schema({"a": 2, "b": 3}), [("a",)], [[0, 1]])
    assert Page(build_page(lonely)).data["network"] is None
    assert build_page(pf.MarkovRandomField(pf.Schema({"a": 2}), [], []))


def test_three_way_tables():
    schema = pf.Schema({"a": 2, "b": 2, "c": 2})
    rows = pf.PolynomialMRF({(0, 1, 2): 0.5}, size=3).sample(
        3000, np.random.default_rng(0), method="independent"
    )
    learner = pf.MarginalLearner(pf.PureDP(2), cliques=[("a", "b", "c")], schema=schema)
    model = learner.fit((rows > 0).astype(np.uint8)).model_
    found = Page(build_page(model, measurements=learner.measurements_))
    assert "three variables together" in found.text


def test_frank_wolfe_and_polynomials_have_no_intervals():
    truth = pf.PolynomialMRF({(0, 1): 0.5, (0, 1, 2): 0.7, (1,): 0.1}, size=4)
    found = Page(build_page(truth))
    assert "Interactions of three and more variables" in found.text
    assert "x0 × x1 × x2" in found.text and "+0.700" in found.text
    learner = pf.IsingLearner(pf.ZCDP(1), method="frank-wolfe", steps=5).fit(
        truth.sample(500, method="independent")
    )
    attach_card(learner)
    found = Page(build_page(learner.model_))
    assert "No intervals" in found.text and "frank-wolfe" in found.text


def test_chains():
    people = [["home", "work", "home"], ["work", "work"], ["home", "gym", "home", "gym"]] * 30
    learner = pf.ChainLearner(pf.PureDP(2), states=["home", "work", "gym"]).fit(people)
    attach_card(learner)
    found = Page(build_page(learner.model_))
    assert "Where people go next" in found.text and "percentage points" in found.text
    cells = [seen for tag, seen in found.tags if tag == "td" and "title" in seen]
    assert len(cells) == 9 and "home → work" in cells[1]["title"]
    bare = pf.ChainModel(["a", "b"], [1, 0], [[0.5, 0.5], [0.25, 0.75]])
    assert "carries no card" in Page(build_page(bare)).text


def test_the_page_of_a_peer_effect_speaks_of_options_and_of_nodes_alone():
    star = nx.star_graph(3)
    star.add_nodes_from(["x", "y"])
    peer = pf.PeerEffect(pf.PureDP(1), missing="negative").fit(star, {0: 1})
    assert "2 without contacts, which say nothing about β" in peer.summary()
    text = Page(build_page(peer.model_)).text
    assert "--field (in Python field=True) separates the two" in text
    assert "2 nodes without contacts: such outcomes are protected, too" in text
    bare = Page(build_page(pf.NetworkIsing([[0, 1], [1, 0]], 0.4))).text
    assert "without contacts" not in bare


def test_a_hopeless_peer_effect_has_the_banner():
    model = pf.NetworkIsing(nx.to_numpy_array(nx.cycle_graph(4)) / 2, 0.4)
    for high in (5.0, 1.0):
        card = Card(intervals={"beta": (0.4, 0.0, high)})
        text = Page(build_page(model, card=card)).text
        assert ("Nothing can be learned from this number" in text) is (high == 5)


def test_peer_effects():
    ring = nx.cycle_graph(20)
    peer = pf.PeerEffect(pf.PureDP(1)).fit(ring, {node: node < 10 for node in ring})
    attach_card(peer)
    found = Page(build_page(peer.model_))
    low, high = peer.estimate_.interval
    if not (peer.estimate_.outside or peer.estimate_.unlimited):  # which noise may make it
        assert f"β = {peer.beta_:.3g} (95% interval {low:.3g} to {high:.3g}" in found.text
        told = "the odds of a positive outcome are multiplied by" in found.text
        assert told is not peer.estimate_.unlimited  # which noise may make it, too
    assert "Not protected are the network" in found.text
    bare = pf.NetworkIsing(peer.model_.couplings, 0.3)
    assert "carries no card" in Page(build_page(bare)).text


@pytest.mark.parametrize("bounds", [(0, 1), (-1, 1), (-3, 3)])
def test_a_peer_effect_that_may_be_anything_says_one_thing(bounds):
    """Noise of 10⁸ on twenty people: all effects agree with a number, or none (5%).

    A number that tells some of them from others is one in 10⁸.
    """
    ring = nx.cycle_graph(20)
    peer = pf.PeerEffect(pf.PureDP(1e-8), bounds=bounds, method="sufficient-statistic")
    peer.fit(ring, {node: node < 10 for node in ring})
    found, text = Page(build_page(peer.model_)).text, peer.summary()
    if peer.estimate_.outside:
        return
    assert peer.interval_ == bounds and peer.estimate_.unlimited
    for told in (found, text):
        assert "Nothing can be learned from this number about a peer effect" in told
        assert "are multiplied by" not in told


def test_two_ranges_from_end_to_end_rule_out_what_lies_between():
    """The interval spans all that was looked for; the number says something all the same."""
    pieces = ((0.0, 1.0), (4.0, 5.0))
    nothing = np.zeros(1), np.zeros(1), (0.0, 0.0, 0.0), 1, ()
    whole = PeerEstimate({"beta": (0.5, 0.0, 5.0)}, 0.95, 5.0, *nothing)
    assert whole.unlimited and whole.remarks == (NOTHING,)
    split = dataclasses.replace(whole, pieces=pieces)
    assert not split.unlimited and split.remarks == (separate_text(pieces),)
    model = pf.NetworkIsing(nx.to_numpy_array(nx.cycle_graph(4)) / 2, 0.4)
    for estimate in (whole, split):
        card = Card(intervals=estimate.parameters, notes=estimate.remarks)
        text = Page(build_page(model, card=card)).text
        assert ("Nothing can be learned from this number" in text) is estimate.unlimited


def test_a_peer_effect_that_is_there_is_something_learned():
    """The interval may reach the bound: that neighbours go together is known all the same."""
    ring = nx.cycle_graph(400)
    peer = pf.PeerEffect(pf.PureDP(2), bound=0.3).fit(ring, {node: node < 200 for node in ring})
    assert not peer.estimate_.unlimited
    assert "Nothing can be learned" not in Page(build_page(peer.model_)).text + peer.summary()


def test_peer_effects_outside_the_model_have_no_interval():
    """Neighbours all differ: no β from 0 on makes that plausible (noise: below 1e-12)."""
    ring = nx.cycle_graph(400)
    peer = pf.PeerEffect(pf.PureDP(2)).fit(ring, {node: node % 2 == 0 for node in ring})
    found = Page(build_page(peer.model_))
    assert "Peer effect β 0 outside the model" in found.text
    assert "The estimate is β = 0: outside the model" in found.text
    assert "no peer effect in the range that was allowed" in found.text
    assert "0 to 0" not in found.text and "1 to 1" not in found.text
    assert "95% interval" not in found.text
    text = peer.summary()
    assert "beta       0         outside the model" in text and "1 to 1" not in text
    assert peer.interval_ is None and peer.estimate_.outside


def test_a_large_model_is_cut_to_size():
    """300 variables: no picture, the strongest edges only, and still quick and small."""
    rng = np.random.default_rng(0)
    weights = np.triu(rng.normal(0, 0.02, (300, 300)), 1)
    text = build_page(pf.IsingModel(weights + weights.T))
    found = Page(text)
    assert len(text.encode()) < 3e6 and found.data["network"] is None
    assert len(found.data["edges"]["rows"]) == 2000 and "weaker edges." in found.text


def measured(schema, cliques, tables, **options):
    m = pf.Measurements.from_tables(
        schema, cliques, tables, noise="laplace", scale=2.0, total=100, **options
    )
    return Page(build_page(pf.estimate(m), measurements=m))


def test_one_variable_is_no_relation():
    found = measured(pf.Schema({"mood": 2}), [("mood",)], [[60, 40]])
    assert "How mood is distributed" in found.text and "1 variables" not in found.text
    assert "For each variable on its own, privacy noise" in found.text
    assert "pairs of variables" not in found.text and "0 pairs" in found.text


def test_no_edges_are_no_finding():
    found = measured(pf.Schema({"a": 2, "b": 2}), [("a",), ("b",)], [[60, 40], [50, 50]])
    assert "no evidence that they are unrelated" in found.text


def test_axes_hold_intervals_of_edges_that_were_shrunk_to_nothing():
    found = measured(pf.Schema({"a": 2, "b": 2}), [("a", "b")], [[[25, 25], [25, 25]]])
    assert abs(found.data["edges"]["rows"][0][2]) < 1e-9  # the estimate
    low, high = found.data["edges"]["rows"][0][3:5]
    axis = re.search(r"<span>−([0-9.]+)</span><span>0</span><span>\1</span>", found.source)
    assert 0.5 * max(-low, high) < float(axis[1]) < 3 * max(-low, high)


@pytest.mark.parametrize(("estimate", "high"), [(0.92, 1.32), (0.6, 1.3), (0.03, 0.07), (2.0, 4.9)])
def test_axes_hold_intervals_of_clear_edges(estimate, high):
    edge = EdgeInterval("a", "b", estimate, estimate / 2, high, True, 1e-9, estimate)
    edges = Edges([dataclasses.replace(edge, verdict="clear")], 0.95, 1)
    table = edge_table(Findings(edges, (), intervals=True), None)
    assert high <= float(table["axis_high"]) <= 2.5 * high
    row = table["rows"][0]
    assert float(row["left"]) + float(row["width"]) == pytest.approx(
        50 + 50 * high / float(table["axis_high"]), abs=0.11
    )


def test_a_picture_without_shares():
    """101 to 200 variables that are all related: too many tables for their distributions."""
    rng = np.random.default_rng(0)
    weights = np.triu(rng.normal(0, 0.02, (120, 120)), 1)
    found = Page(build_page(pf.IsingModel(weights + weights.T)))
    assert [node["info"] for node in found.data["network"]["nodes"]] == [""] * 120


def test_fifty_variables_fit_in_three_megabytes():
    """From moments, by simulation; the picture hides what is uncertain at first."""
    p = 50
    weights = np.zeros((p, p))
    for i in range(p):
        weights[i, (i + 1) % p] = weights[(i + 1) % p, i] = 0.5 if i % 2 else -0.4
    rows = np.sign(np.random.default_rng(0).normal(size=(4000, p)))
    learner = pf.IsingLearner(pf.ApproxDP(1, 1e-6), method="moments").fit(rows)
    attach_card(learner)
    text = build_page(learner.model_)
    found = Page(text)
    assert len(text.encode()) < 3e6
    assert len(found.data["edges"]["rows"]) == 1225 and "simulated people" in found.text
    ticks = {s["data-status"]: "checked" in s for _, s in found.tags if "data-status" in s}
    assert ticks["uncertain"] is False


def test_levels_that_were_declared_public(learner):
    card = dataclasses.replace(learner.model_.card, levels_are_public=True, notes=("pilot study",))
    found = Page(build_page(learner.model_, card=card))
    assert "declared them public" in found.text and "pilot study" in found.text


def test_ledger_and_job(learner):
    card = dataclasses.replace(
        learner.model_.card, ledger="s.ledger", job="wave 1", charged="2026-01-31T09:00:00+00:00"
    )
    text = Page(build_page(learner.model_, card=card)).text
    assert "in the ledger “s.ledger” as job “wave 1” on 2026-01-31 09:00:00 UTC" in text


# -- words that must be true -----------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_nobody_guesses_better_than_stated(epsilon, delta):
    """The worst (ε, δ) mechanism, randomised response that sometimes tells all, is guessed so."""
    odds = np.exp(epsilon)
    zero = np.array([delta, (1 - delta) * odds / (1 + odds), (1 - delta) / (1 + odds), 0.0])
    best = np.maximum(zero, zero[::-1]).sum() / 2
    assert best == pytest.approx(success(Promise(epsilon, delta)))


def test_the_promise_is_what_holds():
    assert promise_of(Card(cost=pf.PureDP(1))) == Promise(1.0, 0.0)
    asked = pf.ApproxDP(1, 1e-6)
    assert promise_of(Card(cost=pf.ZCDP(asked.rho), budget=asked)) == Promise(1.0, 1e-6)
    more = promise_of(Card(cost=pf.ZCDP(0.5), budget=asked))
    assert more.epsilon == pf.ZCDP(0.5).epsilon_at(1e-6) > 1
    assert promise_of(Card(cost=pf.NON_PRIVATE)).epsilon is None
    assert success(Promise(1000.0, 0.0)) == 1.0


def test_add_remove_speaks_of_taking_part(learner):
    card = dataclasses.replace(learner.model_.card, adjacency=pf.Adjacency.ADD_REMOVE, rows=None)
    text = Page(build_page(learner.model_, card=card)).text
    assert "whether one particular row is in the data" in text
    assert "how many rows" not in text


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": 1.0}, "level"),
        ({"level": "x"}, "level"),
        ({"negligible": -1}, "negligible"),
        ({"progress": 3}, "progress"),
        ({"title": 3}, "title"),
        ({"rng": 3}, "rng"),
    ],
)
def test_bad_input(learner, tmp_path, options, message):
    with pytest.raises(pf.InputError, match=message):
        write_report(learner.model_, tmp_path / "r.html", **options)
    assert list(tmp_path.iterdir()) == []


def test_bad_paths_and_models(learner, tmp_path):
    for path, message in ((tmp_path / "no" / "r.html", "does not exist"), (tmp_path, "a folder")):
        with pytest.raises(pf.InputError, match=message):
            write_report(learner.model_, path)
    with pytest.raises(pf.InputError, match="file name"):
        write_report(learner.model_, 3)
    with pytest.raises(pf.InputError, match="model must be"):
        write_report("m.pf", tmp_path / "r.html")
    truth = pf.IsingModel([[0, 0.5], [0.5, 0]])
    with pytest.raises(pf.InputError, match="other variables"):
        write_report(truth, tmp_path / "r.html", measurements=learner.measurements_)


def test_an_interrupted_report_leaves_the_old_one(learner, tmp_path):
    path = tmp_path / "r.html"
    path.write_text("old")

    def stop(news):
        if news.stage == "drawing":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_report(learner.model_, path, progress=stop)
    assert path.read_text() == "old" and len(list(tmp_path.iterdir())) == 1


def test_wording_is_shown_with_its_variable(tmp_path):
    schema = pf.Schema({"A1": ["no", "yes"], "A2": 3}, questions={"A1": "Do you <trust>?"})
    model = pf.MarkovRandomField(schema, [("A1", "A2")], [np.arange(6.0).reshape(2, 3)])
    model.save(tmp_path / "m.pf")
    page = pf.write_report(pf.load(tmp_path / "m.pf"), tmp_path / "r.html").read_text()
    assert '>A1<span class="question">Do you &lt;trust&gt;?</span></th>' in page
    assert '"info":"Do you \\u003ctrust\\u003e? · ' in page  # what pointing at the node shows
    assert page.count('class="question"') == 1


def test_small_closeness_keeps_its_digits():
    """A chain of 25 weak links: closeness is 0.1 ÷ (1 + 2 + … + 24) at its ends."""
    weights = np.diag(np.full(24, 0.1), 1)
    page = Page(build_page(pf.IsingModel(weights + weights.T)))
    assert f"{0.1 / 300:.3g}" == "0.000333" and "0.000333" in page.text


def test_communities_are_colours_and_numbers():
    """Two pairs that have nothing to do with each other."""
    weights = np.zeros((4, 4))
    weights[0, 1] = weights[1, 0] = weights[2, 3] = weights[3, 2] = 0.8
    found = Page(build_page(pf.IsingModel(weights, np.zeros(4), names=["a", "b", "c", "d"])))
    nodes = found.data["network"]["nodes"]
    assert [node["label"] for node in nodes] == ["a ①", "b ①", "c ②", "d ②"]
    assert [node["fill"] for node in nodes] == ["group-1", "group-1", "group-2", "group-2"]
    assert "no interval is known for them" in found.text
    one = Page(build_page(pf.IsingModel(np.full((4, 4), 0.3) - 0.3 * np.eye(4), np.zeros(4))))
    assert {node["fill"] for node in one.data["network"]["nodes"]} == {"paper"}


def test_many_absent_edges_are_not_printed(tmp_path):
    """Eleven unrelated variables: of 55 pairs more than 40 are absent, or 15 seem to be there."""
    rows = np.random.default_rng(2).choice([-1, 1], (60_000, 11))
    page = write_report(
        pf.IsingLearner(pf.PureDP(20), method="moments").fit(rows).model_, tmp_path / "r.html"
    ).read_text()
    told = re.search(r"(\d+) edges that are absent are not printed; they are in the HTML", page)
    assert 'class="edges bare"' in page and told and int(told[1]) == page.count('class="absent"')


def test_only_long_words_may_be_broken(tmp_path):
    """On phones columns are narrow: "employment 0" is not cut, a word without end may be."""
    names = ["employment 0", "Bezirkskrankenhausaufnahme", "a<b & c"]
    schema = pf.Schema({"x": names, "y": ["no", "yes"]})
    model = pf.MarkovRandomField(schema, [("x", "y")], [np.zeros((3, 2))])
    page = write_report(model, tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<td>employment 0</td>" in page
    assert "<td>Bezirksk<wbr>rankenhau<wbr>saufnahme</td>" in page
    assert "<td>a&lt;b &amp; c</td>" in page


@pytest.mark.parametrize(
    ("edges", "told"),
    [
        (60, ""),
        (61, "1 weaker edge is not printed; it is in the HTML file."),
        (90, "30 weaker edges are not printed; they are in the HTML file."),
    ],
)
def test_paper_has_the_strongest_edges_of_a_long_table_without_intervals(edges, told):
    rows = [EdgeInterval("a", f"b{n}", 1 - n / 100, None, None, True) for n in range(edges)]
    table = edge_table(Findings(Edges(rows, 0.95, edges, known=False), (), intervals=False), None)
    printed = [row["second"] for row in table["rows"] if not row["beyond"]]
    assert printed == [f"b{n}" for n in range(60)] and table["unprinted"] == told


def test_paper_says_of_every_edge_that_it_is_not_there():
    """Where some edges have no interval and others are uncertain."""
    rows = [EdgeInterval("a", f"b{n}", 1 - n / 100, None, None, True) for n in range(62)]
    rows += [EdgeInterval("a", "c", 0.5, -1, 2, True, verdict="uncertain")]
    table = edge_table(Findings(Edges(rows, 0.95, 63), (), intervals=True), None)
    weaker = "1 edge that is uncertain or was not measured and 3 weaker edges without an interval"
    assert table["unprinted"] == f"{weaker} are not printed; they are in the HTML file."
    assert sum(bool(row["beyond"]) for row in table["rows"]) == 3 and table["brief"] == " brief"
