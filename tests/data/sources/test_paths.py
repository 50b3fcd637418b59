"""Names that were mistyped: only what is near is suggested."""

import pytest

from privfield.data.sources.paths import nearby

FILES = ("latin.csv", "quote.csv", "symptoms.csv", "symptoms.toml", "tab.tsv", "visits.csv.gz")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("latn.csv", "latin.csv"),
        ("LATIN.csv", "latin.csv"),
        ("symptom.csv", "symptoms.csv"),
        ("symptoms", "symptoms.csv"),
        ("symptoms.tml", "symptoms.toml"),
        ("symtpoms.csv", "symptoms.csv"),
        ("tab.csv", "tab.tsv"),
        ("visit.csv", "visits.csv.gz"),
        ("missing.csv", None),  # all have their ending in common
        ("nothere.csv", None),
        ("latin.toml", None),
        ("symptoms.parquet", None),
        ("s.csv", None),
    ],
)
def test_only_what_is_near(tmp_path, typed, meant):
    for name in FILES:
        (tmp_path / name).write_text("")
    said = "" if meant is None else f" Did you mean {str(tmp_path / meant)!r}?"
    assert nearby(str(tmp_path / typed)) == said


def test_where_nothing_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert nearby("a.csv") == ""
    assert nearby("none/a.csv") == " There is no folder 'none' either."
