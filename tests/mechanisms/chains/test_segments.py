"""Sequences cut into segments: what each unit weighs, by an oracle and by enumeration."""

from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privfield as pf
from privfield.data.sequences.read import SequenceSource, StateSet
from privfield.mechanisms.chains.mechanism import GRID, ChainTransitions, Weights
from privfield.mechanisms.chains.segments import SHARES, Segments
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.terms import Terms

STATES = StateSet.of(["a", "b", "-"], "-")


def tables(people, cut, limit, start):
    data = {str(number): person for number, person in enumerate(people)}
    found = SequenceSource.of(STATES, data).read()
    return cut.count(found, 3, Fraction(limit), GRID, start)


def cut_up(person, length):
    """All segments of one person, filled up with "-"."""
    found = []
    for sequence in person:
        known = [state if state in ("a", "b") else "-" for state in sequence]
        known += ["-"] * (-len(known) % length)
        found += [known[place : place + length] for place in range(0, len(known), length)]
    return found


def oracle(people, cut, limit, start):
    """Both tables from the definitions of docs/privacy/chains.md, state by state."""
    initial, pairs = [0] * 3, [0] * 9
    code = "ab-".index
    most = int(limit * GRID)
    for person in people:
        own = cut_up(person, cut.length)
        if cut.share == "all":
            own = own[: cut.most]
        full = [segment for segment in own if set(segment) != {"-"}]
        busy = [[pair != ("-", "-") for pair in pairwise(segment)] for segment in own]
        first = int(start / Fraction(limit)) if cut.share == "segments" else start
        for segment in full:
            initial[code(segment[0])] += min(first, start // len(full))
        everywhere = sum(map(sum, busy))
        for segment, counted in zip(own, busy, strict=True):
            for edge, (before, after) in enumerate(pairwise(segment)):
                if cut.share == "segments":
                    among, counts = len(full), segment in full
                elif cut.share == "edges":
                    among, counts = sum(line[edge] for line in busy), counted[edge]
                else:
                    among, counts = everywhere, everywhere and (cut.share == "all" or counted[edge])
                if counts:
                    pairs[3 * code(before) + code(after)] += min(GRID, most // among)
    return [*initial, *pairs]


some_people = st.lists(
    st.lists(st.lists(st.sampled_from(["a", "b", "-", "?", None]), max_size=9), max_size=4),
    max_size=5,
)
some_cuts = st.builds(
    Segments, st.integers(2, 4), st.just(2), st.sampled_from(SHARES), st.integers(1, 4)
)


@settings(max_examples=150, deadline=None)
@given(some_people, some_cuts, st.fractions(1, 5, max_denominator=7), st.integers(1, 3 * GRID))
def test_tables_are_what_the_definition_says(people, cut, limit, start):
    assert tables(people, cut, limit, start).tolist() == oracle(people, cut, limit, start)


@pytest.mark.parametrize("share", SHARES)
def test_neither_places_of_rows_nor_other_people_choose_segments(share):
    """With a column for the order: shuffled rows, and each person alone, give the same counts."""
    cut = Segments(2, 2, share, most=1)
    rng = np.random.default_rng(7)
    cells = (list("pqr"), ["t1", "t2", "t10"], list("ab-"), [1, 2, 3])
    rows = list(zip(*(rng.choice(each, 40).tolist() for each in cells), strict=True))

    def count(rows):
        data = pd.DataFrame(rows, columns=list("wxyz"))
        found = SequenceSource.of(STATES, data, ("w", "x", "y", "z")).read()
        return cut.count(found, 3, Fraction(2), GRID, GRID)

    alone = sum(count([row for row in rows if row[0] == person]) for person in "pqr")
    for _ in range(5):
        assert count(rows).tolist() == alone.tolist()
        rng.shuffle(rows)


HISTORIES = [[], *([list(text)] for n in range(1, 7) for text in product("a-", repeat=n))]
HISTORIES += [[list(text)] for text in ("bbbbbb", "b----b", "b-b-b-", "abb")]


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("adjacency", list(Adjacency)[:2])
@pytest.mark.parametrize("limit", [1, 2])
def test_sensitivity_by_enumeration_is_attained(share, adjacency, limit):
    """All changes of one unit with up to two segments: equal to the claim, but for "all"."""
    cut = Segments(3, 2, share, most=2)
    weights = Weights(GRID, int(cut.mass(Fraction(limit)) * GRID), GRID // 2)
    claim = weights.sensitivity(adjacency)
    found = [tables([history], cut, limit, weights.start) for history in HISTORIES]
    others = [0] if adjacency is Adjacency.ADD_REMOVE else found
    shifts = [table - other for table in found for other in others]
    shifts = np.array(shifts).astype(object)
    one, two = abs(shifts).sum(axis=1).max(), (shifts**2).sum(axis=1).max()
    if share == "all" and adjacency is Adjacency.REPLACE_ONE:
        assert 0.5 * claim.l1 < one <= claim.l1  # both units have pairs of nulls, which cancel
    else:
        assert one == claim.l1
    least = 0.3 if share == "all" else 1
    assert least * claim.l2_squared <= two <= claim.l2_squared


def test_the_numbers_of_the_paper():
    """24 segments of six states: the three readings of docs/errata.md."""
    masses = {share: Segments(6, 0, share).mass(Fraction(1)) for share in SHARES}
    assert masses == {"segments": 5, "pairs": 1, "edges": 5, "all": 120}
    lonely = [["a", *["-"] * 143]]  # seen once in a day, in the first ten minutes of an hour
    assert tables([lonely], Segments(6, 2, "all"), 1, GRID)[3:].sum() == 120 * GRID
    assert tables([lonely], Segments(6, 2, "pairs"), 1, GRID)[3:].sum() == GRID


def test_other_cuts_are_other_requests_and_bad_ones_are_refused():
    def request(**cut):
        terms = Terms(pf.PureDP(1))
        return ChainTransitions(terms, states=STATES, cut=Segments(3, 2, **cut)).request()

    assert request() == request() != request(share="pairs")
    assert request(share="all") != request(share="all", most=5)
    for cut, text in [
        ((1, 0), "segment must be a whole number from 2 to 1,000; got 1"),
        ((6, 0, "half"), "share must be one of 'segments', 'pairs', 'edges', 'all'; got 'half'"),
        ((6, 0, "all", 0), "most_segments must be a whole number from 1"),
    ]:
        with pytest.raises(pf.InputError, match=text):
            Segments(*cut)
    with pytest.raises(pf.InputError, match="may weigh 65,536 transitions at most"):
        ChainTransitions(Terms(pf.PureDP(1)), states=STATES, limit=60_000, cut=Segments(6, 2))


@pytest.mark.parametrize("null", [-1, 3])
def test_a_null_that_is_no_state_is_refused_before_anything_is_read(null):
    """Else a table is indexed beyond its end, for those sequences only that need filling up."""
    with pytest.raises(pf.InputError, match=f"null must be the number of a state; got {null}"):
        ChainTransitions(Terms(pf.PureDP(1)), states=STATES, cut=Segments(3, null))
