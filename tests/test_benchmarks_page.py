"""docs/benchmarks.md is what benchmarks/page.py makes of stored results."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parent.parent
WORDS = """# Title on {machines}

## One

Opening.

<!-- first: python a.py -->
Before.

{tables}

After.

<!-- second: python b.py -->
{tables}

## Two

<!-- third: python c.py -->
{tables}
"""


@pytest.fixture(scope="module")
def maker():
    return SimpleNamespace(**runpy.run_path(str(ROOT / "benchmarks" / "page.py")))


def test_the_page_is_made_of_stored_results(maker):
    made = maker.page(maker.WORDS.read_text(), maker.RESULTS)
    assert maker.PAGE.read_text() == made, "run: python benchmarks/page.py"


def test_every_result_is_one_of_the_page_and_its_command_exists(maker):
    parts = [p for _, parts in maker.sections(maker.WORDS.read_text()) for p in parts]
    assert {path.stem for path in maker.RESULTS.glob("*.md")} <= {part.name for part in parts}
    for part in parts:
        (script,) = [word for word in part.command.split() if word.endswith(".py")]
        assert (ROOT / script).exists()


def test_what_was_not_run_is_not_shown(maker, tmp_path):
    stamp = "date: 2026-01-02\ncode: abc1234\nmachine: a lamp\nload: 0.1\ncommand: python b.py\n"
    (tmp_path / "second.md").write_text(f"{stamp}\n| a |\n|---|\n| 1 |\n")
    (tmp_path / "third.md").write_text(f"{stamp}\nof another command\n")
    assert maker.page(WORDS, tmp_path) == (
        "# Title on a lamp\n\n## One\n\nOpening.\n\n    python b.py\n\n"
        "*2026-01-02, code of abc1234, load at the start: 0.1.*\n\n| a |\n|---|\n| 1 |\n\n"
    )


def test_a_run_keeps_what_was_printed_and_nothing_of_a_failure(maker, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import os, sys; print('| found |', os.environ['A_B']); sys.exit(len(sys.argv) - 1)"
    )
    maker.run(maker.Part("good", f"A_B=7 python {script}", "{tables}"), tmp_path / "kept")
    kept = (tmp_path / "kept" / "good.md").read_text()
    assert kept.endswith(f"command: A_B=7 python {script}\n\n| found | 7\n")
    with pytest.raises(SystemExit, match="ended with 1"):
        maker.run(maker.Part("bad", f"A_B=7 python {script} x", "{tables}"), tmp_path / "kept")
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["good.md"]


def test_lines_of_prose_are_wrapped_and_nothing_else(maker):
    long = "word " * 40 + "end."
    table = "| a | b |\n|---|---|\n| " + "x" * 200 + " | 1 |"
    text = f"# {long}\n\n{long}\n\n{table}\n\n    {long}\n\n* {long}\n"
    found = maker.wrapped(text).split("\n\n")
    assert found[0] == f"# {long}" and found[2:] == [table, f"    {long}", f"* {long}\n"]
    lines = found[1].split("\n")
    assert " ".join(lines) == long and 100 < max(map(len, lines)) <= 120
