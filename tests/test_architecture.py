"""docs/architecture.md names files and functions that exist, and every room."""

import re
from pathlib import Path

import privfield

ROOT = Path(privfield.__file__).parent
PAGE = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text()


def test_every_file_and_function_of_the_walk_exists():
    steps = re.findall(r"`([\w/]+\.py): ([\w.]+)`", PAGE)
    assert len(steps) >= 15
    for file, name in steps:
        text = (ROOT / file).read_text()
        for part in name.split("."):
            assert re.search(rf"^\s*(def|class) {part}\b", text, re.MULTILINE), (file, name)


def test_every_room_is_on_the_page():
    rooms = [path.name for path in ROOT.iterdir() if path.is_dir() and path.name[0] != "_"]
    assert [room for room in rooms if f"{room}/" not in PAGE] == []
    families = [path.name for path in (ROOT / "mechanisms").iterdir() if path.is_dir()]
    assert [each for each in families if each[0] != "_" and f"{each}/" not in PAGE] == []
