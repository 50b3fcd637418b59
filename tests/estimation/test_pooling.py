"""Sites pooled: against one table with all people, brute force, and simulated noise."""

from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.stats import chi2

import privfield as pf
from privfield.estimation.pooling import merged, weights
from privfield.estimation.tables.interactions import interactions
from privfield.reporting import write_report

SCHEMA = pf.Schema({"a": ["no", "yes"], "b": ["x", "y", "z"], "c": ["no", "yes"]})
PAIRS = [("a", "b"), ("b", "c"), ("a", "c")]


def people(count, rng):
    a = rng.integers(0, 2, count)
    b = np.where(rng.random(count) < 0.5, a, rng.integers(0, 3, count))
    return np.column_stack([a, b, rng.integers(0, 2, count)])


def test_without_noise_it_is_one_table():
    rng = np.random.default_rng()
    sites = [people(n, rng) for n in (300, 2000, 700)]
    alone = [pf.measure(rows, SCHEMA, PAIRS, pf.NON_PRIVATE) for rows in sites]
    whole = pf.estimate(pf.measure(np.concatenate(sites), SCHEMA, PAIRS, pf.NON_PRIVATE))
    pooled = pf.pool(alone)
    for pair in PAIRS:
        assert pooled.marginal(pair) == pytest.approx(whole.marginal(pair), abs=2e-3)
    assert pooled.card.rows == 3000 and pooled.stamp


def test_moments_without_noise_add_up():
    rng = np.random.default_rng()
    truth = pf.IsingModel(np.array([[0, 0.4, 0], [0.4, 0, -0.2], [0, -0.2, 0]]))
    sites = [truth.sample(n, rng, "independent") for n in (500, 4000)]
    learners = [pf.IsingLearner(pf.NON_PRIVATE, method="moments").fit(rows) for rows in sites]
    whole = pf.IsingLearner(pf.NON_PRIVATE, method="moments").fit(np.concatenate(sites))
    pooled = pf.pool([learner.released_ for learner in learners])
    assert (pooled.measurements.pairs == whole.released_.pairs).all()
    assert (pooled.measurements.singles == whole.released_.singles).all()
    assert pooled.weights == pytest.approx(whole.model_.weights, abs=1e-3)


@pytest.mark.parametrize(
    ("sizes", "noises"),
    [([100, 1000, 50], [400, 400, 400]), ([1000, 1000], [10, 1e6]), ([500, 500], [0, 0])],
)
def test_weights_are_the_best(sizes, noises):
    n, v = np.array(sizes, float), np.array(noises, float)
    found, noise = weights(n, v, 0.25)
    assert found @ n == pytest.approx(n.sum())

    def variance(w):
        w = w * n.sum() / (w @ n)
        return w**2 @ (v + 0.25 * n)

    best = minimize(variance, np.ones(len(n)), method="Nelder-Mead", options={"xatol": 1e-9}).fun
    assert noise + 0.25 * n.sum() == pytest.approx(best, rel=1e-5)


def test_the_stated_noise_is_the_noise():
    """Same people every time: what varies over releases is noise alone, in every contrast.

    The sum of 200 squares over their stated variance is χ²; a false alarm has probability 1e-6
    (the slack covers what unequal weights add to the stated variance).
    """
    rng, studies = np.random.default_rng(), 200
    sites = [people(n, rng) for n in (400, 1600)]
    budgets = pf.ApproxDP(1, 1e-6), pf.ApproxDP(0.5, 1e-6)
    exact = pf.pool([pf.measure(rows, SCHEMA, PAIRS, pf.NON_PRIVATE) for rows in sites])
    truth = interactions(exact.measurements)
    ratios = dict.fromkeys(truth.scopes, 0.0)
    degrees = {}
    for _ in range(studies):
        parts = [
            pf.measure(rows, SCHEMA, PAIRS, budget)
            for rows, budget in zip(sites, budgets, strict=True)
        ]
        found = interactions(merged(parts))
        for scope, value, variance in zip(found.scopes, found.values, found.variances, strict=True):
            place = truth.scopes.index(scope)
            gap = value - truth.values[place]
            ratios[scope] += float((gap**2).sum()) / variance
            degrees[scope] = int(np.prod([SCHEMA.shape[v] - 1 for v in scope]))
    for scope, total in ratios.items():
        assert total < chi2.isf(1e-7, studies * degrees[scope])
        assert total > 0.5 * chi2.ppf(1e-7, studies * degrees[scope])


def test_sites_may_measure_different_things():
    rng = np.random.default_rng()
    first = pf.measure(people(4000, rng), SCHEMA, PAIRS[:1], pf.ApproxDP(3, 1e-6))
    second = pf.measure(people(4000, rng), SCHEMA, PAIRS[1:], pf.ApproxDP(3, 1e-6))
    model = pf.pool([first, second], names=("north", "south"))
    rows = {(row.first, row.second): row for row in model.edges()}
    assert rows["a", "b"].verdict == "clear" and set(rows) == {("a", "b"), ("b", "c"), ("a", "c")}
    assert model.card.method == "pooled from 2 sites" and model.card.rows == 8000
    assert [site[:2] for site in model.card.sites] == [("north", 4000), ("south", 4000)]
    assert "replace-one neighbours" in model.card.sites[0].promise


def test_the_promise_is_the_weakest_or_the_sum():
    rng = np.random.default_rng()
    sites = [
        pf.measure(people(500, rng), SCHEMA, PAIRS, budget, noise="gaussian")
        for budget in (pf.ZCDP(Fraction(1, 2)), pf.ZCDP(Fraction(1, 8)))
    ]
    assert pf.pool(sites).card.cost == pf.ZCDP(Fraction(1, 2))
    assert pf.pool(sites, overlap=True).card.cost == pf.ZCDP(Fraction(5, 8))
    pure = pf.measure(people(500, rng), SCHEMA, PAIRS, pf.PureDP(Fraction(1, 4)))
    both = pf.pool([sites[1], pure])
    assert pure.cost <= both.card.cost and sites[1].cost <= both.card.cost


def test_a_site_of_rows_makes_no_promise_about_people():
    rng = np.random.default_rng()
    names = list(SCHEMA.names)
    frame = pd.DataFrame({n: np.array(SCHEMA[n].levels)[people(300, rng)[:, 0]] for n in names})
    frame["id"] = np.arange(300) // 2
    whose = pf.Schema({n: SCHEMA[n].levels for n in names}, unit=pf.Person("id", rows=2))
    learner = pf.MarginalLearner(pf.ZCDP(1), schema=whose, cliques=PAIRS, adjacency="add-remove")
    of_people = learner.fit(frame).model_
    of_rows = pf.measure(people(300, rng), SCHEMA, PAIRS, pf.ZCDP(1), "add-remove")
    assert of_people.card.unit.startswith("person")
    assert pf.pool([of_people, of_rows]).card.unit == "row"


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("turn", [1, -1])
def test_a_site_without_privacy_takes_it_from_all(overlap, turn):
    rng = np.random.default_rng()
    bare = {"budget": pf.NON_PRIVATE}, {"budget": pf.ZCDP(1), "insecure_seed": 1}
    private = pf.measure(people(300, rng), SCHEMA, PAIRS, pf.ZCDP(1))
    for terms in bare:
        other = pf.measure(people(300, rng), SCHEMA, PAIRS, **terms)
        found = pf.pool([private, other][::turn], overlap=overlap)
        assert found.stamp and found.card.promise().startswith("none. NOT PRIVATE")
        promises = [site.promise for site in found.card.sites][::turn]
        assert "ρ = 1" in promises[0] and promises[1].startswith("none. NOT PRIVATE")


def test_a_private_number_of_rows():
    rng = np.random.default_rng()
    sites = [
        pf.measure(people(3000, rng), SCHEMA, PAIRS, pf.ApproxDP(1, 1e-6), "add-remove")
        for _ in range(2)
    ]
    model = pf.pool(sites)
    assert all(isinstance(site.people, float) for site in model.card.sites)  # noisy numbers
    assert model.card.rows is None and model.card.adjacency is pf.Adjacency.ADD_REMOVE
    assert interactions(model.measurements).total == pytest.approx(6000, abs=1000)


def test_a_pooled_model_is_saved_and_read_again(tmp_path):
    rng = np.random.default_rng()
    sites = [pf.measure(people(500, rng), SCHEMA, PAIRS, pf.ApproxDP(1, 1e-6)) for _ in range(3)]
    model = pf.pool(sites)
    model.save(tmp_path / "all.pf")
    back = pf.load(tmp_path / "all.pf")
    assert back.card == model.card and repr(back.edges()) == repr(model.edges())
    page = write_report(back, tmp_path / "all.html").read_text()
    assert "The sites" in page and page.count('<th scope="row">site ') == 3


def test_names_of_levels_stay_and_must_be_in_one_order():
    """Moments hold no names of levels: models of them do, and contrary ones are no one's."""
    rng = np.random.default_rng()
    rows = pd.DataFrame(rng.integers(0, 2, (400, 2)), columns=["a", "b"])

    def site(levels, learner):
        schema = pf.Schema({"a": ["0", "1"], "b": levels})
        table = rows.assign(b=np.where(rows["b"] == 1, levels[1], levels[0]))
        return learner(pf.ZCDP(1), schema=schema).fit(table).model_

    for learner in (pf.IsingLearner, pf.MarginalLearner, pf.OrdinalLearner):
        one, two = (site(["no", "yes"], learner) for _ in range(2))
        assert pf.pool([one, two]).schema["b"].levels == ("no", "yes")
        with pytest.raises(pf.InputError, match=r"number 2 must have the levels .* 'b' differ"):
            pf.pool([one, site(["yes", "no"], learner)])
    for method in ("moments", "two-stage"):
        kind = partial(pf.IsingLearner, method=method)
        signs = kind(pf.ZCDP(1), names=["a", "b"]).fit(2 * rows.to_numpy(np.int8) - 1).model_
        named = site(["no", "yes"], kind)
        for sites in ([named, signs], [signs, named]):
            assert pf.pool(sites).schema["b"].levels == ("no", "yes")
        assert pf.pool([named, signs.measurements]).schema["b"].levels == ("no", "yes")
    with pytest.raises(pf.InputError, match=r"number 2 must have the levels .* 'b' differ"):
        schemas = [pf.Schema({"a": ["0", "1"], "b": list(each)}) for each in ("ny", "yn")]
        pf.pool([pf.measure(rows.to_numpy(), s, [("a", "b")], pf.ZCDP(1)) for s in schemas])


@pytest.mark.parametrize(
    ("budgets", "noise"),
    [
        ([pf.ZCDP(0.1), pf.ZCDP(0.2)], "discrete-gaussian"),
        ([pf.PureDP(1), pf.PureDP(1)], "discrete-laplace"),
        ([pf.PureDP(1), pf.ZCDP(0.1)], "laplace"),
    ],
)
def test_the_card_names_the_noise_that_all_sites_added(budgets, noise):
    """Sums of noise with whole numbers follow no such law; what was added did."""
    rows = pf.IsingModel(np.zeros((3, 3))).sample(200, np.random.default_rng(1), "independent")
    models = [pf.IsingLearner(budget, method="moments").fit(rows).model_ for budget in budgets]
    assert pf.pool(models).card.noise == noise
    scales = pf.Schema({name: pf.Ordered([1, 2, 3]) for name in "abc"})
    if noise == "discrete-gaussian":
        items = [pf.OrdinalLearner(each, schema=scales) for each in budgets]
        both = [learner.fit((rows > 0).astype(np.uint8)).model_ for learner in items]
        assert pf.pool(both).card.noise == noise


def test_the_card_says_whom_the_sites_speak_of():
    schema = pf.Schema({"a": ["no", "yes"], "b": ["no", "yes"]}, gaps={"a": "no answer"})
    rows = np.random.default_rng().integers(0, 2, (2, 400, 2))
    sites = [pf.MarginalLearner(pf.ZCDP(1), schema=schema).fit(each).model_ for each in rows]
    notes = pf.pool(sites).card.notes
    assert len(notes) == 2 and "those who answered" in notes[1]


def test_what_cannot_be_pooled_is_refused():
    rng = np.random.default_rng()
    one = pf.measure(people(100, rng), SCHEMA, PAIRS, pf.ApproxDP(1, 1e-6))
    other = pf.measure(people(100, rng), SCHEMA, PAIRS, pf.ApproxDP(1, 1e-6), "add-remove")
    with pytest.raises(pf.InputError, match="at least two"):
        pf.pool([one])
    with pytest.raises(pf.InputError, match="add-remove neighbours, the first replace-one"):
        pf.pool([one, other])
    with pytest.raises(pf.InputError, match="number 2 must have the variables"):
        small = pf.Schema({"a": 2, "b": 3})
        pf.pool([one, pf.measure(people(100, rng)[:, :2], small, [("a", "b")], pf.ZCDP(1))])
    with pytest.raises(pf.InputError, match="number 2 must be a model that carries"):
        pf.pool([one, pf.IsingModel(np.zeros((2, 2)))])
    with pytest.raises(pf.InputError, match="names must name each of 2 sites"):
        pf.pool([one, one], names=["a"])
    with pytest.raises(pf.InputError, match="number 3 is the same release as number 1"):
        again = pf.measure(people(100, rng), SCHEMA, PAIRS, pf.ApproxDP(1, 1e-6))
        pf.pool([one, again, pf.estimate(one)], overlap=True)
