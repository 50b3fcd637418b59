"""Private multiplicative weights: what it learns, what it shows. Privacy: test_contract.py."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest

import privfield as pf
from privfield.mechanisms.parities.answers import parity_sets
from privfield.mechanisms.parities.pmw import Synthetic, default_rounds

measure_parities = pf.measure_parities


def test_the_noise_of_a_measurement_is_added_to_the_chosen_sum():
    """One round on one parity, 400 times. Squares of noise over their expectation: χ² with 400
    degrees leaves [0.6, 1.5] with probability below 1e-9."""
    data = np.repeat([[1], [-1]], [150, 50], axis=0)
    noise = []
    for _ in range(400):
        about = measure_parities(data, pf.ZCDP(0.01), 1, "pmw", rounds=1).about
        noise.append(about["measured"][0] - 100)
    assert about["noise_scale"] == pytest.approx(2 / math.sqrt(2 * 0.005))
    assert 0.6 < np.mean(np.square(noise)) / about["noise_scale"] ** 2 < 1.5


# -- the distribution ------------------------------------------------------------------------------


def test_answers_are_those_of_the_tilted_distribution():
    """Against a table of 2^4 states and the textbook update, old measurements included."""
    synthetic, sets = Synthetic(4, 3), parity_sets(4, 3)
    states = np.array(list(product([1, -1], repeat=4)))[:, ::-1]
    table = np.full(16, 1 / 16)
    parity = {k: states[:, list(s)].prod(axis=1) for k, s in enumerate(sets)}
    history = []
    rng = np.random.default_rng(0)
    for _ in range(12):
        pick, target = int(rng.integers(len(sets))), float(rng.uniform(-1, 1))
        before = np.array([table @ parity[k] for k in range(len(sets))])
        again = sorted(history, key=lambda each: -abs(before[each[0]] - each[1]))[:3]
        for k, wanted in [(pick, target), *again]:
            table = table * np.exp(parity[k] * (wanted - table @ parity[k]))
            table /= table.sum()
        history.append((pick, target))
        synthetic.learn(pick, target)
        assert synthetic.answers == pytest.approx([table @ parity[k] for k in range(len(sets))])


def test_errors_shrink_with_rows():
    """Skewed data of ten variables. Over 30 runs the largest error was 0.158 ± 0.016 with 300 rows
    and 0.0091 ± 0.0013 with 10,000: the limits are over 15 standard deviations away, so false
    alarms are far below 1e-6."""
    rng = np.random.default_rng(2)
    data = np.where(rng.random((10_000, 10)) < np.linspace(0.1, 0.9, 10), 1, -1)
    for rows, limit in ((300, 0.5), (10_000, 0.04)):
        m = measure_parities(data[:rows], pf.ZCDP(0.5), 3, "pmw")
        exact = measure_parities(data[:rows], pf.NON_PRIVATE, 3).answers
        assert np.abs(m.answers - exact).max() < limit
        assert m.cost == pf.ZCDP(0.5) and m.sums is None and m.noise == "none"


def test_settings_are_public():
    news = []
    m = measure_parities(
        *(np.ones((50, 3)), pf.ZCDP(1), 2, "pmw"),
        adjacency="add-remove",
        declared_rows=80,
        rounds=4,
        progress=news.append,
    )
    assert m.about["rounds"] == 4 and m.rows == 80 and m.total is None
    assert [each.done for each in news if each.stage == "PMW"] == [1, 2, 3, 4]
    assert default_rounds(16, 696, 10_000, Fraction(1, 2)) == 552
    assert default_rounds(16, 696, 1, Fraction(1, 2)) == 32
    assert default_rounds(16, 696, 10**9, Fraction(1, 2)) == 1000


def test_people_of_two_rows_pay_for_both():
    """Twice as far a move is four times the ρ."""
    frame = pd.DataFrame({"id": [1, 1, 2], "a": ["yes"] * 3, "b": ["no"] * 3})
    levels = {"a": ["no", "yes"], "b": ["no", "yes"]}
    scales = []
    for rows in (1, 2):
        schema = pf.Schema(levels, unit=pf.Person("id", rows=rows))
        m = measure_parities(
            *(frame, pf.ZCDP(1), 2, "pmw"), schema=schema, declared_rows=3, rounds=5
        )
        scales.append((m.about["noise_scale"], m.about["selection_scale"]))
    assert scales[1] == pytest.approx(tuple(2 * scale for scale in scales[0]))


def test_seeded_runs_repeat_and_are_stamped():
    runs = [
        measure_parities(np.ones((50, 3)), pf.ZCDP(1), 2, "pmw", insecure_seed=seed)
        for seed in (5, 5, 6)
    ]
    assert runs[0].to_bytes() == runs[1].to_bytes() and runs[0].stamp.startswith("NOT PRIVATE")
    assert runs[0].about["measured"] != runs[2].about["measured"]
