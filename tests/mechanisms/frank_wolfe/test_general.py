"""Frank–Wolfe with any loss in any ball: exact gradients, contributions, the paper's example."""

import math
from fractions import Fraction

import numpy as np
import pytest

import privfield as pf
from privfield.audit.run import audit_mechanism
from privfield.mechanisms.frank_wolfe.general import GroupLossRegressions, LossFrankWolfe
from privfield.mechanisms.frank_wolfe.gradients import Gradients
from privfield.mechanisms.frank_wolfe.laws import printed_scale
from privfield.mechanisms.frank_wolfe.logistic import GRID
from privfield.mechanisms.frank_wolfe.losses import LOSSES, find_loss
from privfield.mechanisms.frank_wolfe.mechanism import run_steps
from privfield.mechanisms.frank_wolfe.steps import LEVEL, ResidualTable, scale_of_iterate
from privfield.privacy.terms import Terms

LINEAR = pf.Loss("margin", at=(0,), slopes=(1,))
BALLS = (("l1", None), ("simplex", None), ("group", (2, 1)))
RNG = np.random.default_rng(20260)
X = RNG.uniform(-3, 3, (60, 3))
Y = RNG.uniform(-2, 2, 60)


def build(loss, ball, groups, **more):
    about = {"radius": 1.5, "bound": 2.0, "target_bound": 1.2, "steps": 6} | more
    return LossFrankWolfe(
        Terms(pf.ZCDP(1)), features=3, loss=loss, ball=ball, groups=groups, **about
    )


@pytest.mark.parametrize(
    "loss", ["logistic", "smoothed-hinge", "huber", "squared", LINEAR], ids=str
)
@pytest.mark.parametrize(("ball", "groups"), BALLS)
@pytest.mark.parametrize("intercept", [True, False])
def test_gradients_and_contributions_along_a_random_path(loss, ball, groups, intercept):
    """Against derivatives in real numbers, row by row, and against the largest one seen."""
    mechanism = build(loss, ball, groups, intercept=intercept)
    task, seen = mechanism.regressions, []
    rng = np.random.default_rng(5)
    widest, blocks = int(task.widths.max()), len(task.starts)
    signs = np.ones if ball == "simplex" else lambda shape: rng.choice([-1, 1], shape)
    path = [
        (np.array([rng.integers(blocks)]), signs((1, widest)).astype(np.int8)) for _ in range(6)
    ]

    def choose(gradients, contributions):
        seen.append((gradients.copy(), contributions.copy()))
        return path[len(seen) - 1]

    rows = mechanism.open_rows((X, Y))
    rows.load()
    run_steps(Gradients(task, rows, 6, 2.0**30), choose, 6)

    found = mechanism.found_loss
    x = np.clip(X, -2, 2)
    x = np.column_stack([x, np.full(60, 2.0)]) if intercept else x
    y = np.where(Y > 0, 1, -1) if found.of == "margin" else np.clip(Y, -1.2, 1.2)
    whole = np.zeros(task.columns)
    for step, (gradients, contributions) in enumerate(seen):
        w = whole * scale_of_iterate(step, 1.5)
        if found.of == "margin":
            each = (found.derivative(y * (x @ w)) * y)[:, None] * x
        else:
            each = found.derivative(x @ w - y)[:, None] * x
        real = gradients[0] * found.bound * 2.0 / (LEVEL * GRID)
        assert real == pytest.approx(each.sum(axis=0), abs=60 * 2 * 0.004 * max(found.bound, 1))
        sizes = np.add.reduceat(np.abs(each), task.starts, axis=1).max()
        assert sizes <= contributions[0] * found.bound * 2.0 / (LEVEL * GRID) * 1.004
        (block,), sign = path[step]
        columns = range(task.starts[block], task.starts[block] + task.widths[block])
        whole[list(columns)] += (step + 2) * sign[0, : len(columns)]


def example(calibration="proved", steps=10, rho=0.02):
    """ℓ(w; d) = d·w on [−1, 1], with one record."""
    about = {"features": 1, "radius": 1.0, "intercept": False, "loss": LINEAR, "steps": steps}
    return LossFrankWolfe(Terms(pf.ZCDP(rho)), calibration=calibration, **about)


@pytest.mark.parametrize("steps", [1, 3, 100])
def test_the_papers_counterexample_keeps_the_promise(steps):
    """d = 1 against d = −1: each step chooses between ±1 by scores that differ by 2G. Their KL is
    all but ρ, and no more; the printed noise makes it up to twice as large."""
    mechanism = example(steps=steps)
    contribution = LEVEL * GRID
    draws = mechanism.trace((np.array([[1.0]]), np.ones(1)))
    assert len(draws) == steps
    kl = 0.0
    for draw in draws:
        (scale,) = draw.law.scales
        assert draw.values.tolist() == [[-contribution, contribution]]
        odds = float(2 * contribution / scale)
        kl += math.tanh(odds / 2) * odds
    assert 0.99 * 0.02 < kl <= 0.02
    printed = example("as-printed", steps).law(steps, 1)(None).scale / contribution
    assert printed == pytest.approx(printed_scale(1.0, 1.0, steps, 1, 0.02))


def test_logistic_is_sparse_logistic():
    """The same optimum by both engines, and the table is the function."""
    u = np.linspace(-25, 25, 1001)
    assert LOSSES["logistic"].derivative(u) == pytest.approx(-1 / (1 + np.exp(u)), abs=1e-5)
    labels = np.where(X[:, 0] + Y > 0, 1, -1)
    settings = {"radius": 2.0, "bound": 3.0, "steps": 500, "intercept": True}
    one = pf.FrankWolfe(pf.NON_PRIVATE, loss="logistic", **settings).fit(X, labels)
    two = pf.SparseLogistic(pf.NON_PRIVATE, **settings).fit(X, labels)
    assert one.coef_ == pytest.approx(two.coef_, abs=0.02)


def test_scales_follow_the_budget_and_steps_fit_the_group_ball():
    big = build("squared", "group", (2, 1), steps=None)
    assert big._default_steps(10**6) <= big._most_steps
    assert big.scale(LEVEL * GRID * 2, big.share(big._most_steps)) <= 2**32
    assert big.scale(LEVEL * GRID * 2, Fraction(1, big._most_steps + 1)) > 2**32


def narrow_blocks(patch):
    """As if a row touched one column of a block."""
    most = GroupLossRegressions.most
    patch.setattr(GroupLossRegressions, "most", lambda *a: most(*a) // 2)


def half_of_the_table(patch):
    largest = ResidualTable.largest
    patch.setattr(ResidualTable, "largest", lambda *a: largest(*a) // 2)


def replacing_taken_for_adding(patch):
    from privfield.mechanisms.frank_wolfe import mechanism

    patch.setattr(mechanism, "range_of", lambda most, adjacency, rows: 2 * most * rows)


@pytest.mark.parametrize(
    ("fault", "caught"),
    [(narrow_blocks, 6), (half_of_the_table, 6), (replacing_taken_for_adding, 3)],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_the_audit_catches(fault, caught, monkeypatch):
    fault(monkeypatch)
    failed = [each for each in audit_mechanism(LossFrankWolfe) if not each.passed]
    assert len(failed) == caught


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"loss": "hinge"}, "loss must be one of 'logistic', .* 'squared', or a pf.Loss"),
        ({"ball": "l2"}, "ball must be one of 'l1', 'simplex', 'group'; got 'l2'"),
        ({"ball": "group"}, "groups must be given for ball='group'"),
        ({"groups": (3,)}, "groups must be given for ball='group'"),
        ({"ball": "group", "groups": (2, 2)}, "groups must add up to 3 columns"),
        ({"ball": "group", "groups": (0, 3)}, "groups must be a whole number from 1"),
        ({"target_bound": 0}, "target_bound must lie"),
        ({"ball": "group", "groups": (3,), "calibration": "as-printed"}, "as-printed"),
        ({"ball": "group", "groups": (3,), "steps": 10_000}, "too small for ball='group'"),
        ({"radius": 0}, "radius must lie"),
    ],
)
def test_refusals_say_what_is_legal(given, text):
    with pytest.raises(pf.InputError, match=text):
        pf.FrankWolfe(pf.ZCDP(0.01), **given).fit(X, Y)


@pytest.mark.parametrize(
    ("at", "slopes", "text"),
    [
        ((0, 1), (1, 0), "slopes must not fall"),
        ((1, 0), (0, 1), "at must rise"),
        ((0, 1), (0,), "at must rise"),
        ((0,), (0,), "slopes must not all be 0"),
        ((0, math.nan), (0, 1), "at must be 1 to 65,536 finite numbers"),
        ("ab", (0, 1), "at must be"),
    ],
)
def test_a_loss_checks_itself(at, slopes, text):
    with pytest.raises(pf.InputError, match=text):
        pf.Loss("margin", at, slopes)
    with pytest.raises(pf.InputError, match="of must be one of"):
        pf.Loss("ratio", (0, 1), (0, 1))


def test_squared_is_never_clipped():
    found = find_loss("squared", 2.5)
    assert (found.bound, found.smoothness, found.derivative(np.array([-2.0]))[0]) == (2.5, 1, -2)
