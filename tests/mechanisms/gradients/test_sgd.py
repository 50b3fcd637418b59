"""Private SGD: right gradients, right clipping, right noise, the promise kept."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import privfield as pf
from privfield.data.batch import CodedBatch
from privfield.data.choice import pack
from privfield.data.tally import tallied
from privfield.estimation.trajectories import mrf_from_sgd
from privfield.files import pack as pack_file
from privfield.files import unpack
from privfield.mechanisms.gradients.sgd import MASS, WEIGHT, CellNumbers, ClippedSum, SGDTrajectory
from privfield.privacy.coins import Coins, Sample
from releases import private_sgd

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


def sum_of(records, marginals, clip, chosen=None):
    columns = tuple(np.array(records, dtype=np.uint8).reshape(-1, 3).T)
    batches = tallied([CodedBatch(columns, len(records))], SCHEMA.shape)
    sample = Sample(Coins(bytes(16)), None) if chosen is None else chosen
    numbers = CellNumbers(SCHEMA, CLIQUES)
    return ClippedSum.at(marginals, numbers, Fraction(clip), sample).partial(iter(batches))


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


def test_only_chosen_rows_count():
    mu = flat_marginals(model(3))
    sample = Sample.at(Fraction(1, 3), Coins(b"0123456789abcdef"))
    chosen = []
    for record in RECORDS:
        many = int((record == DATA).all(axis=1).sum())
        words = pack([np.array([code], np.uint8) for code in record], SCHEMA.shape)
        chosen += [record] * int(sample.count(words, np.array([many]))[0])
    assert 0 < len(chosen) < len(DATA)
    assert (sum_of(DATA, mu, 1, sample) == sum_of(chosen, mu, 1)).all()


# -- the release -----------------------------------------------------------------------------------


def test_without_noise_it_converges_to_the_maximum_of_the_likelihood():
    run = private_sgd(
        DATA, SCHEMA, CLIQUES, pf.NON_PRIVATE,
        steps=600, sampling_rate=1, clip=100, learning_rate=1 / len(DATA),
    )  # fmt: skip
    fitted = mrf_from_sgd(run, average=0)
    for clique in CLIQUES:
        counts = pf.measure(DATA, SCHEMA, [clique], pf.NON_PRIVATE).tables[0]
        assert fitted.marginal(clique) == pytest.approx(counts / len(DATA), abs=2e-5)
    assert fitted.stamp.startswith("NOT PRIVATE: no noise") and "NOT PRIVATE" in repr(run)


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
    assert mrf_from_sgd(loaded).stamp == loaded.stamp


def test_iterates_and_their_averages():
    run = private_sgd(DATA, SCHEMA, CLIQUES, BUDGET, insecure_seed=1, **{**SETTINGS, "steps": 4})
    path = np.cumsum(run.gradients * run.unit * run.learning_rate, axis=0)
    for average, rows in ((0, path[3:]), (0.5, path[2:]), (1, path)):
        found = np.concatenate([table.ravel() for table in run.log_potentials(average)])
        assert found == pytest.approx(rows.mean(axis=0))
    assert [t.shape for t in run.log_potentials()] == [(2, 3), (2, 3), (2,)]
    with pytest.raises(pf.InputError, match=r"average must lie in \[0, 1\]; got 2"):
        run.log_potentials(2)


def test_tied_cliques_share_their_potentials():
    """Noise-free: stationary where the sum of both tables' gradients is 0. Noisy: exactly equal."""
    schema, cliques = pf.Schema({"x": 3, "y": 3, "z": 3}), [("x",), ("x", "y"), ("y", "z")]
    rows = np.random.default_rng(1).integers(0, [3, 2, 3], (300, 3))
    run = private_sgd(
        *(rows, schema, cliques, pf.NON_PRIVATE),
        **{"steps": 400, "sampling_rate": 1, "clip": 100, "learning_rate": 2 / 300, "tied": True},
    )
    fitted = mrf_from_sgd(run, average=0)
    exact = [pf.measure(rows, schema, [c], pf.NON_PRIVATE).tables[0] / 300 for c in cliques]
    both = sum(fitted.marginal(clique) for clique in cliques[1:])
    assert both == pytest.approx(exact[1] + exact[2], abs=5e-3)
    assert fitted.marginal(["x"]) == pytest.approx(exact[0], abs=5e-3)
    noisy = private_sgd(rows, schema, cliques, BUDGET, tied=True, **SETTINGS)
    first, one, other = SGDTrajectory.from_bytes(noisy.to_bytes()).log_potentials()
    assert (one == other).all() and np.ptp(one) > 0 and first.shape == (3,)
    learner = pf.SGDLearner(BUDGET, schema=schema, cliques=cliques, declared_rows=300, tied=True)
    tables = learner.fit(rows).model_.log_potentials
    assert (tables[1] == tables[2]).all()


def test_a_wild_learning_rate_gives_a_finite_model():
    run = private_sgd(DATA, SCHEMA, CLIQUES, BUDGET, **{**SETTINGS, "learning_rate": 1e9})
    assert np.isfinite(np.concatenate([t.ravel() for t in run.log_potentials()])).all()


def test_structural_zeros_have_no_mass():
    schema = pf.Schema({"a": 2, "b": 3, "c": 2}, forbidden=[{"a": ["0"], "c": ["1"]}])
    run = private_sgd(
        DATA, schema, CLIQUES, pf.NON_PRIVATE,
        steps=300, sampling_rate=1, clip=9, learning_rate=2 / len(DATA),
    )  # fmt: skip
    assert mrf_from_sgd(run).marginal(["a", "c"])[0, 1] == 0


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
            SGDTrajectory.from_bytes(pack_file("sgd-trajectory", bad_header, bad_arrays))
    with pytest.raises(pf.InputError, match="damaged"):
        SGDTrajectory.from_bytes(whole[:-40])
    with pytest.raises(pf.InputError, match="has format 9; this is 1"):
        SGDTrajectory.from_bytes(pack_file("sgd-trajectory", {**header, "format": 9}, arrays))


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"schema": 3}, "schema must be a pf.Schema; got int"),
        ({"schema": pf.Schema(dict.fromkeys("abc", 2), unit=pf.Person("id"))}, "clips single rows"),
        ({"cliques": []}, "at least one"),
        ({"cliques": [("a", "z")]}, "no variable 'z'"),
        ({"budget": pf.PureDP(1)}, "pf.ApproxDP with δ > 0 .*got PureDP"),
        ({"budget": pf.ApproxDP(1, 0)}, "pf.ApproxDP with δ > 0"),
        ({"budget": pf.ApproxDP(1e-9, 1e-9)}, "too small for 3 steps"),
        ({"budget": pf.NON_PRIVATE}, "NON_PRIVATE cannot be charged"),
        ({"adjacency": "replace-one"}, "adjacency must be 'add-remove'.*got 'replace-one'"),
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
