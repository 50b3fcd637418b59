"""The code of every guide runs from top to bottom."""

import re
from pathlib import Path

import pytest

GUIDES = sorted((Path(__file__).parents[1] / "docs" / "guide").glob("*.md"))


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_the_code_of_a_guide_runs(guide, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", guide.read_text(), re.DOTALL)
    assert blocks
    exec(compile("\n".join(blocks), guide.name, "exec"), {})


def test_there_are_guides():
    assert GUIDES
