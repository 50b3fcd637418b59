"""Questions about two items on a scale, against all states of small fields."""

import math

import numpy as np
import pytest

import privfield as pf
from privfield.estimation.items.law import law_of
from privfield.estimation.items.questions import two_items
from privfield.estimation.uncertainty.tails import normal_quantile


@pytest.fixture(scope="module")
def model():
    schema = pf.Schema({name: pf.Ordered(range(3)) for name in "abc"} | {"d": pf.Ordered([0, 1])})
    weights = np.zeros((4, 4))
    for i, j, w in ((0, 1, 0.8), (1, 2, -0.6), (2, 3, 0.4)):
        weights[i, j] = weights[j, i] = w
    truth = pf.OrdinalModel(schema, weights, [[0.3, 0, -0.3]] * 3 + [[0, 0]])
    rows = truth.sample(3000, np.random.default_rng(), "independent")
    return pf.OrdinalLearner(pf.ApproxDP(1, 1e-6), schema=schema).fit(rows).model_


def log_odds(law, point, event, given):
    """By all states of the field with these coordinates."""
    joint = law.field.model(point).marginal(["a", "b", "c", "d"])
    codes = np.indices(joint.shape)

    def where(answers):
        return np.all([codes[v] == level for v, level in answers.items()], axis=0)

    base = joint[where(given)].sum() if given else 1.0
    share = joint[where({**given, **event})].sum() / base
    return math.log(share / (1 - share))


@pytest.mark.parametrize(
    ("event", "given"), [({0: 2, 1: 0}, {}), ({0: 1}, {1: 2}), ({2: 0}, {0: 2})]
)
def test_the_share_and_its_error_are_those_of_all_states(model, event, given):
    """The error from differences of log odds along each coordinate; 20,000 people are simulated."""
    law = law_of(model.measurements)
    found, point = two_items(law, event, given, 0.9), law.loose_mean
    middle = log_odds(law, point, event, given)
    assert math.log(found.estimate / (1 - found.estimate)) == pytest.approx(middle, abs=0.05)
    step, slope = 1e-4, []
    for place in range(len(point)):
        ends = []
        for sign in (-1, 1):
            moved = point.copy()
            moved[place] += sign * step
            ends.append(log_odds(law, moved, event, given))
        slope.append((ends[1] - ends[0]) / (2 * step))
    error = math.sqrt(np.array(slope) @ law.loose_covariance @ slope)
    ends = [math.log(end / (1 - end)) for end in (found.low, found.high)]
    assert (ends[1] - ends[0]) / (2 * normal_quantile(0.9)) == pytest.approx(error, rel=0.05)


def test_two_items_on_a_scale_have_intervals_and_others_do_not(model):
    answer = model.ask("P(a=2 | b=0)")
    assert 0 < answer.low < answer.estimate < answer.high < 1
    assert answer == model.ask("P(a=2 | b=0)")  # simulated people are always the same
    for question in ("P(a=2 | b=0, c=1)", "P(a=2 | d=1)"):  # three of them; a yes/no item
        other = model.ask(question)
        assert other.low is None and "for two that have longer scales" in other.note


def test_where_noise_hides_the_items_nothing_is_said():
    schema = pf.Schema({name: pf.Ordered(range(6)) for name in "abc"})
    rows = np.random.default_rng().integers(0, 6, (30, 3))
    loud = pf.OrdinalLearner(pf.ApproxDP(0.1, 1e-6), schema=schema).fit(rows).model_
    answer = loud.ask("P(a=2, b=0)")
    assert answer.low is None and answer.high is None
