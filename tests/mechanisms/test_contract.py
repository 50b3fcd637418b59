"""What every mechanism owes: one loop over MECHANISMS. docs/privacy/mechanisms.md.

Every check also runs with a fault planted in the one place through which all noise comes,
`Randomness.draw`, and must then fail: a check that cannot fail proves nothing.
"""

import pickle
from dataclasses import replace
from fractions import Fraction
from functools import partialmethod

import numpy as np
import pytest
from scipy.stats import binom, chi2

import privfield as pf
from privfield.audit.promise import check_world, watched
from privfield.mechanisms.chains.mechanism import ChainTransitions
from privfield.mechanisms.registry import MECHANISMS
from privfield.privacy.adjacency import NODE, ROW, Adjacency, Unit
from privfield.privacy.budgets import GaussianDP
from privfield.privacy.coins import Sample
from privfield.privacy.ledger import LedgerJournal
from privfield.privacy.mechanism import MemoryJournal
from privfield.privacy.randomness import Entropy, Randomness
from privfield.privacy.terms import Terms

BUDGETS = (pf.PureDP(1), pf.ZCDP(0.1), pf.ApproxDP(0.7, 1e-6))


def cases():
    """Every mechanism with every kind of budget and every adjacency that it takes."""
    found = []
    for kind in MECHANISMS:
        for adjacency in kind.adjacencies:
            for budget in BUDGETS:
                terms = Terms(budget, adjacency)
                if kind.takes(terms):
                    name = f"{kind.__name__}-{adjacency}-{type(budget).__name__}"
                    found.append(pytest.param(kind, terms, id=name))
    return found


CASES = cases()


def worlds(kind, terms):
    found = list(kind.worlds(terms))
    assert found
    return found


def plant(monkeypatch, law=lambda law: law, values=lambda values: values):
    """A fault in every draw of every mechanism."""
    draw = Randomness.draw

    def wrong(self, step, own, numbers):
        return draw(self, step, law(own), values(numbers))

    monkeypatch.setattr(Randomness, "draw", wrong)


def is_broken(kind, terms):
    """Whether the promise is seen to be broken in some world."""
    return any(check_world(world, (0,)).problem for world in worlds(kind, terms))


def test_every_mechanism_is_listed():
    names = [kind.__name__ for kind in MECHANISMS]
    assert len(set(names)) == len(names)
    assert len({kind.noun for kind in MECHANISMS}) == len(names)  # the audit lists them by noun
    covered = {case.values[0] for case in CASES}
    assert covered == set(MECHANISMS)


# -- the promise


@pytest.mark.parametrize(("kind", "terms"), CASES)
def test_the_promise_is_kept_between_all_neighbours(kind, terms):
    """The worst of them use a good part of the cost: a tamer domain could not show a fault."""
    shares = []
    for world in worlds(kind, terms):
        found = check_world(world)
        assert found.problem is None
        assert found.pairs > 0
        assert world.mechanism.cost <= terms.budget
        shares.append(found.share)
    assert max(shares) > 0.5


@pytest.mark.parametrize(("kind", "terms"), CASES)
def test_halved_noise_is_caught(kind, terms, monkeypatch):
    plant(monkeypatch, law=lambda law: law.quieter(Fraction(2)))
    assert is_broken(kind, terms)


@pytest.mark.parametrize(("kind", "terms"), CASES)
def test_a_doubled_sensitivity_is_caught(kind, terms, monkeypatch):
    plant(monkeypatch, values=lambda values: 2 * np.asarray(values))
    assert is_broken(kind, terms)


@pytest.mark.parametrize(("kind", "terms"), CASES)
def test_a_lost_division_by_the_number_of_steps_is_caught(kind, terms, monkeypatch):
    world = worlds(kind, terms)[0]
    steps = len(world.mechanism.trace(next(world.data_sets())))
    if steps < 2:
        pytest.skip("one step: there is nothing to divide by")
    factor = Fraction(steps) if terms.is_pure else Fraction(steps**0.5)
    plant(monkeypatch, law=lambda law: law.quieter(factor))
    assert check_world(world, (0,)).problem


LEFT = GaussianDP(Fraction(1, 10))  # what a ledger may have left
OF_LEDGERS = [(k, a) for k in MECHANISMS for a in k.adjacencies if k.takes(Terms(LEFT, a))]


@pytest.mark.parametrize(("kind", "adjacency"), OF_LEDGERS)
def test_what_is_left_of_a_ledger_is_kept_or_refused(kind, adjacency):
    world = worlds(kind, Terms(LEFT, adjacency))[0]
    if world.mechanism.cost <= LEFT:
        assert check_world(world, (0,)).problem is None
    else:
        with pytest.raises(pf.InputError, match="does not cover ZCDP"):
            world.mechanism.release(next(world.data_sets()))


# -- the noise


class Spy:
    """A law that notes the first bits of the entropy that it is given."""

    def __init__(self, law, seen):
        self.law, self.seen = law, seen

    def draw(self, values, entropy):
        self.seen.append(entropy.bits(64))
        return self.law.draw(values, entropy)


def first_bits(kind, terms, monkeypatch):
    """Of every step of four runs: two with noise that protects, two with seeds."""
    world, seen = worlds(kind, terms)[0], []
    with monkeypatch.context() as patch:
        draw = Randomness.draw
        patch.setattr(
            Randomness, "draw", lambda self, step, law, x: draw(self, step, Spy(law, seen), x)
        )
        for seed in (None, None, 0, 1):
            world.mechanism.open(next(world.data_sets()))(Randomness(seed))
    return seen


@pytest.mark.parametrize(("kind", "terms"), CASES)
def test_noise_differs_between_steps_and_calls(kind, terms, monkeypatch):
    """Two draws start with the same 64 bits with probability 2^-64. Laws: tests/privacy."""
    seen = first_bits(kind, terms, monkeypatch)
    assert len(seen) >= 4
    assert len(set(seen)) == len(seen)
    monkeypatch.setattr(Randomness, "_next", lambda self: (0, Entropy.insecure(1)))
    assert len(set(first_bits(kind, terms, monkeypatch))) == 1  # noise used again shows


# -- samples


class Noting(Randomness):
    """Notes the exact values of each step of a real run; a watched one would draw everyone."""

    def draw(self, step, law, values):
        self.__dict__.setdefault("seen", []).append(values)
        return super().draw(step, law, values)


def drawn(world, rows=400, runs=24):
    """How many of equal rows each step of each run drew: one line for each run.

    The runs are real ones. A watched run that reads their outcomes back knows the sums over all
    rows at the same steps.
    """
    data = world.build([world.units[-1]] * rows)
    found = []
    for _ in range(runs):
        journal = MemoryJournal()
        noting = Noting(None, journal)
        world.mechanism.open(data)(noting)
        everyone = [draw.values for draw in watched(world.mechanism, data, 0, journal)[0]]
        cells = [int(np.abs(values).argmax()) for values in everyone]
        steps = zip(noting.seen, everyone, cells, strict=True)
        found.append([rows * part[cell] / whole[cell] for part, whole, cell in steps])
    return np.array(found), rows


def sampled_as_stated(world, rate):
    """As many rows as the rate says, and in every step others; false alarms below 1e-6.

    The number of all rows drawn is binomial. The squares of a run's counts around their mean, over
    their variance, are χ² but for the binomial's fourth moment, which is smaller than a normal
    one's or larger by less than 2%. A sample used again, or rows drawn in company, change it.
    """
    counts, rows = drawn(world)
    total = binom(rows * counts.size, float(rate))
    if not total.ppf(1e-7) <= counts.sum() <= total.isf(1e-7):
        return False
    spread = ((counts - counts.mean(axis=1, keepdims=True)) ** 2).sum()
    spread /= rows * float(rate) * (1 - float(rate))
    law = chi2(counts.shape[0] * (counts.shape[1] - 1))
    return law.ppf(1e-7) <= spread <= law.isf(1e-7)


class AllOrNobody(Sample):
    """Records that hold the same share a coin."""

    def count(self, words, counts):
        return counts * super().count(words, np.ones_like(counts))


def sampling_worlds(kind, terms):
    """Those whose steps work on samples, and the rate that their laws state."""
    found = []
    for world in worlds(kind, terms):
        laws = world.mechanism.laws(next(world.data_sets()))
        rates = {getattr(law, "rate", None) for law in laws}
        if rates not in ({None}, {1}):
            assert len(rates) == 1
            found.append((world, rates.pop()))
    return found or pytest.skip("it reads every row")


SAMPLING_FAULTS = {
    "everyone is drawn": lambda self, sample, rate: sample(self, Fraction(1)),
    "twice the rate": lambda self, sample, rate: sample(self, min(2 * rate, Fraction(1))),
    "half the rate": lambda self, sample, rate: sample(self, rate / 2),
    "all or nobody": lambda self, sample, rate: AllOrNobody(*vars(sample(self, rate)).values()),
    "one sample for all steps": lambda self, sample, rate: self.__dict__.setdefault(
        "kept", sample(self, rate)
    ),
}


@pytest.mark.parametrize(("kind", "terms"), CASES)
def test_samples_have_the_stated_rate_and_are_fresh_in_every_step(kind, terms, monkeypatch):
    found = sampling_worlds(kind, terms)
    assert all(sampled_as_stated(world, rate) for world, rate in found)
    sample = Randomness.sample
    for name, fault in SAMPLING_FAULTS.items():
        monkeypatch.setattr(Randomness, "sample", partialmethod(fault, sample))
        assert not any(sampled_as_stated(world, rate) for world, rate in found), name


# -- charge, run, store, return


@pytest.fixture
def ledger(tmp_path):
    return lambda terms: replace(
        terms,
        ledger=pf.Ledger(tmp_path / "l", terms.budget * 10, str(terms.adjacency)),
        job="job",
    )


def charged(world, terms):
    """The world's mechanism on these terms, which may have another unit."""
    return replace(world.mechanism, terms=replace(terms, unit=world.mechanism.terms.unit))


@pytest.mark.parametrize(("kind", "terms"), CASES)
def test_the_charge_is_on_disk_before_a_record_is_read(kind, terms, ledger, monkeypatch):
    world = worlds(kind, terms)[0]
    mechanism = charged(world, ledger(terms))
    seen = []
    opened = type(mechanism).open

    def open_(self, data):
        run = opened(self, data)

        def looking(randomness):
            seen.append(len(pf.Ledger(self.terms.ledger.path).charges()))
            return run(randomness)

        return looking

    monkeypatch.setattr(kind, "open", open_)
    mechanism.release(next(world.data_sets()))
    assert seen == [1]
    monkeypatch.setattr(pf.Ledger, "charge", lambda self, *a, job=None, **k: job)
    monkeypatch.setattr(pf.Ledger, "keep", lambda self, job, data: data)
    other = replace(mechanism, terms=replace(mechanism.terms, job="another"))
    other.release(next(world.data_sets()))
    assert seen == [1, 1]  # the skipped charge shows


@pytest.mark.parametrize(("kind", "terms"), CASES)
def test_what_is_promised_is_what_the_noise_protects(kind, terms, ledger):
    """Terms made by hand cannot name another unit than the one that was paid for."""
    other = [Unit("person", "id"), Unit("household", "household"), Unit("person")]
    if kind is not ChainTransitions:  # where words say what an id stands for
        other += [ROW, NODE]
    paid = ledger(terms)
    for world in worlds(kind, terms):
        own = world.mechanism.terms.unit
        assert str(world.mechanism.protects) == str(own)
        for unit in (unit for unit in other if str(unit) != str(own)):
            with pytest.raises(pf.InputError):  # some refuse it when they are made
                asked = replace(world.mechanism, terms=replace(paid, unit=unit))
                asked.release(next(world.data_sets()))
    assert not paid.ledger.charges()


@pytest.mark.parametrize(("kind", "terms"), CASES)
def test_opening_reads_no_record(kind, terms):
    """What is opened on one data set and run after its rows were overwritten sees the new rows."""
    for world in worlds(kind, terms):
        for data, other in world.neighbours():
            if not isinstance(data, np.ndarray) or data.shape != np.shape(other):
                continue
            late, seen = data.copy(), []
            run = world.mechanism.open(late)
            late[...] = other
            run(Randomness(0, None, seen.append))
            expected = watched(world.mechanism, other, 0, MemoryJournal())[0]
            assert [draw.values.tolist() for draw in seen] == [
                draw.values.tolist() for draw in expected
            ]
            break


@pytest.mark.parametrize(("kind", "terms"), CASES)
def test_the_same_job_replays(kind, terms, ledger):
    world = worlds(kind, terms)[0]
    mechanism = charged(world, ledger(terms))
    first = mechanism.release(next(world.data_sets()))
    again = mechanism.release(None)  # a finished job does not need its data
    assert first.to_bytes() == again.to_bytes()
    assert len(mechanism.terms.ledger.charges()) == 1
    assert first.cost == mechanism.cost
    assert first.adjacency is terms.adjacency


class Cut(BaseException):
    """A run is cut off."""


@pytest.mark.parametrize(("kind", "terms"), CASES)
def test_a_killed_job_goes_on_from_its_journal(kind, terms, ledger, monkeypatch):
    """Cut off after every step in turn: one charge, and no outcome is drawn again."""
    world = worlds(kind, terms)[0]
    mechanism = charged(world, ledger(terms))
    data = next(world.data_sets())
    kept, journal_write = [], type(mechanism.terms.ledger.journal("job")).write

    def write(self, number, data):
        kept.append((number, journal_write(self, number, data)))
        raise Cut

    monkeypatch.setattr(type(mechanism.terms.ledger.journal("job")), "write", write)
    for _ in range(10_000):
        error = None
        try:
            released = mechanism.release(data)
            break
        except RuntimeError as caught:
            error = caught
        assert "Cut" in str(error)
        assert error.__cause__ is None
        assert error.__context__ is None
        assert_nothing_reachable(error)
    numbers = [number for number, _ in kept]
    assert len(set(numbers)) == len(numbers)  # each step was drawn once
    assert len(mechanism.terms.ledger.charges()) == 1
    journal = MemoryJournal(dict(kept))
    monkeypatch.undo()
    assert watched(mechanism, data, 0, journal)[1] == released.to_bytes()


class Tired(Exception):
    """A listener has had enough."""


@pytest.mark.parametrize(("kind", "terms"), CASES)
def test_a_job_that_a_listener_stops_goes_on(kind, terms, ledger, monkeypatch):
    """Stopped at every progress message in turn, by an error or by Ctrl-C: one set of draws."""
    world = worlds(kind, terms)[0]
    data, told, kept = next(world.data_sets()), [], []
    allowed, stops = 0, (Tired, KeyboardInterrupt)

    def listen(news):
        told.append(news)
        if len(told) > allowed:
            raise stops[allowed % 2]

    terms = replace(ledger(terms), progress=listen)
    journal_write = type(terms.ledger.journal("job")).write

    def write(self, number, data):
        kept.append((number, journal_write(self, number, data)))
        return kept[-1][1]

    monkeypatch.setattr(type(terms.ledger.journal("job")), "write", write)
    mechanism = charged(world, terms)
    while True:
        before, error = told.copy(), None
        told.clear()
        try:
            released = mechanism.release(data)
            break
        except stops as caught:
            error = caught
        assert type(error) is stops[allowed % 2]
        assert told[:-1] == before  # the same news, and one more
        assert error.__cause__ is error.__context__ is None
        assert_nothing_reachable(error)
        allowed += 1
    numbers = [number for number, _ in kept]
    assert len(set(numbers)) == len(numbers)  # each step was drawn once
    assert len(terms.ledger.charges()) == 1
    monkeypatch.undo()
    quiet = replace(mechanism, terms=replace(mechanism.terms, progress=None))
    assert watched(quiet, data, 0, MemoryJournal(dict(kept)))[1] == released.to_bytes()


@pytest.mark.parametrize(("kind", "terms"), CASES)
def test_a_job_that_another_process_finishes_draws_nothing_more(kind, terms, tmp_path, monkeypatch):
    """It is finished at every progress message in turn; the first run returns that result."""
    world = worlds(kind, terms)[0]
    data, written = next(world.data_sets()), []
    journal_write = LedgerJournal.write

    def write(self, number, data):
        kept = journal_write(self, number, data)
        written.append((self.ledger.path, number))
        return kept

    monkeypatch.setattr(LedgerJournal, "write", write)
    for turn in range(1000):
        told, meanwhile = 0, None
        ledger = pf.Ledger(tmp_path / f"{turn}", terms.budget * 10, str(terms.adjacency))
        other = charged(world, replace(terms, ledger=ledger, job="job"))

        def listen(news, turn=turn, other=other):
            nonlocal told, meanwhile
            told += 1
            if told == turn + 1:
                meanwhile = other.release(data).to_bytes()

        first = replace(other, terms=replace(other.terms, progress=listen))
        released = first.release(data).to_bytes()
        if meanwhile is None:
            break
        assert released == meanwhile
        assert len(set(written)) == len(written)  # each step was drawn once


def assert_nothing_reachable(error):
    """No frame of the run hangs on the exception."""
    frames = []
    trace = error.__traceback__
    while trace is not None:
        frames.append(trace.tb_frame.f_code.co_filename)
        trace = trace.tb_next
    inside = [name for name in frames if "/mechanisms/" in name and "/tests/" not in name]
    assert not inside


# -- values


@pytest.mark.parametrize(("kind", "terms"), CASES)
def test_what_is_released_survives_a_file_and_a_pickle(kind, terms):
    for world in worlds(kind, terms):
        for data in world.data_sets():
            released = world.mechanism.release(data)
            assert isinstance(released, kind.releases)
            assert kind.releases.from_bytes(released.to_bytes()).to_bytes() == released.to_bytes()
            assert pickle.loads(pickle.dumps(released)).to_bytes() == released.to_bytes()
            assert released.stamp is None
        assert pickle.loads(pickle.dumps(world.mechanism)).request() == world.mechanism.request()


@pytest.mark.parametrize("kind", MECHANISMS)
def test_bad_terms_are_refused(kind):
    others = set(Adjacency) - set(kind.adjacencies)
    legal = next(case.values[1] for case in CASES if case.values[0] is kind)
    world = worlds(kind, legal)[0]
    for adjacency in others:
        with pytest.raises(pf.InputError, match=r"adjacency must be .* for .*; got"):
            replace(world.mechanism, terms=replace(world.mechanism.terms, adjacency=adjacency))


@pytest.mark.parametrize("kind", MECHANISMS)
def test_what_is_not_private_is_stamped(kind):
    legal = next(case.values[1] for case in CASES if case.values[0] is kind)
    world = worlds(kind, legal)[0]
    seeded = replace(world.mechanism, terms=replace(world.mechanism.terms, insecure_seed=1))
    data = next(world.data_sets())
    first, again = seeded.release(data), seeded.release(data)
    assert first.stamp.startswith("NOT PRIVATE")
    assert first.to_bytes() == again.to_bytes()
