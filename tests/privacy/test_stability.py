"""Stable release: exact (ε, δ) over all votes, ties included; no larger probabilities exist."""

from collections import Counter
from decimal import Context, Decimal
from fractions import Fraction
from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privfield.errors import InputError
from privfield.privacy import stability
from privfield.privacy.randomness import Entropy
from privfield.privacy.rounding import exact
from privfield.privacy.stability import (
    majority_stability,
    may_release,
    mode_stability,
    release_probabilities,
    release_probability,
)

BUDGETS = [
    (Fraction(1, 10), Fraction(1, 100)),
    (Fraction(1, 2), Fraction(1, 10**6)),
    (Fraction(1), Fraction(1, 20)),
    (Fraction(2), Fraction(1, 10)),
    (Fraction(5), Fraction(1, 3)),
    (Fraction(20), Fraction(1, 10**12)),
]


def exp_below(epsilon):
    """Below e^ε, computed apart from the code under test."""
    power = Context(prec=90).exp(Decimal(epsilon.numerator) / Decimal(epsilon.denominator))
    return Fraction(power) * (1 - Fraction(1, 10**80))


def needed_delta(p, q, growth):
    """The δ that two output distributions need at e^ε = growth: exact, over all events."""
    return sum(max(p[o] - growth * q.get(o, 0), Fraction(0)) for o in p)


def outputs(value, stable, chances):
    chance = chances[min(stable, len(chances) - 1)]
    return {value: chance, "nothing": 1 - chance}


# -- all votes of a few blocks ---------------------------------------------------------------------


def compositions(total, parts):
    """All ways to cast `total` votes on `parts` ballots."""
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in compositions(total - first, parts - 1):
            yield (first, *rest)


def neighbours(votes):
    """One block votes otherwise."""
    for source, target in product(range(len(votes)), repeat=2):
        if votes[source] and source != target:
            changed = list(votes)
            changed[source] -= 1
            changed[target] += 1
            yield tuple(changed)


def by_mode(votes, stable_of=mode_stability):
    """Three graphs; of equally frequent ones the first."""
    return votes.index(max(votes)), stable_of(votes)


SUBSETS = list(product([0, 1], repeat=2))  # of two edges


def by_majority(votes, stable_of=majority_stability):
    blocks = sum(votes)
    yes = [sum(n * s[e] for n, s in zip(votes, SUBSETS, strict=True)) for e in range(2)]
    return tuple(2 * v > blocks for v in yes), min(stable_of(v, blocks) for v in yes)


CASES = [("mode", by_mode, 3), ("edge-majority", by_majority, len(SUBSETS))]


def worst_delta(rule, ballots, blocks, chances, growth):
    """The largest δ needed between any two neighbouring vectors of votes."""
    worst = Fraction(0)
    for votes in compositions(blocks, ballots):
        here = outputs(*rule(votes), chances)
        for other in neighbours(votes):
            worst = max(worst, needed_delta(here, outputs(*rule(other), chances), growth))
    return worst


@pytest.mark.parametrize("blocks", [1, 2, 3, 4, 5, 8, 9])
@pytest.mark.parametrize(("name", "rule", "ballots"), CASES)
def test_every_vote_vector_keeps_epsilon_and_delta(name, rule, ballots, blocks):
    """All vectors of votes, all changes of one vote, in exact fractions: ties, odd and even m."""
    for epsilon, delta in BUDGETS:
        chances = release_probabilities(epsilon, delta)
        assert worst_delta(rule, ballots, blocks, chances, exp_below(epsilon)) <= delta


@pytest.mark.parametrize(("name", "rule", "ballots"), CASES)
@pytest.mark.parametrize("blocks", [8, 9])
def test_stability_moves_by_one_and_is_zero_where_the_value_changes(name, rule, ballots, blocks):
    for votes in compositions(blocks, ballots):
        value, stable = rule(votes)
        for other in neighbours(votes):
            new, moved = rule(other)
            assert abs(stable - moved) <= 1
            if new != value:
                assert stable == moved == 0


def test_the_check_catches_what_would_break_the_promise():
    """One too stable, a gap that is not halved, π that grow too fast: each needs more than δ."""
    epsilon, delta = Fraction(1), Fraction(1, 20)
    growth, chances = exp_below(epsilon), release_probabilities(epsilon, delta)

    def gap(votes):
        first, second = sorted(votes, reverse=True)[:2]
        return max(0, first - second - 1)

    wrong = [
        (lambda v: by_mode(v, gap), 3, chances),
        (lambda v: by_mode(v, lambda w: mode_stability(w) + 1), 3, chances),
        (lambda v: by_majority(v, lambda y, m: majority_stability(y, m) + 1), 4, chances),
        (lambda v: by_majority(v, lambda y, m: abs(2 * y - m)), 4, chances),
        (lambda v: by_majority(v, lambda y, m: abs(2 * y - m) // 2), 4, chances),
        (by_majority, 4, release_probabilities(epsilon * 2, delta)),
        (by_mode, 3, release_probabilities(epsilon, delta * 2)),
        (by_majority, 4, tuple(min(Fraction(1), c + delta) for c in chances)),
    ]
    for rule, ballots, used in wrong:
        assert worst_delta(rule, ballots, 8, used, growth) > delta


@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=12), st.data())
def test_mode_by_brute_force_distance(votes, data):
    """Its stability is never above the number of votes that can change and leave the mode."""
    counts = Counter(votes)
    stable = mode_stability(counts.values())
    top = max(counts, key=lambda v: (counts[v], v))
    changed = list(votes)
    for _ in range(stable):
        changed[data.draw(st.integers(0, len(votes) - 1))] = data.draw(st.sampled_from("abcde"))
    if stable:
        after = Counter(changed)
        assert all(after[top] > n for v, n in after.items() if v != top)


def test_majority_by_counting_how_many_votes_it_takes():
    for blocks in range(1, 13):
        for yes in range(blocks + 1):
            decided = 2 * yes > blocks
            turn = next(
                k
                for k in range(blocks + 2)
                if any((2 * (yes + d) > blocks) != decided for d in (-k, k))
            )
            assert majority_stability(yes, blocks) == turn - 1


# -- the probabilities -----------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_probabilities_are_the_largest_possible(epsilon, delta):
    """Each satisfies all four inequalities with its neighbour, and barely more would not."""
    chances = release_probabilities(epsilon, delta)
    growth = exp_below(epsilon)
    above = growth * (1 + Fraction(1, 10**70))  # above e^ε
    assert chances[0] <= delta < chances[0] + Fraction(1, 2**90) and chances[-1] == 1
    slack = Fraction(1, 2**80)
    for low, high in pairwise(chances):
        assert low < high
        assert high <= growth * low + delta and low <= growth * high + delta
        assert 1 - low <= growth * (1 - high) + delta and 1 - high <= growth * (1 - low) + delta
        more = high + slack
        broken = more > above * low + delta or 1 - low > above * (1 - more) + delta or more > 1
        assert broken


def test_known_numbers():
    """ε = 1, δ = 10⁻⁶: the recursion in plain floating point."""
    chances = release_probabilities(Fraction(1), Fraction(1, 10**6))
    plain, expected = 1e-6, []
    while plain < 1 - 1e-12:
        expected.append(plain)
        e = 2.718281828459045
        plain = min(e * plain + 1e-6, 1 - (1 - plain - 1e-6) / e, 1)
    assert [float(c) for c in chances[:20]] == pytest.approx(expected[:20], rel=1e-9)
    assert release_probability(10**9, Fraction(1), Fraction(1, 10**6)) == 1


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 40))
def test_the_decision_has_exactly_that_probability(stable):
    epsilon, delta = Fraction(1), Fraction(1, 1000)
    chance = release_probability(stable, epsilon, delta)
    edge = int(chance * 2**96)
    assert Fraction(edge, 2**96) == chance

    def drawing(value):
        return Entropy(lambda size: value.to_bytes(size, "little"))

    assert may_release(stable, epsilon, delta, entropy=drawing(edge - 1))
    if chance < 1:
        assert not may_release(stable, epsilon, delta, entropy=drawing(edge))


def test_bits_of_the_decision_come_from_the_system(monkeypatch):
    asked = []
    monkeypatch.setattr(
        stability.Entropy, "system", classmethod(lambda cls: asked.append(1) or Entropy(bytes))
    )
    assert may_release(0, Fraction(1), Fraction(1, 1000)) and asked


@pytest.mark.parametrize(
    ("epsilon", "delta", "text"),
    [
        (Fraction(21), Fraction(1, 10), "20"),
        (Fraction(0), Fraction(1, 10), "epsilon"),
        (Fraction(1), Fraction(0), "δ > 0"),
        (Fraction(1), Fraction(1), "δ > 0"),
        (Fraction(1), Fraction(1, 10**40), "at least 1.3e-29"),
        (Fraction(1, 10**6), Fraction(1, 10**12), "epsilon=1e-06 with delta=1e-12 is too small"),
        (Fraction(1, 10**100), Fraction(1, 10**9), "too small"),
    ],
)
def test_illegal_budgets(epsilon, delta, text):
    with pytest.raises(InputError, match=text):
        release_probabilities(epsilon, delta)


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-6), (0.01, 1e-9), (1e-9, 1e-3), (20, 0.5)])
def test_a_budget_is_refused_by_how_many_steps_it_takes(epsilon, delta, monkeypatch):
    """The estimate beforehand is never above twice the true number, nor far below it."""
    steps = len(release_probabilities(exact(epsilon, "ε"), exact(delta, "δ")))
    for most, refused in ((2 * steps + 2, False), (steps // 2 - 1, steps > 10)):
        release_probabilities.cache_clear()
        monkeypatch.setattr(stability, "_MOST_STEPS", most)
        if refused:
            with pytest.raises(InputError, match="too small"):
                release_probabilities(exact(epsilon, "ε"), exact(delta, "δ"))
        elif most > steps:
            assert len(release_probabilities(exact(epsilon, "ε"), exact(delta, "δ"))) == steps
