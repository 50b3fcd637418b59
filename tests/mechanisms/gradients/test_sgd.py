"""Private SGD: right gradients, right clipping, right noise, the promise kept."""

import json
import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom, chi2

import privfield as pf
from privfield.estimation.baselines import model_from_sgd
from privfield.files import pack, unpack
from privfield.mechanisms.gradients import sgd as module
from privfield.mechanisms.gradients.sgd import (
    MASS,
    ORDERS,
    WEIGHT,
    CellNumbers,
    SGDTrajectory,
    clipped_sum,
    noise_multiplier,
    private_sgd,
    subsampled_divergence,
)
from privfield.privacy.noise import NoiseLaw, add_noise
from privfield.privacy.randomness import Entropy

SCHEMA = pf.Schema({"a": 2, "b": 3, "c": 2})
CLIQUES = [("a", "b"), ("c", "b"), ("a",)]
DATA = np.random.default_rng(20240502).integers(0, [2, 3, 2], (400, 3))
RECORDS = list(product(range(2), range(3), range(2)))
BUDGET = pf.ApproxDP(1, 1e-5)
SETTINGS = {"steps": 3, "sampling_rate": 0.5, "clip": 1, "learning_rate": 0.01}


def model(seed):
    rng = np.random.default_rng(seed)
    tables = [2 * rng.standard_normal([SCHEMA.shape[i] for i in SCHEMA.clique(c)]) for c in CLIQUES]
    return pf.MarkovRandomField(SCHEMA, CLIQUES, tables)


def flat_marginals(field):
    return np.concatenate([field.marginal(clique).ravel() for clique in CLIQUES])


def one_hot(record):
    """e(x) by the definition: one table per clique with a 1 at the record's cell."""
    tables = []
    for clique in CLIQUES:
        positions = SCHEMA.clique(clique)
        table = np.zeros([SCHEMA.shape[i] for i in positions])
        table[tuple(record[i] for i in positions)] = 1
        tables.append(table.ravel())
    return np.concatenate(tables)


def sum_of(records, marginals, clip, rate=1, entropy=None):
    columns = list(np.array(records, dtype=np.uint8).reshape(-1, 3).T)
    cells = CellNumbers(SCHEMA, CLIQUES)
    entropy = entropy or Entropy.system()
    return clipped_sum(columns, cells, marginals, Fraction(clip), Fraction(rate), entropy)


# -- gradients and clipping ------------------------------------------------------------------------


@pytest.mark.parametrize("clip", ["0.1", "0.9", "1.5", "2", "9"])
@pytest.mark.parametrize("seed", range(5))
def test_the_clipped_sum_is_that_of_each_record_on_its_own(seed, clip):
    mu = flat_marginals(model(seed))
    expected = np.zeros(mu.size)
    for record in DATA:
        gradient = one_hot(record) - mu
        expected += gradient * min(1, float(Fraction(clip)) / np.linalg.norm(gradient))
    found = sum_of(DATA, mu, clip) / (WEIGHT * MASS)
    assert found == pytest.approx(expected, abs=len(DATA) * (1 / WEIGHT + 1 / MASS))


def test_the_gradient_is_that_of_the_log_likelihood():
    """Finite differences of the log-likelihood, without clipping."""
    field = model(1)
    found = sum_of(DATA, flat_marginals(field), 9) / (WEIGHT * MASS)
    step, numeric = 1e-5, []
    for number, table in enumerate(field.log_potentials):
        for cell in np.ndindex(table.shape):
            ends = []
            for side in (step, -step):
                tables = [t.copy() for t in field.log_potentials]
                tables[number][cell] += side
                ends.append(pf.MarkovRandomField(SCHEMA, CLIQUES, tables).log_likelihood(DATA))
            numeric.append((ends[0] - ends[1]) / (2 * step))
    assert found == pytest.approx(numeric, abs=0.01)


@pytest.mark.parametrize("clip", ["0.000001", "0.01", "0.7", "1", "1.3", "2.4494", "5"])
@pytest.mark.parametrize("seed", range(20))
def test_sensitivity_by_enumeration_of_all_records(seed, clip):
    """Whole numbers: adding x moves the sum by v(x) whatever else is there, |v(x)|₂ within bounds.

    And the bound is used up: where a gradient is longer than the clip, less than one step of the
    weight is lost.
    """
    mu = flat_marginals(model(seed))
    bound = Fraction(clip) * WEIGHT * MASS
    others = sum_of(DATA[:7], mu, clip)
    for record in RECORDS:
        alone = sum_of([record], mu, clip)
        both = sum_of([*DATA[:7].tolist(), record], mu, clip)
        assert (both - others == alone).all()
        square = sum(int(v) ** 2 for v in alone)
        assert square <= bound**2
        length = np.linalg.norm(one_hot(record) - mu)
        if length > float(Fraction(clip)) * 1.001:
            assert math.sqrt(square) > float(bound) - MASS * length * 1.01


def test_a_record_that_the_model_is_sure_of_has_no_gradient():
    mu = one_hot(RECORDS[4])
    assert (sum_of([RECORDS[4]], mu, 1) == 0).all()
    assert np.linalg.norm(sum_of([RECORDS[0]], mu, 9)) > 0


def test_rows_are_drawn_independently_with_the_stated_rate():
    """The size of a sample is binomial, and so is the overlap of two; false alarms below 4e-7."""
    rows, rate = 200_000, Fraction(3, 10)
    columns = [np.zeros(rows, np.uint8), np.zeros(rows, np.uint8), np.arange(rows) % 2]
    cells = CellNumbers(SCHEMA, CLIQUES)
    for entropy in (Entropy.system(), Entropy.insecure(1)):
        found = clipped_sum(columns, cells, np.zeros(cells.count), Fraction(9), rate, entropy)
        sizes = found[[6, 9]] // (WEIGHT * MASS)  # rows with c = 0 and c = 1
        law = binom(rows // 2, float(rate))
        assert (law.ppf(5e-8) <= sizes).all() and (sizes <= law.isf(5e-8)).all()
    again = [
        clipped_sum(columns, cells, np.zeros(cells.count), Fraction(9), rate, Entropy.system())
        for _ in range(2)
    ]
    assert (again[0] != again[1]).any()


# -- accounting ------------------------------------------------------------------------------------


def lattice_gaussian(sigma, shift, reach):
    """The discrete Gaussian around a vector of whole numbers, on a box around 0."""
    axes = np.meshgrid(*[np.arange(-reach, reach + 1)] * len(shift), indexing="ij")
    squares = sum((axis - s) ** 2 for axis, s in zip(axes, shift, strict=True))
    weights = np.exp(-squares / (2 * sigma**2)).ravel()
    return weights / weights.sum()


def renyi(p, q, order):
    return math.log(float((q * (p / q) ** order).sum())) / (order - 1)


@pytest.mark.parametrize(
    ("shift", "sigma"), [((3,), 2.5), ((1,), 0.6), ((2, 1), 2.0), ((1, 1), 1.1), ((2, -1, 1), 1.5)]
)
@pytest.mark.parametrize("rate", [Fraction(1, 20), Fraction(1, 2), Fraction(9, 10)])
def test_the_divergence_of_the_subsampled_discrete_gaussian(shift, sigma, rate):
    """Summed over the lattice: equal to the formula one way, below it the other way."""
    reach = math.ceil(6 * max(map(abs, shift)) + 9 * sigma) if len(shift) < 3 else 22
    here, there = (lattice_gaussian(sigma, s, reach) for s in (np.zeros_like(shift), shift))
    mixed = (1 - float(rate)) * here + float(rate) * there
    multiplier = Fraction(sigma) / Fraction(math.sqrt(sum(s * s for s in shift)))
    for order in (2, 3, 5):
        bound = float(subsampled_divergence(order, multiplier, rate))
        assert renyi(mixed, here, order) == pytest.approx(bound, rel=1e-6)
        assert renyi(here, mixed, order) <= bound
        assert renyi(mixed, here, order) > float(subsampled_divergence(order, 2 * multiplier, rate))


def test_the_bound_grows_with_the_rate_and_falls_with_the_noise():
    for order in (2, 7, 300):
        by_rate = [subsampled_divergence(order, Fraction(2), Fraction(k, 20)) for k in range(1, 21)]
        assert by_rate == sorted(by_rate)
        by_noise = [subsampled_divergence(order, Fraction(k), Fraction(1, 20)) for k in range(1, 9)]
        assert by_noise == sorted(by_noise, reverse=True)
    assert subsampled_divergence(4, Fraction(3), Fraction(1)) == Fraction(2, 9)


@pytest.mark.parametrize("order", [2, 3, 64, 1000, ORDERS[-1]])
@pytest.mark.parametrize("rate", [1e-6, 0.01, 0.7])
def test_the_search_and_the_certificate_compute_the_same(order, rate):
    for z in (0.9, 5.0, 80.0):
        exact = float(subsampled_divergence(order, Fraction(z), Fraction(rate)))
        assert module._curve(order, rate)(z) == pytest.approx(exact, rel=1e-8)


def exact_delta(multiplier, rate, steps, epsilon, sensitivity=4):
    """The larger δ of both directions of `steps` runs in one dimension: sums over the lattice."""
    sigma = float(multiplier) * sensitivity
    reach = math.ceil(sensitivity + 12 * sigma)
    here = lattice_gaussian(sigma, (0,), reach)
    mixed = (1 - rate) * here + rate * lattice_gaussian(sigma, (sensitivity,), reach)
    found = []
    for p, q in ((mixed, here), (here, mixed)):
        many_p, many_q = p, q
        for _ in range(steps - 1):
            many_p, many_q = np.outer(many_p, p).ravel(), np.outer(many_q, q).ravel()
        found.append(np.maximum(many_p - math.exp(epsilon) * many_q, 0).sum())
    return max(found)


@pytest.mark.parametrize(("steps", "rate"), [(1, 1.0), (1, 0.1), (2, 0.3)])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_the_budget_holds_exactly_and_not_with_half_the_noise(steps, rate, epsilon):
    delta = 1e-4
    multiplier = noise_multiplier(pf.ApproxDP(epsilon, delta), steps, Fraction(str(rate)))
    assert exact_delta(multiplier, rate, steps, epsilon) <= delta
    assert exact_delta(multiplier / 2, rate, steps, epsilon) > delta


def test_without_sampling_the_noise_is_that_of_zcdp():
    """σ/Δ₂ = √(steps/2ρ); whole orders lose little."""
    for epsilon, delta, steps in ((0.1, 1e-6, 10), (1, 1e-5, 50), (4, 1e-9, 200)):
        budget = pf.ApproxDP(epsilon, delta)
        best = math.sqrt(steps / (2 * budget.rho))
        assert best * (1 - 1e-9) <= noise_multiplier(budget, steps, Fraction(1)) <= 1.01 * best


CASES = [(1, 1e-5, 200, 0.1), (0.5, 1e-4, 1000, 0.02), (0.05, 1e-6, 100, 0.01), (3, 1e-6, 50, 0.5)]


def test_divergences_against_dp_accounting():
    dp = pytest.importorskip("dp_accounting")
    rdp = pytest.importorskip("dp_accounting.rdp")
    for _, _, steps, rate in CASES:
        for order in (2, 5, 64, 500):
            for z in (0.8, 3.0, 40.0):
                accountant = rdp.RdpAccountant([order])
                event = dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(z))
                accountant.compose(event, steps)
                ours = steps * float(subsampled_divergence(order, Fraction(z), Fraction(str(rate))))
                assert ours == pytest.approx(float(accountant._rdp[0]), rel=1e-6)


def test_noise_multiplier_against_dp_accounting():
    """Its accountant, with all orders, finds our noise enough and nearly needed."""
    dp = pytest.importorskip("dp_accounting")
    rdp = pytest.importorskip("dp_accounting.rdp")
    pld = pytest.importorskip("dp_accounting.pld")
    for epsilon, delta, steps, rate in CASES:
        z = float(noise_multiplier(pf.ApproxDP(epsilon, delta), steps, Fraction(str(rate))))
        event = dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(z))
        theirs = float(rdp.RdpAccountant().compose(event, steps).get_epsilon(delta))
        assert 0.9 * epsilon <= theirs <= epsilon * 1.02  # their list of orders is shorter
        tight = pld.PLDAccountant().compose(event, steps).get_epsilon(delta)
        assert 0.5 * epsilon <= tight <= epsilon


# -- the release -----------------------------------------------------------------------------------


def test_without_noise_it_converges_to_the_maximum_of_the_likelihood():
    run = private_sgd(
        DATA, SCHEMA, CLIQUES, pf.NON_PRIVATE,
        steps=600, sampling_rate=1, clip=100, learning_rate=1 / len(DATA),
    )  # fmt: skip
    fitted = model_from_sgd(run, average=0)
    for clique in CLIQUES:
        counts = pf.measure(DATA, SCHEMA, [clique], pf.NON_PRIVATE).tables[0]
        assert fitted.marginal(clique) == pytest.approx(counts / len(DATA), abs=2e-5)
    assert fitted.stamp.startswith("NOT PRIVATE: no noise") and "NOT PRIVATE" in repr(run)


def promise_holds(run, budget):
    """Noise against the longest step of any record, at the iterates of this very run."""
    steps = len(run.gradients)
    needed = noise_multiplier(budget, steps, Fraction(str(run.sampling_rate)))
    theta = np.zeros(run.gradients.shape[1])
    for gradient in run.gradients:
        tables = np.split(theta, np.cumsum([SCHEMA.cells(c) for c in CLIQUES])[:-1])
        shapes = [[SCHEMA.shape[i] for i in SCHEMA.clique(c)] for c in CLIQUES]
        field = pf.MarkovRandomField(
            SCHEMA, CLIQUES, [t.reshape(s) for t, s in zip(tables, shapes, strict=True)]
        )
        mu = flat_marginals(field)
        cells = CellNumbers(SCHEMA, CLIQUES)
        for record in RECORDS:
            columns = [np.array([code], np.uint8) for code in record]
            clip, everyone = Fraction(str(run.clip)), Fraction(1)
            step = module.clipped_sum(columns, cells, mu, clip, everyone, Entropy.system())
            square = sum(int(v) ** 2 for v in step)
            if Fraction(run.scale * WEIGHT * MASS) ** 2 < needed**2 * square:
                return False
        theta = theta + run.learning_rate * run.unit * gradient
    return True


def test_the_noise_covers_every_record_at_every_step():
    run = private_sgd(DATA, SCHEMA, CLIQUES, BUDGET, **SETTINGS)
    assert promise_holds(run, BUDGET)
    assert not promise_holds(run, pf.ApproxDP(0.7, 1e-5))


def test_an_understated_sensitivity_is_caught(monkeypatch):
    def generous(columns, cells, marginals, clip, rate, entropy):
        return clipped_sum(columns, cells, marginals, clip * 11 / 10, rate, entropy)

    monkeypatch.setattr(module, "clipped_sum", generous)
    assert not promise_holds(private_sgd(DATA, SCHEMA, CLIQUES, BUDGET, **SETTINGS), BUDGET)


def noise_fits(data=DATA[:0]):
    """The sum of squares of the noise; without rows there is nothing else. False alarms: 1e-7.

    σ is thousands of grid steps, so that the continuous law's χ² will do.
    """
    run = private_sgd(data, SCHEMA, CLIQUES, BUDGET, **{**SETTINGS, "steps": 60})
    needed = noise_multiplier(BUDGET, 60, Fraction(1, 2)) * WEIGHT * MASS  # clip = 1
    assert Fraction(run.scale) / Fraction(run.unit) >= needed
    statistic = ((run.gradients / float(needed)) ** 2).sum()
    tail = chi2(run.gradients.size)
    return tail.ppf(5e-8) <= statistic <= tail.isf(5e-8)


def test_the_noise_is_what_the_result_says():
    assert noise_fits()


def test_halved_noise_is_caught(monkeypatch):
    monkeypatch.setattr(
        module,
        "add_noise",
        lambda values, law, seed: add_noise(values, NoiseLaw(law.name, law.scale / 2), seed),
    )
    assert not noise_fits()


def test_noise_is_fresh_in_every_step_and_every_run():
    for seed in (None, 3):
        runs = [
            private_sgd(DATA[:0], SCHEMA, CLIQUES, BUDGET, insecure_seed=seed, **SETTINGS)
            for _ in range(2)
        ]
        rows = np.concatenate([run.gradients for run in runs])
        assert len(np.unique(rows, axis=0)) == (6 if seed is None else 3)


def public_trace(data, folder):
    ledger = pf.Ledger(folder / "l", total=pf.ApproxDP(2, 1e-4), adjacency="add-remove")
    news = []
    run = private_sgd(
        data, SCHEMA, CLIQUES, BUDGET, ledger=ledger, job="j", progress=news.append, **SETTINGS
    )
    header, arrays = unpack("sgd-trajectory", run.to_bytes(), "x")
    (charge,) = ledger.charges()
    shapes = [(name, array.shape, str(array.dtype)) for name, array in arrays.items()]
    return json.dumps(header), shapes, news, repr(run), (charge.what, charge.cost, charge.job)


def test_public_metadata_is_the_same_on_neighbours(tmp_path, capfd):
    wild = DATA.astype(float)
    wild[3] = [np.nan, 1e300, -7]
    traces = []
    for number, data in enumerate([DATA, DATA[1:], DATA[:0], wild]):
        folder = tmp_path / str(number)
        folder.mkdir()
        traces.append(public_trace(data, folder))
    assert all(trace == traces[0] for trace in traces)
    assert capfd.readouterr() == ("", "")


def test_epsilon_and_delta_are_stated_and_charged_first(tmp_path):
    ledger = pf.Ledger(tmp_path / "l", total=pf.ApproxDP(1, 1e-5), adjacency="add-remove")

    def stop(news):
        assert ledger.charges()[0].cost == BUDGET  # before a record is read
        raise KeyboardInterrupt

    arguments = (DATA, SCHEMA, CLIQUES, BUDGET)
    with pytest.raises(KeyboardInterrupt):
        private_sgd(*arguments, ledger=ledger, job="a", progress=stop, **SETTINGS)
    run = private_sgd(*arguments, ledger=ledger, job="a", **SETTINGS)
    again = private_sgd("gone.csv", *arguments[1:], ledger=ledger, job="a", **SETTINGS)
    assert run.to_bytes() == again.to_bytes() and len(ledger.charges()) == 1
    assert run.cost == BUDGET and run.cost.delta == 1e-5 and run.adjacency == "add-remove"
    assert "delta=1e-05" in repr(run) and "not covered" in repr(run) and run.stamp is None
    with pytest.raises(pf.InputError, match="another request"):
        private_sgd(*arguments, ledger=ledger, job="a", **{**SETTINGS, "steps": 4})
    with pytest.raises(pf.BudgetRefused):
        private_sgd(*arguments, ledger=ledger, **SETTINGS)


def test_a_seed_repeats_everything_and_stamps_the_result(tmp_path):
    runs = [
        private_sgd(DATA, SCHEMA, CLIQUES, BUDGET, insecure_seed=5, **SETTINGS) for _ in range(2)
    ]
    assert runs[0].to_bytes() == runs[1].to_bytes()
    runs[0].save(tmp_path / "t")
    loaded = SGDTrajectory.load(tmp_path / "t")
    assert loaded.stamp.startswith("NOT PRIVATE") and loaded.cost == BUDGET
    assert loaded.to_bytes() == runs[0].to_bytes()
    assert (loaded.gradients == runs[0].gradients).all()
    assert model_from_sgd(loaded).stamp == loaded.stamp


def test_iterates_and_their_averages():
    run = private_sgd(DATA, SCHEMA, CLIQUES, BUDGET, insecure_seed=1, **{**SETTINGS, "steps": 4})
    path = np.cumsum(run.gradients * run.unit * run.learning_rate, axis=0)
    for average, rows in ((0, path[3:]), (0.5, path[2:]), (1, path)):
        found = np.concatenate([table.ravel() for table in run.log_potentials(average)])
        assert found == pytest.approx(rows.mean(axis=0))
    assert [t.shape for t in run.log_potentials()] == [(2, 3), (2, 3), (2,)]
    with pytest.raises(pf.InputError, match=r"average must lie in \[0, 1\]; got 2"):
        run.log_potentials(2)


def test_a_wild_learning_rate_gives_a_finite_model():
    run = private_sgd(DATA, SCHEMA, CLIQUES, BUDGET, **{**SETTINGS, "learning_rate": 1e9})
    assert np.isfinite(np.concatenate([t.ravel() for t in run.log_potentials()])).all()


def test_structural_zeros_have_no_mass():
    schema = pf.Schema({"a": 2, "b": 3, "c": 2}, forbidden=[{"a": ["0"], "c": ["1"]}])
    run = private_sgd(
        DATA, schema, CLIQUES, pf.NON_PRIVATE,
        steps=300, sampling_rate=1, clip=9, learning_rate=2 / len(DATA),
    )  # fmt: skip
    assert model_from_sgd(run).marginal(["a", "c"])[0, 1] == 0


def test_damaged_files_are_refused():
    whole = private_sgd(DATA, SCHEMA, CLIQUES, BUDGET, **SETTINGS).to_bytes()
    header, arrays = unpack("sgd-trajectory", whole, "x")
    del header["kind"]
    broken = [
        ({**header, "cost": {"kind": "pure", "epsilon": "1"}}, arrays),
        ({**header, "numbers": [1]}, arrays),
        ({**header, "cliques": [["a"]]}, arrays),
        (header, {}),
        (header, {"gradients": arrays["gradients"] * 1.5}),
    ]
    for bad_header, bad_arrays in broken:
        with pytest.raises(pf.InputError, match="damaged"):
            SGDTrajectory.from_bytes(pack("sgd-trajectory", bad_header, bad_arrays))
    with pytest.raises(pf.InputError, match="damaged"):
        SGDTrajectory.from_bytes(whole[:-40])
    with pytest.raises(pf.InputError, match="has format 9; this is 1"):
        SGDTrajectory.from_bytes(pack("sgd-trajectory", {**header, "format": 9}, arrays))


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"schema": 3}, "schema must be a pf.Schema; got int"),
        ({"schema": pf.Schema({"a": 2, "b": 3}, unit=pf.Person("id"))}, "clips single rows"),
        ({"cliques": []}, "at least one"),
        ({"cliques": [("a", "z")]}, "no variable 'z'"),
        ({"budget": pf.PureDP(1)}, "pf.ApproxDP with δ > 0 .*got PureDP"),
        ({"budget": pf.ApproxDP(1, 0)}, "pf.ApproxDP with δ > 0"),
        ({"budget": pf.ApproxDP(1e-9, 1e-9)}, "too small for 3 steps"),
        ({"budget": None}, "pf.ApproxDP with δ > 0 .*got None"),
        ({"budget": pf.NON_PRIVATE}, "NON_PRIVATE cannot be charged"),
        ({"adjacency": "replace-one"}, "adjacency must be 'add-remove'.*got 'replace-one'"),
        ({"adjacency": "near"}, "adjacency must be one of"),
        ({"steps": 0}, "steps must be a whole number from 1; got 0"),
        ({"steps": 2.5}, "steps must be a whole number from 1"),
        ({"steps": 10**8}, "steps must be fewer"),
        ({"sampling_rate": 0}, "sampling_rate must lie between 1e-9 and 1; got 0"),
        ({"sampling_rate": 1.1}, "sampling_rate must lie"),
        ({"sampling_rate": "x"}, "sampling_rate must be a number"),
        ({"clip": 0}, "clip must be at least 1e-6; got 0"),
        ({"clip": np.nan}, "clip must be finite"),
        ({"learning_rate": 0}, "learning_rate must lie above 0"),
        ({"learning_rate": np.inf}, "learning_rate must be finite"),
        ({"insecure_seed": -1}, "insecure_seed must be"),
        ({"progress": 3}, "progress must be a function"),
        ({"data": "nothing.csv"}, "nothing.csv"),
    ],
)
def test_bad_input_is_found_before_anything_is_charged(tmp_path, changes, text):
    ledger = pf.Ledger(tmp_path / "l", total=pf.ApproxDP(9, 1e-2), adjacency="add-remove")
    arguments = {"data": DATA, "schema": SCHEMA, "cliques": CLIQUES, "budget": BUDGET, **SETTINGS}
    with pytest.raises(pf.InputError, match=text):
        private_sgd(**{**arguments, **changes}, ledger=ledger)
    assert ledger.charges() == []


def test_a_model_too_large_for_exact_inference_is_refused_first(tmp_path):
    names = [f"v{i}" for i in range(30)]
    schema = pf.Schema(dict.fromkeys(names, 10))
    pairs = [(a, b) for i, a in enumerate(names) for b in names[:i]]
    ledger = pf.Ledger(tmp_path / "l", total=BUDGET, adjacency="add-remove")
    with pytest.raises(pf.InputError, match="Exact inference would need"):
        private_sgd(np.zeros((1, 30), int), schema, pairs, BUDGET, ledger=ledger, **SETTINGS)
    assert ledger.charges() == []
