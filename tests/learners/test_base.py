"""Learners keep scikit-learn's manners."""

import pytest

import privfield as pf
from privfield.learners.base import Learner


class Example(Learner):
    def __init__(self, budget, width=2.0, *, progress=None):
        self.budget = budget
        self.width = width
        self.progress = progress


def test_parameters_come_back_as_given():
    learner = Example(3, width=1.5)
    assert learner.get_params() == {"budget": 3, "width": 1.5, "progress": None}
    assert learner.set_params(width=4.0) is learner
    assert learner.width == 4.0


def test_an_unknown_parameter_names_the_legal_ones():
    with pytest.raises(pf.InputError, match="no parameter 'widht'; it has budget, width, progress"):
        Example(1).set_params(widht=1)


def test_results_before_fit_say_what_to_do():
    with pytest.raises(AttributeError, match="no result model_; results are there after fit"):
        Example(1).model_  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'modle'"):
        Example(1).modle  # noqa: B018


def test_the_representation_shows_what_was_given():
    assert repr(Example(pf.PureDP(1), width=3.0)) == "Example(budget=PureDP(epsilon=1), width=3.0)"


@pytest.mark.parametrize("name", ["MarginalLearner", "ChainLearner"])
def test_learners_can_be_cloned_from_their_parameters(name):
    learner = getattr(pf, name)(pf.PureDP(1))
    again = type(learner)(**learner.get_params())
    assert again.get_params() == learner.get_params()
