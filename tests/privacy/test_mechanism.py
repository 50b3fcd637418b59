"""What `release` refuses, and what its errors leave out. The promise itself: test_contract.py."""

import numpy as np
import pytest

import privfield as pf
from privfield.data.table import unit_of
from privfield.mechanisms.moments import moments
from privfield.mechanisms.moments.mechanism import SecondMoments

PEOPLE = pf.Schema({"a": ["no", "yes"], "b": ["no", "yes"]}, unit=pf.Person("id", rows=2))
VISITS = {"id": ["p", "p", "q"], "a": ["no", "yes", "no"], "b": ["yes", "yes", "no"]}


def test_people_are_never_released_as_rows(tmp_path):
    """The number of their rows would be shown, and a ledger would say "row"."""
    ledger = pf.Ledger(tmp_path / "l", pf.ZCDP(1))
    asked = {"schema": PEOPLE, "names": PEOPLE.names, "ledger": ledger}
    with pytest.raises(pf.InputError, match=r"unit must be the schema's, .* 'id'; got one row"):
        SecondMoments.measure(VISITS, pf.ZCDP(1), **asked)
    assert not ledger.charges()
    found = SecondMoments.measure(VISITS, pf.ZCDP(1), unit_of(PEOPLE), **asked)
    assert found.total is None and ledger.unit == "person (id)"


def test_a_lack_of_memory_does_not_say_how_many_rows_there_are(monkeypatch):
    def large(batches, variables):
        return np.empty((2**55, variables))  # no machine has that

    monkeypatch.setattr(moments, "sum_moments", large)
    with pytest.raises(MemoryError) as caught:
        SecondMoments.measure(np.ones((5, 2)), pf.ZCDP(1), names=("a", "b"), adjacency="add-remove")
    assert type(caught.value) is MemoryError and not vars(caught.value)
    title = "second moments of 2 variables with discrete-gaussian noise"
    assert str(caught.value) == f"{title}: there is not enough memory."
