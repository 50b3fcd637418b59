"""Tests of what users are told: calls that are refused, each with words of its error."""

import pytest

import privfield as pf


def told_by(mistakes):
    """A test for each (call, words), in an empty folder."""

    @pytest.mark.parametrize(("call", "told"), mistakes, ids=[told for _, told in mistakes])
    def test(tmp_path, monkeypatch, call, told):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(pf.InputError) as error:
            call()
        assert told in str(error.value), f"{error.value} does not say {told!r}"

    return test
