"""The pages keep their form: parts of a proof, sentences one can read, tests that exist."""

import re
from pathlib import Path

import pytest

from privfield.mechanisms.registry import MECHANISMS

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    page
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")]
    if "_build" not in page.parts
)
LONGEST = 60  # words
PARTS = ["Claim", "Neighbours", "Cost", "Proof", "The test that would fail"]
PROOFS = {kind.page for kind in MECHANISMS} | {
    "additive-noise.md",
    "coins.md",
    "composition.md",
    "mechanisms.md",
    "people.md",
    "selection.md",
    "spark.md",
}

# "Bun & Steinke (2016)", "Xiao et al. 2023", "Wilson's (1927)", "Mironov 2012"
CITED = re.compile(
    r"\b([A-Z][\w-]+)(?:'s)?(?:, [A-Z][\w-]+)*(?: et al\.|,? (?:&|and) [A-Z][\w-]+)?"
    r",? \(?((?:19|20)\d\d)\b(?!-\d|\.\d)"
)
NO_AUTHORS = re.compile(r",? ?\b(?:AISTATS|ICML|PrIsing|December|March) (?=\d)")

# a full stop ends a sentence; a colon does before a capital letter, code, bold type or a link
ENDS = re.compile(r"(?<=[.!?])[\"')*]*\s+|(?<=:)\s+(?=[A-Z`*\[])")


def sentences(text):
    """Those of prose and lists; code, tables and comments are none."""
    text = re.sub(r"```.*?```|<!--.*?-->", "", text, flags=re.DOTALL)
    for paragraph in re.split(r"\n\s*\n", text):
        if not paragraph.startswith("    ") and not paragraph.lstrip().startswith("|"):
            for item in re.split(r"\n(?=\s*(?:[*-]|\d+\.) )", paragraph):
                yield from ENDS.split(item)


def test_a_long_sentence_is_found():
    long = "word " * LONGEST + "word."
    found = [len(each.split()) for each in sentences(f"Short. {long}\n\n* one\n* two: Three")]
    assert found == [1, LONGEST + 1, 2, 2, 1]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_sentence_is_too_long_to_read(page):
    long = [each[:80] for each in sentences(page.read_text()) if len(each.split()) > LONGEST]
    assert long == []


def test_no_line_of_prose_or_of_a_formula_starts_a_list_by_accident():
    """Markdown reads "+ x" at the start of a line as an item; ours start with * or -."""
    found = {}
    for page in PAGES:
        text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
        found[page.relative_to(ROOT)] = re.findall(r"^ {0,3}\+ .*", text, re.MULTILINE)
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize("page", sorted(PROOFS))
def test_a_proof_has_its_parts_in_order(page):
    text = (ROOT / "docs" / "privacy" / page).read_text()
    parts = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert [part for part in parts if part in PARTS] == PARTS


def test_tests_that_pages_name_exist():
    texts = {
        path.relative_to(ROOT).as_posix(): path.read_text()
        for path in ROOT.glob("tests/**/test_*.py")
    }
    everything = "\n".join(texts.values())
    for page in PAGES:
        text = page.read_text()
        for path in re.findall(r"\btests/[\w/]+\.py\b", text):
            assert (ROOT / path).exists(), (page.name, path)
        for file in re.findall(r"\btest_\w+\.py\b", text):
            assert any(path.endswith(f"/{file}") for path in texts), (page.name, file)
        for test in re.findall(r"`(?:tests/[\w/]+\.py::)?(test_\w+)`", text):
            assert f"def {test}(" in everything, (page.name, test)


def cited(text):
    """First authors with years, wherever lines end."""
    text = re.sub(r"\s*\n[ #]*", " ", text)
    return set(CITED.findall(NO_AUTHORS.sub(" in ", text)))


def test_every_paper_that_is_cited_has_its_entry():
    page = (ROOT / "docs" / "references.md").read_text()
    keys = re.findall(r"^\* \*\*(.+?)\.\*\*", page.replace("\n  ", " "), re.MULTILINE)
    known = {found for key in keys for found in cited(key)}
    assert len(keys) > 50 and all(map(cited, keys))  # the keys are citations themselves
    pages = [each for each in PAGES if each.name != "references.md"]
    sources = [*pages, *ROOT.glob("src/privfield/**/*.py")]
    missing = {
        (*paper, source.name) for source in sources for paper in cited(source.read_text()) - known
    }
    assert missing == set()


def test_every_entry_says_what_is_used_from_it():
    page = (ROOT / "docs" / "references.md").read_text().replace("\n  ", " ")
    entries = re.findall(r"^\* .*$", page, re.MULTILINE)
    short = [each[:40] for each in entries if not re.search(r", \*[A-Z].+\*, .+ Used: ", each)]
    assert entries and short == []


def test_every_command_is_on_its_page():
    """The command has the name of its file."""
    text = (ROOT / "docs/reference/command-line.md").read_text()
    folder = ROOT / "src/privfield/cli/commands"
    commands = [file.stem for file in folder.glob("*.py") if "\nHELP = " in file.read_text()]
    assert len(commands) > 12
    assert [name for name in commands if f"`privfield {name}" not in text] == []
