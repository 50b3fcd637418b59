"""The page docs/privacy/attacks.md, of which each script writes its own section."""

import datetime
import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "privacy" / "attacks.md"


def write_section(name: str, text: str) -> None:
    """Put the text between the marks of that name."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    page = PAGE.read_text()
    pattern = re.escape(begin) + ".*?" + re.escape(end)
    today = datetime.datetime.now(datetime.UTC).date()
    dated = text.rstrip("\n").replace("TODAY", str(today))
    found, count = re.subn(pattern, lambda _: f"{begin}{dated}\n{end}", page, flags=re.DOTALL)
    if count != 1:
        raise SystemExit(f"{PAGE} has no section {name!r}.")
    PAGE.write_text(found)


def table(heads: list[str], rows: list[list[object]]) -> str:
    """Markdown."""
    lines = [heads, ["---"] * len(heads), *([str(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
