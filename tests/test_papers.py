"""docs/papers: names exist, links lead somewhere, nothing of a paper is left out, commands work."""

import argparse
import importlib.util
import inspect
import json
import os
import re
import shlex
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
import scipy.signal

import privfield as pf

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "papers"
PAGES = {path.name: path.read_text() for path in sorted(FOLDER.glob("*.md"))}
SOURCES = (ROOT / "src" / "privfield", ROOT)

# what a reader with the paper in hand would look for
CONTENTS = {
    "zhang2020.md": [
        *(f"Algorithm {k}" for k in range(1, 6)),
        *("Lemma 2.14", "Lemma 2.15", "Lemma 3.3", "Corollary 3.4", "Lemma 4.4", "Lemma 4.5"),
        *("Lemma 4.6", "Lemma 6.1", "Corollaries 6.3 and 6.5", "Theorems 6.2 and 6.4"),
        *("Theorem 3.6", "Theorem 3.8", "Theorem 3.11", "Theorem 4.2", "Theorem 4.7"),
        *("Theorem 5.1", "Theorem 7.1", "Theorem 7.4", "Table 1", "PMW", "sepFEM"),
        *("Definition 2.1", "2.2 pairwise", "2.4 binary t-wise"),
        *("equation (1)", "equation (2)", "Theorems 1.2–1.7", "FEM, which ICML"),
    ],
    "bernstein2017.md": [
        *("Definitions 1–3", *(f"Proposition {k}" for k in range(1, 6))),
        *("Algorithm 1", "Algorithm 2", "Naive MLE", "PSGD", "random estimator"),
        *("Figure 1", "Figure 2", "Figure 3a", "Figure 3b", "wifi", "Erdős–Rényi"),
        *("model (1)", "likelihood (2)", "equation (3)", "equation (4)", "equations (5) and (7)"),
        *("problem (6)", "third-order chain", "non-private MLE", "output perturbation"),
    ],
    "prising2024.md": [
        *("Algorithm 1", "MPLE", "Theorem 3.1", "Theorem 3.2", "B.1", "Corollaries 3.1, 3.2"),
        *("Lemma A.1", "Lemma A.2", "Lemma A.3", "Lemma D.1", "HIV", "blogs"),
        *("Figure 1:", "Figures 2 and 3", "Figures 4 and 5", "Figures 6 and 9"),
        *("Figures 7 and 10", "Figures 8 and 11", "Figure 12", "Figure 13"),
        *("Definition 2.1", "model (1), H_n (2)", "(3)–(6)", "equation (7)", "(8) to (33)"),
    ],
}


def commands():
    """Every command on the pages, once."""
    found = []
    table = (ROOT / "docs" / "tutorials" / "4-checking-the-claims.md").read_text()
    for text in [*PAGES.values(), table]:
        found += re.findall(r"^    (python .+)$", text, re.MULTILINE)
        found += re.findall(r"`(python [^`]+)`", text)
    return sorted(set(found))


def slug(heading):
    """As the documentation names a heading."""
    return re.sub(r"[^\w\u4e00-\u9fff\- ]", "", heading.strip().lower().replace(" ", "-"))


def test_every_page_of_the_papers_is_in_the_contents_and_the_index():
    assert set(PAGES) == {"README.md", *CONTENTS}
    assert "papers/README" in (ROOT / "docs" / "index.md").read_text()
    assert "docs/papers/README.md" in (ROOT / "README.md").read_text()
    assert all(f"({name})" in PAGES["README.md"] for name in CONTENTS)


@pytest.mark.parametrize("page", CONTENTS)
def test_nothing_of_the_paper_is_left_out(page):
    assert [each for each in CONTENTS[page] if each not in PAGES[page]] == []


TEXTS = {  # extracted text, where it is at hand; Bernstein et al. count 1 to 5 only
    "zhang2020.md": "000_0a0e0aa5297c27c7.txt",
    "prising2024.md": "004_a450b0fd995ed2ea.txt",
}
KINDS = "Theorem|Lemma|Corollary|Definition|Proposition|Algorithm"
HEADED = rf"^[#*<b> ]*(?:{KINDS}) ((?:[A-Z]\.)?\d+(?:\.\d+)?)"


def numbers_on(text):
    """All numbers of a page, "2.6–2.8" being three."""
    found = set(re.findall(r"(?<![\w.])(?:[A-Z]\.)?\d+(?:\.\d+)?", text))
    for whole, first, last in re.findall(r"(?<![\w.])(\d+\.)?(\d+)–(?:\d+\.)?(\d+)", text):
        found |= {f"{whole}{k}" for k in range(int(first), int(last) + 1)}
    return found


def test_a_missing_number_is_found():
    assert {"2.6", "2.7", "2.8", "A.1", "7"} <= numbers_on("Lemmas 2.6–2.8, Lemma A.1 and 7")
    assert "2.9" not in numbers_on("Lemmas 2.6–2.8")


@pytest.mark.parametrize("page", TEXTS)
def test_every_numbered_statement_of_the_paper_is_on_its_page(page):
    path = ROOT.parent / "shared" / "papers" / TEXTS[page]
    if not path.exists():
        pytest.skip("the papers are not here")
    stated = set(re.findall(HEADED, path.read_text(), re.MULTILINE))
    assert len(stated) > 5
    assert sorted(stated - numbers_on(PAGES[page])) == []


@pytest.mark.parametrize("page", CONTENTS)
def test_every_file_and_name_on_a_page_exists(page):
    named = re.findall(r"`([\w/]+\.py): ([\w.]+)`", PAGES[page])
    assert len(named) >= 10
    for file, name in named:
        places = [base / file for base in SOURCES if (base / file).exists()]
        assert places, file
        for part in name.split("."):
            found = re.search(rf"^\s*(def|class) {part}\b", places[0].read_text(), re.MULTILINE)
            assert found, (file, name)


@pytest.mark.parametrize("page", CONTENTS)
def test_every_public_name_and_keyword_on_a_page_exists(page):
    """`pf.Name(..., keyword=...)`: the name is public, and takes the keyword or hands it on."""
    for name, inside in re.findall(r"`pf\.(\w+)(?:\(([^`]*)\))?", PAGES[page]):
        assert name in pf.PUBLIC, name
        takes = inspect.signature(getattr(pf, name)).parameters
        open_ended = any(each.kind is each.VAR_KEYWORD for each in takes.values())
        wanted = set(re.findall(r"(\w+)=", inside))
        assert open_ended or wanted <= {*takes}, (name, wanted - {*takes})


@pytest.mark.parametrize("page", PAGES)
def test_every_link_and_picture_of_a_page_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)]+)\)", PAGES[page]):
        file, _, anchor = target.partition("#")
        place = (FOLDER / file) if file else FOLDER / page
        assert place.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", place.read_text(), re.MULTILINE)
            assert anchor in [slug(each) for each in headings], target


@pytest.mark.parametrize(
    "path", sorted((ROOT / "docs" / "figures").rglob("*.json*")), ids=lambda path: path.name
)
def test_raw_results_hold_numbers_only(path):
    """No infinity and no NaN, which are no JSON and leave holes in a figure."""

    def refuse(name):
        raise AssertionError(name)

    text = path.read_text()
    for each in text.splitlines() if path.suffix == ".jsonl" else [text]:
        json.loads(each, parse_constant=refuse)


def run(command, monkeypatch, more=()):
    """Run a script in this process, as `python script arguments` would."""
    script, *arguments = shlex.split(command)[1:]
    path = ROOT / script
    monkeypatch.setattr(sys, "argv", [str(path), *arguments, *map(str, more)])
    monkeypatch.setattr(os, "execve", lambda *given: None)  # some start themselves anew
    monkeypatch.syspath_prepend(str(path.parent))
    spec = importlib.util.spec_from_file_location("__main__", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


PRISING = "python experiments/prising/figures.py"
PRISING_CHECK = "python experiments/prising/check.py"
BERNSTEIN = "python experiments/bernstein.py"
MOBILITY = "python experiments/mobility.py all"
CHAINS = "python experiments/chains.py figure"
PRISING_STUDIES = ("", " density beta --large 2000000")
BERNSTEIN_PARTS = [  # beside "fig2" and "printed"
    ("fig1", "figure1.png", "with nothing to tune"),
    ("fig3a", "figure3a.png", "| naive MLE |"),
    ("unfiltered", "unfiltered.png", "| er-0 |"),
    ("consistency", None, "| er-0 |"),
    ("psgd", None, None),
    ("why", None, "| steps × 1/10 |"),
]
SMALL = {  # each command of Zhang et al.'s page: what makes it small, what it draws and prints
    "python benchmarks/frank_wolfe.py": ("--quick", None, r"\| 1,000 \| 10 \| [\d.]+ \| "),
    "python benchmarks/ising.py accuracy": ("--quick", None, r"\| 1e\+03, 0.5 \| [\d.]+ ± "),
    "python benchmarks/ising.py growth --figure docs/figures/ising_error.png": (
        "--quick --figure {}/ising_error.png",
        "ising_error.png",
        r"\| 5 \| [\d,]+ \| [\d,]+ \|",
    ),
    "python benchmarks/parities.py": ("--quick --out {}", "parities.png", "triples, Algorithm 5"),
    "python benchmarks/parity_oracle.py heldout": ("--quick", None, r"\| 8 \| 300 \| \d+ \| "),
    "python benchmarks/structure.py": ("--quick", None, "n = [\\d,]+: [01] of 1 released"),
    "python experiments/recovery.py --repeats 10": ("--repeats 1", None, "1 repetitions each"),
    "python experiments/structure_growth.py": (
        "--quick --out {}",
        "structure_growth.png",
        r"\| triples \| 6 \| \d+ \| [\d,]+ \|",
    ),
}


def test_every_command_on_the_pages_is_run_to_its_end_by_a_test_below():
    done = {*SMALL, MOBILITY, CHAINS, *(PRISING_CHECK + each for each in PRISING_STUDIES)}
    done |= {f"{BERNSTEIN} {what}" for what in ("fig2", "printed", "all")}
    done |= {f"{BERNSTEIN} {what}" for what, *_ in BERNSTEIN_PARTS}
    left = {*commands()} - done
    assert {each.rsplit(" ", 1)[0] for each in left} == {PRISING}  # all of them by "all"
    assert done <= {*commands()}


def test_figures_of_prising_with_small_settings(tmp_path, monkeypatch, capsys):
    """Each, one after the other."""
    run(f"{PRISING} all", monkeypatch, ["--quick", "--out", tmp_path])
    drawn = [path for path in tmp_path.glob("*.png") if path.stat().st_size > 5_000]
    assert drawn
    for path in drawn:
        assert (ROOT / "docs" / "figures" / "prising" / path.name).exists()


def test_figure_2_of_bernstein_with_small_settings(tmp_path, monkeypatch, capsys):
    """Figure, table and raw results; a second run computes nothing anew."""
    command = f"{BERNSTEIN} fig2"
    run(command, monkeypatch, ["--quick", "--out", tmp_path])
    assert (tmp_path / "figure2.png").stat().st_size > 20_000
    first = capsys.readouterr()
    assert "CGM / naive" in first.out and "CGM chain3 1000 1 3 0.0" in first.err
    stored = (tmp_path / "results.json").read_text()
    found = json.loads(stored)
    assert found["about"]["command"].startswith("python experiments/bernstein.py")
    kl, took = found["fits"]["naive MLE"]["er-0 3000 1 3"]["0.0"]
    assert 0 < kl < 1 and took > 0
    run(command, monkeypatch, ["--quick", "--out", tmp_path])
    again = capsys.readouterr()
    assert again.out == first.out and again.err == ""
    assert (tmp_path / "results.json").read_text() == stored


@pytest.mark.parametrize(("what", "drawn", "told"), BERNSTEIN_PARTS)
def test_other_commands_of_bernstein_with_small_settings(
    what, drawn, told, tmp_path, monkeypatch, capsys
):
    """Each runs to its end, and leaves the figure, the table and the trials that it is for."""
    run(f"{BERNSTEIN} {what}", monkeypatch, ["--quick", "--out", tmp_path])
    assert drawn is None or (tmp_path / drawn).stat().st_size > 20_000
    assert told is None or told in capsys.readouterr().out
    if what == "psgd":
        (kl, took), *_ = json.loads((tmp_path / "results.json").read_text())["fits"]["PSGD"][
            "er-0 3000 1 3"
        ].values()
        assert 0 < kl < 10 and took > 0


@pytest.mark.parametrize(
    ("command", "once", "drawn", "told"),
    [
        (MOBILITY, "--runs", "figure3b.png", "| CPU-s of a fit |"),
        (CHAINS, "--trials", "chains.png", "over 1 releases"),
    ],
)
def test_chains_with_few_sessions(command, once, drawn, told, tmp_path, monkeypatch, capsys):
    if not (ROOT.parent / "shared" / "data" / "msnbc990928.zip").exists():
        pytest.skip("the MSNBC sequences are not there")
    run(command, monkeypatch, [once, "1", "--sessions", "300", "--out", tmp_path])
    assert (tmp_path / drawn).stat().st_size > 20_000
    assert told in capsys.readouterr().out


@pytest.mark.parametrize(("command", "data"), [(MOBILITY, "--data "), (CHAINS, "")])
def test_without_its_data_a_command_says_where_to_get_them(
    command, data, tmp_path, monkeypatch, capsys
):
    more = shlex.split(f"{data}{tmp_path}/none.zip --out {tmp_path}")
    with pytest.raises(SystemExit, match="2"):
        run(command, monkeypatch, more)
    assert "none.zip is not there: docs/papers/README.md says" in capsys.readouterr().err
    assert "msnbc990928.zip" in PAGES["README.md"] and "polblogs.gml" in PAGES["README.md"]
    assert not list(tmp_path.glob("*.png"))


def test_without_the_blogs_the_figure_of_the_networks_is_left_as_it_is(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "experiments"))
    monkeypatch.syspath_prepend(str(ROOT / "experiments" / "prising"))
    import figures
    from runs import Plan

    monkeypatch.setattr(figures, "finish", lambda *given: pytest.fail("drawn"))
    figures.networks(Plan(out=figures.FOLDER, blogs=False))


@pytest.mark.parametrize("command", SMALL, ids=lambda command: command.split()[1])
def test_commands_of_zhang_with_small_settings(command, tmp_path, monkeypatch, capsys):
    """To the end: the last row of the last table, and the figure, in a folder of its own.

    What goes on from kept results says the same again, though its noise is drawn afresh.
    """
    more, drawn, told = SMALL[command]
    run(command, monkeypatch, shlex.split(more.format(tmp_path)))
    first = capsys.readouterr().out
    assert re.search(told, first)
    assert drawn is None or (tmp_path / drawn).stat().st_size > 20_000
    if drawn in ("ising_error.png", "structure_growth.png"):
        kept = (tmp_path / drawn).with_suffix(".json")
        stored = kept.read_text()
        assert "seeds" in json.loads(stored)["about"]
        run(command, monkeypatch, shlex.split(more.format(tmp_path)))
        assert capsys.readouterr() == (first, "") and kept.read_text() == stored


@pytest.mark.parametrize("studies", PRISING_STUDIES)
def test_the_comparison_with_the_authors_on_small_networks(studies, tmp_path, monkeypatch, capsys):
    """Copies are kept where they are told to; compared, where the authors' files are here."""
    small = ["--quick", "--out", tmp_path]
    run(PRISING_CHECK + studies, monkeypatch, small)
    lines = [json.loads(line) for line in (tmp_path / "check.jsonl").read_text().splitlines()]
    found = {(line["study"], line["network"]): line["cells"] for line in lines}
    assert ("density", "α = 0.9") in found and (("size", "n = 100") in found) == (not studies)
    mean, deviation, _ = found["density", "α = 0.9"]["0.5"]["5"]
    assert np.isfinite(mean) and deviation > 0
    assert ("| density | " in capsys.readouterr().out) == THEIRS.exists()


def test_the_papers_own_em_is_stopped_where_it_is_best(tmp_path, monkeypatch, capsys):
    """No number of rounds up to 30, by the public name, is closer; most are farther."""
    run(f"{BERNSTEIN} printed", monkeypatch, ["--quick", "--out", tmp_path])
    found = json.loads((tmp_path / "results.json").read_text())["fits"]["CGM, printed"]
    (kept, _), *others = found["er-0 3000 1 3"].values()
    assert not others
    from bernstein_setting import Cell

    cell = Cell("er-0", 3_000, 1.0, levels=3)
    given = cell.measured()
    looked = {k: pf.estimate(given, "cgm", iterations=k) for k in (1, 4, 9, 13, 19, 28)}
    kl = {k: cell.truth.kl_divergence(model) for k, model in looked.items()}
    assert kept <= 1.001 * min(kl.values()) and kept < kl[1] / 2


@pytest.mark.parametrize("spread", [0.1, 1.0, 10.0])
def test_information_of_laplace_noise_on_a_normal_count(spread):
    """Between 1/(variance + b²), the bound, and 1/(variance + 2b²), that of normal noise; b = 1."""
    x = np.linspace(-80, 80, 160_001)
    step = x[1] - x[0]
    normal = np.exp(-(x**2) / 2 / spread**2)
    kernel = np.exp(-np.abs(x)) / 2
    density = scipy.signal.fftconvolve(normal / normal.sum(), kernel, "same")
    slope = np.gradient(density, step)
    held = density > 1e-12
    found = (slope[held] ** 2 / density[held]).sum() * step
    assert 1 / (spread**2 + 2) < found < 1 / (spread**2 + 1)


SMALL_RUNS = [  # script, what makes it small, folder below docs/figures
    ("bernstein.py", ["fig1", "--quick"], "bernstein"),
    ("prising/figures.py", ["beta", "--quick"], "prising"),
    ("prising/check.py", ["--quick"], "prising"),
    ("mobility.py", ["all", "--sessions", "300"], "bernstein"),
    ("chains.py", ["figure", "--sessions", "300"], ""),
    ("structure_growth.py", ["--quick"], ""),
]


class Placed(Exception):
    """The command knows where its results would go."""


@pytest.mark.parametrize(("script", "small", "page"), SMALL_RUNS, ids=lambda each: str(each))
def test_small_settings_never_write_over_the_figures(
    script, small, page, tmp_path, monkeypatch, capsys
):
    """Without --out a new folder, with the page's own folder a refusal; the page otherwise."""
    monkeypatch.syspath_prepend(str(ROOT / "experiments"))
    import small_runs

    def placed(*given):
        raise Placed(real(*given))

    real = small_runs.folder_for
    monkeypatch.setattr(small_runs, "folder_for", placed)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = ROOT / "docs" / "figures" / page
    command = f"python experiments/{script}"
    with pytest.raises(Placed) as caught:
        run(command, monkeypatch, small)
    (found,) = caught.value.args
    assert found.parent == tmp_path and found.is_dir() and str(found) in capsys.readouterr().err
    with pytest.raises(SystemExit):
        run(command, monkeypatch, [*small, "--out", folder])
    assert "--out" in capsys.readouterr().err
    whole = [each for each in small if each not in ("--quick", "--sessions", "300")]
    with pytest.raises(Placed) as caught:
        run(command, monkeypatch, whole)
    assert caught.value.args == (folder,)


def test_the_small_figure_of_ising_models_is_not_that_of_the_page(monkeypatch, capsys):
    command = "python benchmarks/ising.py growth --figure docs/figures/ising_error.png"
    monkeypatch.chdir(ROOT)
    with pytest.raises(SystemExit):
        run(command, monkeypatch, ["--quick"])
    assert "--figure" in capsys.readouterr().err


class Accepted(Exception):
    """The command line was understood."""


@pytest.mark.parametrize("command", commands())
def test_commands_are_understood_as_they_stand(command, monkeypatch):
    """Without what makes them small, up to the point where they would begin."""

    def parsed(self, args=None, namespace=None):
        real(self, args, namespace)
        raise Accepted

    real = argparse.ArgumentParser.parse_args
    text = (ROOT / shlex.split(command)[1]).read_text()
    if "ArgumentParser" not in text:  # a script that takes no options
        assert len(shlex.split(command)) == 2
        compile(text, command, "exec")
        return
    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parsed)
    with pytest.raises(Accepted):
        run(command, monkeypatch)


def test_algorithm_1_of_prising_with_both_promises_is_on_its_page():
    """The table by δ, from the kept results of Figure 12."""
    lines = (ROOT / "docs" / "figures" / "prising" / "epsilon.jsonl").read_text().splitlines()
    kept = [each for each in map(json.loads, lines) if each["network"] == "ER"]
    for beta in (0.5, 1.5):
        (found,) = [each for each in kept if (each["beta"], each["epsilon"]) == (beta, 5)]
        row = re.search(rf"^\| {beta} \|.*\|$", PAGES["prising2024.md"], re.MULTILINE)[0]
        cells = [cell.strip().split(", ") for cell in row.split("|")[2:-1]]
        for cell, method in zip(cells, ("mple", "gaussian", "laplace", "ours"), strict=True):
            shown = [float(each) for each in cell if each != "the same"]
            mse = [found["methods"][method][how][2] for how in ("line", "clipped")]
            assert shown == pytest.approx(mse[: len(shown)], rel=0.03)
            assert len(shown) == 2 or mse[0] == mse[1]


# -- PrIsing as printed against its authors ----------------------------------------------------


THEIRS = ROOT.parent / "shared" / "data" / "prising"


@pytest.fixture(scope="module")
def compared():
    """Kept copies of the authors' settings beside the authors' numbers."""
    if not THEIRS.exists():
        pytest.skip("the authors' result files are not here")
    sys.path.insert(0, str(ROOT / "experiments" / "prising"))
    try:
        import check
    finally:
        sys.path.pop(0)
    found = {}
    for key, value, mine, p in check.compare(check.kept(), THEIRS):
        found.setdefault(key[0], []).append((value, mine, p))
    return found


PUBLIC_STUDIES = ("size", "density", "epsilon", "beta", "blogs", "blogs-epsilon", "blogs-around")


@pytest.mark.parametrize("study", PUBLIC_STUDIES)
def test_as_printed_agrees_with_the_authors_files(compared, study):
    """Both sides are stored, so nothing alarms by chance.

    Roots cut off at 0, or set to a bound where they are negative, would change the errors at
    β = 0.5 by factors of 2 and more.
    """
    values, mine, ps = np.array(compared[study]).T
    assert (ps < 0.01).mean() <= 0.05 and ps.min() > 1e-5
    assert abs(np.median(values / mine) - 1) < 0.05
