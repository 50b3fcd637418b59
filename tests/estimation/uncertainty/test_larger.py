"""What is said about two variables whose link depends on a third, which was measured with them."""

from itertools import combinations, product

import numpy as np
import pytest

import privfield as pf
from privfield.estimation.uncertainty.comparing import compared
from privfield.estimation.uncertainty.intervals import uncertainty
from privfield.reporting import write_report

SCHEMA = pf.Schema({"a": 2, "b": 2, "c": 3, "d": 2})
INSIDE = [("a", "b"), ("a", "c"), ("b", "c")]
PAIRS = list(combinations(SCHEMA.names, 2))
WITH = [*PAIRS, ("a", "b", "c")]


def rows_of(together=0.4, people=40_000):
    """Tables are those of a model in which b and c make a – b and a – c turn round."""
    signs, trend = np.array([-1.0, 1.0]), np.array([-1.0, 0.0, 1.0])
    tables = [together * np.multiply.outer(np.outer(signs, signs), trend)]
    tables += [0.5 * np.outer(signs, trend), 0.4 * np.outer(signs, signs)]
    truth = pf.MarkovRandomField(SCHEMA, [("a", "b", "c"), ("b", "c"), ("b", "d")], tables)
    counts = np.rint(people * truth.marginal(SCHEMA.names)).astype(int)
    states = np.array(list(product(*map(range, SCHEMA.shape))))
    return np.repeat(states, counts.ravel(), axis=0), counts


def known(rows, cliques):
    released = pf.measure(rows, SCHEMA, cliques, pf.NON_PRIVATE)
    return uncertainty(pf.estimate(released), released)


@pytest.fixture(scope="module")
def both():
    return known(rows_of()[0], WITH), known(rows_of()[0], PAIRS)


def test_a_strength_is_the_mean_over_the_levels_of_the_third(both):
    """Against log odds ratios of the table at each level of c and d, a quarter of each."""
    counts = rows_of()[1]
    odds = np.log(counts[0, 0] * counts[1, 1] / (counts[0, 1] * counts[1, 0]))
    assert np.abs(odds / 4).max() > 0.35  # strong at each end of c
    found = {(e.first, e.second): e for e in both[0].edges()}
    assert found["a", "b"].estimate == pytest.approx(odds.mean() / 4, abs=0.005)
    assert found["a", "b"].low <= odds.mean() / 4 <= found["a", "b"].high


def test_no_pair_inside_is_called_absent(both):
    found = both[0].edges()
    verdicts = {(e.first, e.second): e.verdict for e in found}
    rows = {(e.first, e.second): e for e in found}
    assert rows["a", "b"].low > -0.05 and rows["a", "b"].high < 0.05
    assert verdicts["a", "b"] == "uncertain" and verdicts["b", "c"] == "clear"
    assert verdicts["a", "d"] == "absent"  # not inside
    assert found.larger == (("a", "b", "c"),) and "(a × b × c)" in found.note
    assert found[:2].note == found.note and found.note in repr(found)
    assert found.note in found._repr_html_()


def test_without_such_an_interaction_nothing_changes(both):
    plain = known(rows_of(together=0.0)[0], PAIRS).edges()
    assert {(e.first, e.second): e.verdict for e in plain}["a", "b"] == "absent"
    assert not plain.larger and not plain.note and not both[1].edges().note


def test_pairs_that_depend_on_a_third_in_one_group_only_are_not_compared(both):
    outside = [(SCHEMA.index(a), SCHEMA.index(b)) for a, b in PAIRS if (a, b) not in INSIDE]
    everything = [(SCHEMA.index(a), SCHEMA.index(b)) for a, b in PAIRS]
    assert compared(*both) == compared(*both[::-1]) == outside
    assert compared(both[0], both[0]) == compared(both[1], both[1]) == everything


def test_differences_inside_are_not_called_absent():
    groups = [rows_of(people=people)[0] for people in (80_000, 90_000)]
    released = [pf.measure(rows, SCHEMA, WITH, pf.NON_PRIVATE) for rows in groups]
    found = pf.compare(*released)
    verdicts = {(e.first, e.second): e.verdict for e in found.edges()}
    assert verdicts["a", "b"] == "uncertain" and verdicts["a", "d"] == "absent"
    assert found.edges().larger == (("a", "b", "c"),)


def test_a_report_says_what_strengths_mean_there(tmp_path):
    model = pf.estimate(pf.measure(rows_of()[0], SCHEMA, WITH, pf.NON_PRIVATE))
    text = write_report(model, tmp_path / "r.html").read_text()
    assert text.count("(a × b × c)") >= 2  # below the edges and among the methods
    assert "cannot be learned" not in text
