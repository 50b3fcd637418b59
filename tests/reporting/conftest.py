"""A fitted model of symptoms, and its report."""

import numpy as np
import pytest

import privfield as pf
from privfield.learners.base import attach_card

NAMES = ["low mood", "poor sleep", "fatigue", "worry", "guilt", "appetite"]


def fit_symptoms(budget=None, insecure_seed=None, names=NAMES, rows=3000):
    """A learner fitted to made-up patients: a chain of symptoms with one negative link."""
    weights = np.zeros((len(names), len(names)))
    for i in range(len(names) - 1):
        weights[i, i + 1] = weights[i + 1, i] = -0.5 if i == 2 else 0.5
    truth = pf.IsingModel(weights, np.full(len(names), -0.2))
    data = (truth.sample(rows, np.random.default_rng(1), method="independent") > 0).astype(np.uint8)
    learner = pf.MarginalLearner(
        pf.ApproxDP(1, 1e-6) if budget is None else budget,
        schema=pf.Schema({name: ["no", "yes"] for name in names}),
        insecure_seed=insecure_seed,
    ).fit(data)
    attach_card(learner)
    return learner


@pytest.fixture(scope="session")
def symptoms():
    """Makes such learners."""
    return fit_symptoms


@pytest.fixture(scope="session")
def learner():
    return fit_symptoms()
