"""The code of every guide and tutorial runs from top to bottom."""

import re
import shutil
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
GUIDES = sorted(
    [*(DOCS / "guide").glob("*.md"), *(DOCS / "tutorials").glob("*.md"), DOCS / "start-here.md"]
)


ON_SPARK = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java 17"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet:FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def marked(guide):
    return pytest.param(guide, marks=ON_SPARK if "pyspark" in guide.read_text() else ())


@pytest.mark.parametrize("guide", list(map(marked, GUIDES)), ids=lambda path: path.stem)
def test_the_code_of_a_guide_runs(guide, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", guide.read_text(), re.DOTALL)
    if not blocks:
        assert "literalinclude" in guide.read_text()  # its code is a script; test_readme runs it
    exec(compile("\n".join(blocks), guide.name, "exec"), {})


def test_there_are_guides():
    assert GUIDES
