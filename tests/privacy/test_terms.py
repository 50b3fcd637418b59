"""Terms are checked once, with one wording."""

import pytest

import privfield as pf
from privfield.privacy.adjacency import Unit
from privfield.privacy.terms import Terms


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"budget": None}, r"budget must be pf\.PureDP, pf\.ZCDP or pf\.ApproxDP"),
        ({"budget": 1.0}, "budget must be"),
        ({"adjacency": "other"}, "adjacency must be one of"),
        ({"insecure_seed": -1}, "insecure_seed must be a whole number from 0; got -1"),
        ({"insecure_seed": True}, "insecure_seed must be"),
        ({"progress": 3}, "progress must be a function; got int"),
        ({"job": "x"}, "job needs a ledger"),
        ({"ledger": "l.json"}, r"ledger must be a pf\.Ledger; got str"),
    ],
)
def test_bad_terms_are_refused_by_name(change, text):
    with pytest.raises(pf.InputError, match=text):
        Terms(**{"budget": pf.ZCDP(0.1), **change})


def test_what_protects_nobody_is_never_charged(tmp_path):
    ledger = pf.Ledger(tmp_path / "l", total=pf.ZCDP(1), adjacency="replace-one")
    with pytest.raises(pf.InputError, match="NON_PRIVATE cannot be charged"):
        Terms(pf.NON_PRIVATE, ledger=ledger)


def test_what_follows_from_the_terms():
    assert Terms(pf.PureDP(1)).is_pure and Terms(pf.ApproxDP(1, 0)).is_pure
    assert not Terms(pf.ZCDP(1)).is_pure and not Terms(pf.NON_PRIVATE).is_private
    assert Terms(pf.ZCDP(1)).rows_are_public
    assert not Terms(pf.ZCDP(1), "add-remove").rows_are_public
    assert not Terms(pf.ZCDP(1), unit=Unit("person", "id")).rows_are_public
    assert Terms(pf.ZCDP(1)).stamp is None
    assert "repeatable" in Terms(pf.ZCDP(1), insecure_seed=0).stamp
    assert "no noise" in Terms(pf.NON_PRIVATE).stamp
