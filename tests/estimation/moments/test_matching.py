"""From moments to models: brute-force maximum likelihood, agreement of engines, odd data."""

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from scipy.optimize import minimize

import privfield as pf
from privfield.estimation.moments import matched, newton, prior
from privfield.estimation.moments import matching as moment_matching
from privfield.estimation.moments.exact import ExactMoments
from privfield.estimation.moments.matching import joint_moments
from privfield.estimation.moments.matching import match_moments as solve_moments
from privfield.inference.sampling.dense import Chains, chain_moments
from privfield.mechanisms.moments.moments import Moments
from privfield.privacy.adjacency import Adjacency
from releases import measure_moments


def match_moments(released, **how):
    return solve_moments(released, **how).told()


def some_model(rng, p, size=0.4):
    weights = np.triu(rng.normal(0, size, (p, p)), 1)
    return pf.IsingModel(weights + weights.T, rng.normal(0, 0.3, p))


def cycle(p, weight=0.4):
    weights = np.zeros((p, p))
    for i in range(p):
        weights[i, (i + 1) % p] = weights[(i + 1) % p, i] = weight * (-1) ** (i == 0)
    return weights


def brute_force_mle(rows):
    """Maximise the likelihood over all 2^p states, by another optimiser on plain sums."""
    p = rows.shape[1]
    states = np.array(list(product([-1, 1], repeat=p)), float)

    def features(x):
        return np.column_stack([x, *(x[:, i] * x[:, j] for i, j in combinations(range(p), 2))])

    every, wanted = features(states), features(rows.astype(float)).mean(axis=0)

    def loss(theta):
        energy = every @ theta
        top = energy.max()
        weight = np.exp(energy - top)
        mean = every.T @ weight / weight.sum()
        return top + np.log(weight.sum()) - theta @ wanted, mean - wanted

    found = minimize(loss, np.zeros(every.shape[1]), jac=True, method="BFGS", tol=1e-10).x
    weights = np.zeros((p, p))
    weights[np.triu_indices(p, 1)] = found[p:]
    return weights + weights.T, found[:p]


@pytest.mark.parametrize("p", [1, 2, 3, 5])
def test_without_noise_it_is_maximum_likelihood(p):
    rng = np.random.default_rng(p)
    rows = some_model(rng, p).sample(500, rng, method="independent")
    m = measure_moments(rows, pf.NON_PRIVATE)
    model = match_moments(m, shrinkage=False)
    weights, field = brute_force_mle(rows)
    assert model.weights == pytest.approx(weights, abs=1e-5)
    assert model.field == pytest.approx(field, abs=1e-5)
    assert model.means() == pytest.approx(m.means(), abs=1e-6)
    assert model.correlations() == pytest.approx(m.correlations(), abs=1e-6)
    assert model.stamp.startswith("NOT PRIVATE")


def test_noise_aware_shrinkage_beats_taking_noisy_moments_as_they_are():
    """Mean over 5 noisy releases, where noise is about as large as the correlations."""
    rng = np.random.default_rng(1)
    weights = cycle(8)
    shrunk, taken = [], []
    for _ in range(5):
        m = measure_moments(
            pf.IsingModel(weights).sample(1000, rng, method="independent"), pf.ZCDP(0.02)
        )
        shrunk.append(np.abs(match_moments(m).weights - weights).max())
        taken.append(np.abs(match_moments(m, shrinkage=False).weights - weights).max())
    assert np.mean(shrunk) < np.mean(taken)
    assert np.mean(shrunk) < 0.4  # what a model without edges would be off by


def test_chains_and_exact_inference_find_the_same_model():
    """Chains are off by about 0.003 here; the limit is ten times that."""
    rng = np.random.default_rng(2)
    truth = some_model(rng, 8, 0.15)
    m = measure_moments(truth.sample(20_000, rng, method="independent"), pf.ZCDP(0.5))
    exact = match_moments(m, shrinkage=False, method="exact")
    chains = match_moments(m, shrinkage=False, method="sampled", rng=np.random.default_rng(3))
    assert np.abs(exact.weights - chains.weights).max() < 0.03
    assert np.abs(exact.field - chains.field).max() < 0.03
    for shrinkage in (True, False):
        shrunk = match_moments(m, shrinkage=shrinkage, method="sampled", rng=rng)
        assert np.abs(shrunk.weights - truth.weights).max() < 0.1


@pytest.mark.parametrize("seed", range(40))
def test_shrinkage_solves_its_equation(seed):
    """target − m(θ) = ridge·θ for all weights, by the exact moments of the result.

    Among the 40 draws are some where steps by the Gaussian curvature alone take a thousand rounds.
    """
    rng = np.random.default_rng(9)
    rows = some_model(rng, 5).sample(300, rng, method="independent")
    m = measure_moments(rows, pf.ZCDP(0.05), insecure_seed=seed)
    task = moment_matching._chosen(moment_matching._task(m, ExactMoments(5, 1e6)), lambda: None)
    model = match_moments(m)
    task.theta = np.pad(model.weights, (1, 0))
    left = m.correlations() - model.correlations()
    moments = model.correlations()
    share = task.spread(moments) / np.maximum(1 - moments**2, 1 / 300)
    ridge = share / task.prior[1:, 1:]
    middle = task._mean(task.theta)[1:, 1:]  # zero, unless weights have a common size
    assert left == pytest.approx(ridge * (model.weights - middle), abs=1e-6)


def test_gradients_are_symmetric_to_the_last_bit():
    """Models refuse weights that are not."""
    random = np.random.default_rng(4).normal(size=(41, 41))
    found = newton._centred(random + random.T, random[0, 1:])
    assert (found == found.T).all() and np.abs(found).max() > 1


@pytest.mark.parametrize("steps", [0, 1])
def test_a_solver_that_gives_up_is_no_error(monkeypatch, steps):
    """scipy's raises where its linear solver finds no step, on a few people and little budget."""
    rows = np.random.default_rng(5).integers(0, 2, (60, 3))
    released = measure_moments(rows, pf.ZCDP(0.05), insecure_seed=1)
    monkeypatch.setattr(newton.Matching, "settle", lambda self, *_, **__: False)

    def give_up(left, start, *, callback, **_):
        for step in range(steps):
            callback(start / 2**step, left(start) / 2)
            callback(start * 100, left(start) * 9)  # worse
        raise ValueError("Jacobian inversion yielded zero vector.")

    with monkeypatch.context() as patched:
        patched.setattr("scipy.optimize.root", give_up)
        assert np.isfinite(match_moments(released).weights).all()


def test_sixty_variables_are_matched_by_chains():
    """n = 20,000: sampling alone moves a weight by 0.007 or so, privacy by 0.003."""
    rng = np.random.default_rng(4)
    weights = cycle(60)
    m = measure_moments(
        pf.IsingModel(weights).sample(20_000, rng, method="independent"), pf.ZCDP(0.5)
    )
    model = match_moments(m, rng=rng)
    assert np.abs(model.weights - weights).max() < 0.1
    assert np.sqrt(((model.weights - weights) ** 2).mean()) < 0.03


@pytest.mark.parametrize("rho", [1e-5, 1e-3, 0.1])
def test_chains_stay_sober_when_noise_drowns_the_moments(rho):
    """n = 1,000, p = 30: from noise a hundred times the correlations to about as large."""
    rng = np.random.default_rng(7)
    weights = cycle(30)
    m = measure_moments(
        pf.IsingModel(weights).sample(1000, rng, method="independent"), pf.ZCDP(rho)
    )
    gap = match_moments(m, rng=rng).weights - weights
    assert np.abs(gap).max() < 0.6 and np.sqrt((gap**2).mean()) < 0.12


def test_few_strong_edges_among_many_variables_are_not_shrunk_away():
    """p = 60, n = 2,000, ρ = 0.5: noise of 0.04 in correlations of 0.76, 1,770 pairs."""
    rng = np.random.default_rng(8)
    weights = np.zeros((60, 60))
    for i in range(0, 10, 2):
        weights[i, i + 1] = weights[i + 1, i] = 1.0
    m = measure_moments(
        pf.IsingModel(weights).sample(2000, rng, method="independent"), pf.ZCDP(0.5)
    )
    gap = match_moments(m, rng=rng).weights - weights
    assert np.abs(gap[weights > 0]).max() < 0.45 and np.abs(gap[weights == 0]).max() < 0.2


def root_mean_square(gap):
    return float(np.sqrt((gap[np.triu_indices(len(gap), 1)] ** 2).mean()))


@pytest.mark.parametrize(
    ("p", "n", "rho", "limit"), [(60, 20_000, 0.005, 0.25), (120, 8000, 0.05, 0.4)]
)
def test_a_large_ring_under_strong_noise_is_far_better_than_no_edges(p, n, rho, limit):
    """Noise of 0.03 to 0.05 in correlations of 0.38, thousands of pairs.

    Choosing one variance for all weights from the moments gives 0.6 to 2 times the error of a model
    without edges here. Ours was 0.09 to 0.2 times that in six runs. Noise is seeded here and below.
    """
    rng = np.random.default_rng(11)
    weights = cycle(p)
    m = measure_moments(
        pf.IsingModel(weights).sample(n, rng, method="independent"), pf.ZCDP(rho), insecure_seed=1
    )
    gap = match_moments(m, rng=rng).weights - weights
    assert root_mean_square(gap) < limit * root_mean_square(weights)


@pytest.mark.parametrize("p", [15, 60])
@pytest.mark.parametrize("flipped", [False, True])
def test_one_common_cause_is_not_taken_for_many_strong_edges(p, flipped):
    """All correlations about 0.3, all weights 1.1/p: the noisy correlations say little of each.

    Exact inference and chains; the sign of a variable is a matter of coding. Eight runs had 0.01 to
    0.29 times the error of no edges.
    """
    rng = np.random.default_rng(12)
    signs = rng.choice([-1, 1], p) if flipped else np.ones(p, int)
    weights = 1.1 / p * np.outer(signs, signs)
    np.fill_diagonal(weights, 0.0)
    rows = pf.IsingModel(np.abs(weights)).sample(3000, rng, method="gibbs") * signs
    m = measure_moments(rows, pf.ZCDP(0.05), insecure_seed=1)
    gap = match_moments(m, rng=rng).weights - weights
    assert root_mean_square(gap) < 0.8 * root_mean_square(weights)


@pytest.mark.parametrize("p", [10, 60])
def test_independent_variables_get_next_to_no_weights(p):
    """Means of ±0.5 and noise of 0.03: products of means are no edges."""
    rng = np.random.default_rng(13)
    means = np.where(rng.random(p) < 0.5, -0.5, 0.5)
    rows = np.where(rng.random((5000, p)) < (1 + means) / 2, 1, -1)
    m = measure_moments(rows, pf.ZCDP(0.05), insecure_seed=1)
    model = match_moments(m, rng=rng)
    assert root_mean_square(model.weights) < 0.01
    assert np.abs(np.tanh(model.field) - means).max() < 0.15


def test_means_are_also_read_off_the_pairs():
    """With 60 noisy products for each mean, all of the same sign, its noise falls a few times."""
    rng = np.random.default_rng(14)
    rows = np.where(rng.random((2000, 60)) < 0.2, 1, -1)
    m = measure_moments(rows, pf.ZCDP(0.02), insecure_seed=1)
    found = np.tanh(match_moments(m, rng=rng).field)
    assert np.std(found + 0.6) < np.std(m.means() + 0.6) / 1.5


def test_a_sparse_graph_of_many_variables_is_found():
    """60 pairs out of 7,140: noise of 0.01 in correlations of 0.46, which are 40 deviations.

    One that is missed, or noise beyond 0.2 (15 deviations), has a chance below 1e-40.
    """
    rng = np.random.default_rng(16)
    truth = np.zeros((120, 120))
    truth[range(0, 120, 2), range(1, 120, 2)] = truth[range(1, 120, 2), range(0, 120, 2)] = 0.5
    first = rng.choice([-1, 1], (20_000, 60))
    second = np.where(rng.random(first.shape) < 1 / (1 + np.exp(-1)), 1, -1) * first
    rows = np.stack([first, second], axis=2).reshape(20_000, 120)
    gap = match_moments(measure_moments(rows, pf.ZCDP(1)), rng=rng).weights - truth
    assert np.abs(gap[truth > 0]).max() < 0.2 and np.abs(gap[truth == 0]).max() < 0.2


def released_by_hand(correlations, law, deviation, rows, rng, shown=()):
    """Gaussian or Laplace numbers with these expectations; pairs that are shown have no noise."""
    p = len(correlations)
    draw = rng.normal if law == "gaussian" else rng.laplace
    scale = deviation if law == "gaussian" else deviation / np.sqrt(2)
    noise = np.triu(draw(0.0, scale, (p, p)), 1)
    pairs = np.rint(rows * correlations * (1 - np.eye(p)) + noise + noise.T).astype(np.int64)
    for i, j, times in shown:
        pairs[i, j] = pairs[j, i] = round(times * deviation)
    singles = np.rint(draw(0.0, scale, p)).astype(np.int64)
    cost = pf.ZCDP(1.0) if law == "gaussian" else pf.PureDP(1.0)
    names = tuple(f"x{i}" for i in range(p))
    about = (rows, None, cost, Adjacency.parse("replace-one"))
    return Moments(names, pairs, singles, law, scale, *about)


@pytest.mark.parametrize("p", [30, 300])
def test_a_pair_that_stands_out_is_kept_where_noise_hides_the_rest(p):
    """Noise of 0.3 in each correlation, of which one is 7 deviations: no correlation is above 1.

    Among 44,850 pairs noise reaches that once in 10^7 releases.
    """
    rng = np.random.default_rng(30)
    released = released_by_hand(np.eye(p), "gaussian", 6_000.0, 20_000, rng, [(3, 8, 7.0)])
    found = solve_moments(released, rng=rng)
    assert found.model.weights[3, 8] > 0.5 and found.contradicted == ()
    rest = found.model.weights.copy()
    rest[3, 8] = rest[8, 3] = 0.0
    assert np.abs(rest).max() < 0.3


def test_laplace_noise_stands_out_as_far_as_laplace_noise_reaches():
    """Of 44,850 pairs some 55 are beyond 4.74 deviations, which Gaussian noise reaches by chance.

    Laplace noise reaches 9.2 with the same chance: 0.1 pairs in a release, 5 or more below 1e-7.
    """
    rng = np.random.default_rng(31)
    released = released_by_hand(np.eye(300), "laplace", 1_000.0, 20_000, rng)
    z = np.abs(released.pairs[np.triu_indices(300, 1)]) / 1_000.0
    assert (z > 4.74).sum() > 15
    weights = np.triu(match_moments(released, rng=rng).weights)
    assert (np.abs(weights) > 0.1).sum() < 5


@pytest.mark.parametrize("p", [20, 30])
@pytest.mark.parametrize("rho", [0.02, 0.2])
def test_constant_variables_are_matched(p, rho):
    """All say yes: every moment is 1. Weights of variables that never change say nothing."""
    rng = np.random.default_rng(32)
    released = measure_moments(np.ones((50_000, p)), pf.ZCDP(rho), insecure_seed=1)
    found = solve_moments(released, rng=rng)
    assert found.converged and found.contradicted == ()
    moments = chain_moments(found.model.weights, found.model.field, rng, samples=5_000)
    assert moments.min() > 0.97


@pytest.mark.parametrize("seed", [110, 120])
def test_constant_variables_have_no_common_cause(seed):
    """What noise in their means leaves is none; with one, nearly all states say no here.

    Of the releases 100 to 139 all are right; with a cause, four are not, these two among them.
    """
    released = measure_moments(np.ones((50_000, 30)), pf.ZCDP(0.02), insecure_seed=seed)
    model = match_moments(released, rng=np.random.default_rng(seed))
    rng = np.random.default_rng(seed)
    assert chain_moments(model.weights, model.field, rng, samples=5_000).min() > 0.97


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("p", "turned"), [(18, True), (40, False), (40, True)])
def test_rare_answers_under_much_noise_are_not_turned_round(p, turned, seed):
    """3% say yes, or no of every other question; noise is two fifths of a moment and more.

    A common cause took the place of rareness: models had nearly all say yes (means are off by 1.9)
    or shrunk means. What noise leaves of all means together is below 0.16; seeds are the first.
    """
    rng = np.random.default_rng(seed)
    rows = np.where(rng.random((11 * p, p)) < 0.03, 1, -1)
    rows[:, ::2] *= -1 if turned else 1
    released = measure_moments(rows, pf.ApproxDP(1, 1e-6), insecure_seed=seed)
    found = solve_moments(released, rng=rng)
    assert found.contradicted == ()
    means = chain_moments(found.model.weights, found.model.field, rng, samples=5_000)[0, 1:]
    assert np.abs(means - rows.mean(axis=0)).mean() < 0.25


def test_a_common_cause_stays_one():
    """Forty questions about one mood: without a common size of weights means would be lost."""
    rng = np.random.default_rng(34)
    mood, own = rng.normal(size=(600, 1)), rng.normal(size=(600, 40))
    rows = np.where(0.9 * mood + 0.5 * own > 0, 1, -1)
    released = measure_moments(rows, pf.ApproxDP(1, 1e-6), insecure_seed=1)
    found = solve_moments(released, rng=rng)
    moments = chain_moments(found.model.weights, found.model.field, rng, samples=5_000)
    apart = moments[1:, 1:] - rows.T @ rows / 600
    assert np.abs(apart[np.triu_indices(40, 1)]).mean() < 0.1


@pytest.mark.parametrize("field", [0.3, -0.3])
def test_chains_in_a_mode_that_hardly_counts_do_not_vouch_for_a_model(field):
    """All say yes, and so do the chains; with fields below zero, a no of all is e¹⁸ as probable."""
    rng = np.random.default_rng(33)
    released = measure_moments(np.ones((50_000, 30)), pf.ZCDP(0.2))
    task = newton.Matching(joint_moments(released), released.rows, released.law, Chains(30, rng))
    task.theta[0, 1:] = task.theta[1:, 0] = field
    task.theta[1:, 1:] = 0.2 * (1 - np.eye(30))
    task.chains.states[:] = 1.0
    found = matched.check(task, released.law)
    assert len(found.contradicted) == (0 if field > 0 else 30)
    assert field > 0 or not found.converged


@pytest.mark.parametrize("p", [2, 9])
def test_no_state_is_more_probable_than_all_of_them(p):
    """With exact moments a state's own probability, at most 1, is what is asked for."""
    rng = np.random.default_rng()
    for size in (0.1, 1.0, 30.0):
        theta = np.triu(rng.normal(0, size, (p + 1, p + 1)), 1)
        theta += theta.T
        moments = ExactMoments(p, 1e8).moments(theta, 1)
        assert matched.likelier(theta, moments) is None
        assert matched.likelier(theta, moments * (1 + 1e-15)) is None  # as rounding leaves them


@pytest.mark.parametrize("rho", [0.15, 0.6])
def test_a_long_chain_of_strong_links_is_found(rho):
    """140 variables with means of −0.6, each link 0.5; rows are drawn by the chain's own recursion.

    A link has a standard error of about 0.05 and 0.03, the mean of 139 of one below 0.01: 0.1 is
    ten of those, a chance below 1e-20. Fields are checked by the exact means of the middle, where
    the transfer matrix of an endless chain gives sinh(f) / sqrt(sinh(f)² + exp(−4W)).
    """
    rng = np.random.default_rng(18)
    weight, field, p = 0.5, -0.3, 140
    up = np.full(p, field)  # what drives each variable, all later ones summed out
    for i in range(p - 2, -1, -1):
        up[i] += np.log(np.cosh(up[i + 1] + weight) / np.cosh(up[i + 1] - weight)) / 2
    rows = np.empty((20_000, p), int)
    for i in range(p):
        drive = up[i] + (weight * rows[:, i - 1] if i else 0.0)
        rows[:, i] = np.where(rng.random(len(rows)) < 1 / (1 + np.exp(-2 * drive)), 1, -1)
    exact = np.sinh(field) / np.sqrt(np.sinh(field) ** 2 + np.exp(-4 * weight))
    assert rows[:, 20:-20].mean() == pytest.approx(exact, abs=0.01)
    model = match_moments(measure_moments(rows, pf.ZCDP(rho)), rng=rng)
    assert np.diag(model.weights, 1).mean() == pytest.approx(weight, abs=0.1)
    means = chain_moments(model.weights, model.field, rng, samples=20_000)[0, 1:]
    assert means[20:-20].mean() == pytest.approx(exact, abs=0.03)


def rows_of_a_tree(parents, weight, field, n, rng):
    """By the tree's own recursion, parents before children; no chain of ours is run."""
    p = len(parents)
    up = np.full(p, field)  # what drives each variable, all below summed out
    for i in range(p - 1, 0, -1):
        up[parents[i]] += np.log(np.cosh(up[i] + weight) / np.cosh(up[i] - weight)) / 2
    rows = np.empty((n, p), np.int8)
    for i in range(p):
        drive = up[i] + (weight * rows[:, parents[i]] if i else 0.0)
        rows[:, i] = np.where(rng.random(n) < 1 / (1 + np.exp(-2 * drive)), 1, -1)
    return rows


@pytest.mark.parametrize("kind", ["chain"])
def test_strong_links_of_a_tree_are_those_of_its_own_pair_tables(kind):
    """Little noise, and moments that stand out by the hundred at a distance.

    Each weight is held against ¼ log(ad/bc) of its exact pair table, which is the most likely one
    on a tree. Noise is seeded.
    """
    rng = np.random.default_rng(20)
    p, n, weight = 60, 50_000, 0.8
    parents = [
        max(i - 1, 0) if kind == "chain" else int(rng.integers(0, max(i, 1))) for i in range(p)
    ]
    rows = rows_of_a_tree(parents, weight, -0.05 if kind == "chain" else 0.0, n, rng)
    found = solve_moments(measure_moments(rows, pf.ZCDP(2.0), insecure_seed=1), rng=rng)
    table = np.array(
        [
            [
                ((rows[:, i] == a) & (rows[:, parents[i]] == b)).mean()
                for a in (1, -1)
                for b in (1, -1)
            ]
            for i in range(1, p)
        ]
    )
    own = np.log(table[:, 0] * table[:, 3] / (table[:, 1] * table[:, 2])) / 4
    links = found.model.weights[range(1, p), parents[1:]]
    assert np.abs(links - own).max() < 0.1 and abs((links - own).mean()) < 0.02
    assert found.converged and found.contradicted == () and found.steps > 10


def test_a_solve_that_failed_is_told_and_names_variables(monkeypatch):
    """A planted failure: steps do nothing, so that links of 0.8 stay at zero."""
    rng = np.random.default_rng(21)
    rows = rows_of_a_tree([max(i - 1, 0) for i in range(40)], 0.8, 0.0, 20_000, rng)
    released = measure_moments(rows, pf.ZCDP(1.0), names=[f"item {i}" for i in range(40)])
    monkeypatch.setattr(newton.Matching, "_move", lambda *_: None)
    monkeypatch.setattr(prior._Choice, "_forest", lambda *_: None)
    with pytest.warns(UserWarning, match=r"^The model contradicts released moments of 'item \d+'"):
        match_moments(released, rng=rng)
    found = solve_moments(released, rng=rng)
    assert len(found.contradicted) == 40 and found.model.names == released.names


def test_equations_that_are_not_solved_are_told_where_nothing_is_contradicted(monkeypatch):
    """θ a little off in every weight: no single moment shows it, all together do."""
    rng = np.random.default_rng(22)
    rows = rows_of_a_tree([max(i - 1, 0) for i in range(12)], 0.5, 0.0, 20_000, rng)
    released = measure_moments(rows, pf.ZCDP(1.0), insecure_seed=1)
    right = solve_moments(released)
    assert right.converged and right.residual < 1e-3
    monkeypatch.setattr(moment_matching, "_exact", shifted(moment_matching._exact, 0.02))
    with pytest.warns(UserWarning, match="standard deviations per parameter"):
        match_moments(released)
    found = solve_moments(released)
    assert not found.converged and found.residual > 1 and found.contradicted == ()


def shifted(solve, size):
    def solve_and_shift(task, **how):
        solve(task, **how)
        links = np.abs(task.theta) > 0.2
        links[0] = links[:, 0] = False
        task.theta = task.theta + size * links

    return solve_and_shift


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("p", [8, 40])
def test_nothing_is_told_of_ordinary_releases(law, p):
    """A warning is an error in these tests. By chance one number in 10,000 releases is far off."""
    rng = np.random.default_rng(23)
    truth = pf.IsingModel(cycle(p), rng.normal(0, 0.3, p))
    rows = truth.sample(10_000, rng, method="independent")
    budget = pf.PureDP(20) if law == "laplace" else pf.ZCDP(0.5)
    for seed in range(3):
        released = measure_moments(rows, budget, insecure_seed=seed)
        assert released.law.name.endswith(law)
        found = solve_moments(released, rng=rng)
        assert found.converged and found.contradicted == ()
        found.told()


def test_products_with_few_changes_are_those_of_whole_matrices():
    rng = np.random.default_rng(17)
    moments, wider = (np.corrcoef(rng.normal(size=(6, 40))) for _ in range(2))
    ridge = rng.uniform(size=4)
    loose = np.array([0, 0, 1, 3]), np.array([2, 5, 4, 4])
    change, values = np.zeros((6, 6)), rng.normal(size=4)
    change[loose] = values
    change += change.T
    moved = moments @ change @ wider
    moved = (moved + moved.T) / 2
    found = newton._among(loose, moments.astype("f4"), wider.astype("f4"), ridge)(values)
    assert found == pytest.approx(moved[loose] + ridge * values, abs=1e-5)


def test_moments_of_chains_are_those_of_exact_inference():
    """200,000 draws: an error of 0.002 or so; the limit is ten times that."""
    model = some_model(np.random.default_rng(15), 6)
    found = chain_moments(model.weights, model.field, np.random.default_rng(0), samples=200_000)
    assert found[1:, 1:] == pytest.approx(model.correlations(), abs=0.02)
    assert found[0, 1:] == pytest.approx(model.means(), abs=0.02)
    assert found[0, 0] == 1 and (found == found.T).all()


def test_the_same_rng_gives_the_same_model():
    rng = np.random.default_rng(5)
    m = measure_moments(rng.choice([-1, 1], (100, 4)), pf.ZCDP(1))
    one, two = (
        match_moments(m, method="sampled", rng=np.random.default_rng(1)).weights for _ in range(2)
    )
    assert (one == two).all()


@pytest.mark.parametrize("method", ["exact", "sampled"])
@pytest.mark.parametrize("shrinkage", [True, False])
@pytest.mark.parametrize(
    "rows",
    [
        np.ones((50, 3)),
        np.repeat(np.random.default_rng(0).choice([-1, 1], (50, 1)), 3, axis=1),
        np.ones((1, 3)),
        np.ones((0, 3)),
    ],
    ids=["constant", "copies", "one row", "no rows"],
)
@pytest.mark.filterwarnings("ignore:The estimate did not converge")  # of copies it may not
@pytest.mark.filterwarnings("ignore:The model contradicts")
def test_degenerate_data_give_finite_models(rows, shrinkage, method):
    for budget in (pf.ZCDP(0.1), pf.NON_PRIVATE):
        m = measure_moments(rows, budget)
        model = match_moments(m, shrinkage=shrinkage, method=method, rng=np.random.default_rng(0))
        assert np.isfinite(model.weights).all() and np.isfinite(model.field).all()


def test_a_hopeless_budget_gives_next_to_nothing_but_no_error():
    rng = np.random.default_rng(6)
    for adjacency in ("replace-one", "add-remove"):
        m = measure_moments(rng.choice([-1, 1], (20, 5)), pf.ZCDP(1e-6), adjacency=adjacency)
        for method in ("exact", "sampled"):
            assert np.abs(match_moments(m, method=method, rng=rng).weights).max() < 2


def test_the_joint_matrix_has_means_in_its_first_row():
    m = measure_moments(np.array([[1, 1], [1, -1], [1, 1], [-1, 1]]), pf.NON_PRIVATE)
    assert joint_moments(m).tolist() == [[1, 0.5, 0.5], [0.5, 1, 0], [0.5, 0, 1]]


def test_bad_input_is_refused():
    m = measure_moments(np.ones((3, 30)), pf.NON_PRIVATE)
    with pytest.raises(pf.InputError, match="moments must come"):
        match_moments(np.eye(2))
    with pytest.raises(pf.InputError, match="method must be"):
        match_moments(m, method="magic")
    with pytest.raises(pf.InputError, match="max_bytes"):
        match_moments(m, method="exact", max_bytes=1e6)
    wide = measure_moments(np.ones((2, 1_100)), pf.NON_PRIVATE)  # 2¹¹⁰⁰ is no double
    with pytest.raises(pf.InputError, match="max_bytes"):
        match_moments(wide, method="exact")
    with pytest.raises(pf.InputError, match="rng"):
        match_moments(m, rng=3)


@pytest.mark.parametrize("second", [2300.0, 2100.0])
def test_of_two_models_the_smaller_estimated_error_wins(monkeypatch, second):
    """A contradicted pair, as chance brings it now and then, gives no way to a worse model."""
    first = matched.Check(True, 0.1, (3,), False, 2200.0)
    checks = iter([first, replace(first, contradicted=(), error=second)])
    monkeypatch.setattr(moment_matching, "check", lambda task, law: next(checks))
    rows = np.where(np.random.default_rng(0).random((500, 5)) < 0.5, 1, -1)
    found = solve_moments(measure_moments(rows, pf.ZCDP(1), insecure_seed=0))
    assert len(found.contradicted) == (second > first.error)
