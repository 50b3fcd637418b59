"""What R makes of an exported model; R itself where it is installed, with qgraph."""

import csv
import shutil
import subprocess

import numpy as np
import pytest

import privfield as pf
from privfield.cli import main
from privfield.models.r_export import write_jasp, write_r

NAMES = ("low mood", 'he said "no"\\', "Müde 😴", "worry")
WEIGHTS = np.array([[0, 0.5, 0, 0.2], [0.5, 0, -0.3, 0], [0, -0.3, 0, 0.4], [0.2, 0, 0.4, 0]])
FIELD = np.array([0.1, -0.2, 0.3, 0.0])


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    """What the command line writes of a model without a law."""
    folder = tmp_path_factory.mktemp("r")
    pf.IsingModel(WEIGHTS, FIELD, NAMES).save(folder / "m.pf")
    assert main(["export", str(folder / "m.pf"), "--to", "r", "-o", str(folder / "m.R")]) == 0
    return folder / "m.R"


def test_the_script_is_plain_ascii_and_escapes_names(script):
    text = script.read_bytes().decode("ascii")
    assert '"he said \\"no\\"\\\\"' in text and '"M\\U000000fcde \\U0001f634"' in text
    assert "low <- square(c(NA, NA" in text  # nothing is known of a model that came from nowhere


def test_infinite_ends_and_gaps(tmp_path):
    model = pf.MarkovRandomField(pf.Schema({"a": 3, "b": 2}), [("a", "b")], [np.zeros((3, 2))])
    ends = [[None, float("-inf")], [float("inf"), float("nan")]]
    matrices = dict.fromkeys(("weights", "estimate", "low", "high"), ends)
    write_r(model, tmp_path / "m.R", matrices, [[None, "clear"]] * 2, {}, False)
    text = (tmp_path / "m.R").read_text()
    assert "high <- square(c(NA, -Inf, Inf, NA))" in text
    assert "thresholds <- NULL" in text and "groups <- NULL" in text and "signed = FALSE" in text


def test_items_tell_their_scores_and_spread(tmp_path):
    """Turned scores too; spreads of independent items by hand: shares ½, ½, 0 and 1/k each."""
    schema = pf.Schema({"a": pf.Ordered([1, 2, 3]), "b": pf.Ordered([1, 2, 3, 4])})
    thresholds = [np.array([0.0, 0.0, -800.0]), np.zeros(4)]
    scores = [np.array([-1.0, 0.0, 1.0]), np.linspace(1, -1, 4)]
    pf.OrdinalModel(schema, np.zeros((2, 2)), thresholds, scores).save(tmp_path / "m.pf")
    assert main(["export", str(tmp_path / "m.pf"), "--to", "r", "-o", str(tmp_path / "m.R")]) == 0
    text = (tmp_path / "m.R").read_text()
    assert "scores <- list(c(-1.0, 0.0, 1.0), c(1.0, 0.33" in text and "yes/no" not in text
    line = next(line for line in text.splitlines() if line.startswith("spread <- c("))
    found = [float(x) for x in line.removeprefix("spread <- c(").rstrip(")").split(", ")]
    assert found == pytest.approx([0.5, np.sqrt(5) / 3])
    many = pf.Schema({f"x{i}": pf.Ordered(range(6)) for i in range(25)})
    pf.OrdinalModel(many, 0.01 * (1 - np.eye(25))).save(tmp_path / "l.pf")
    assert main(["export", str(tmp_path / "l.pf"), "--to", "r", "-o", str(tmp_path / "l.R")]) == 0
    assert "spread <- NULL" in (tmp_path / "l.R").read_text()


def test_what_three_variables_say_together(tmp_path, capsys):
    """A matrix cannot hold it; where pairs are written, a note says whose weight is a mean."""
    table = np.array([[[1, 0], [0, 1]], [[0, 1], [1, 2]]], float)
    schema = pf.Schema({name: ["no", "yes"] for name in "abcd"})
    pf.MarkovRandomField(schema, [("a", "b", "c")], [table]).save(tmp_path / "m.pf")

    def export(to, name):
        return main(["export", str(tmp_path / "m.pf"), "--to", to, "-o", str(tmp_path / name)])

    assert export("qgraph", "m.csv") == 2 and not (tmp_path / "m.csv").exists()
    told = " ".join(capsys.readouterr().err.split())
    assert "no place for what three variables or more have to say together (a × b × c)" in told
    for to, name in (("r", "m.R"), ("graphml", "m.graphml"), ("json", "m.json")):
        assert export(to, name) == 0
        assert "Three or more variables interact" in (tmp_path / name).read_text()
    text = (tmp_path / "m.R").read_text()
    assert "NULL: three variables interact" in text
    found = text.split("weights <- square(c(")[1].split("))")[0].split(", ")
    halves = [
        np.log(np.exp(half[0, 0] + half[1, 1] - half[0, 1] - half[1, 0])) / 4 for half in table
    ]
    assert float(found[6]) == pytest.approx(np.mean(halves))  # of b and c, at each level of a


def has_qgraph():
    if shutil.which("Rscript") is None:
        return False
    question = 'quit(status = !requireNamespace("qgraph", quietly = TRUE))'
    return subprocess.run(["Rscript", "-e", question], capture_output=True).returncode == 0


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed")
def test_r_reads_it_and_qgraph_agrees_on_centrality(script, tmp_path):
    if not has_qgraph():
        pytest.skip("R has no qgraph")
    program = f"""
    source({str(script)!r}, encoding = "UTF-8")
    stopifnot(inherits(graph, "qgraph"), inherits(network, "bootnetResult"), network$nNode == 4)
    write.csv(weights, "weights.csv", fileEncoding = "UTF-8")
    found <- qgraph::centrality_auto(weights)$node.centrality
    write.csv(cbind(found, thresholds), "found.csv", row.names = FALSE)
    pdf("plot.pdf"); plot(graph); dev.off()
    """
    done = subprocess.run(
        ["Rscript", "-e", program], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    with open(tmp_path / "weights.csv", encoding="utf-8") as file:
        _, *rows = csv.reader(file)
    assert np.allclose(np.array(rows)[:, 1:].astype(float), WEIGHTS)
    with open(tmp_path / "found.csv") as file:
        found = list(csv.DictReader(file))
    ours = pf.IsingModel(WEIGHTS, FIELD).centrality()
    for theirs, own, field in zip(found, ours, FIELD, strict=True):
        assert float(theirs["Strength"]) == pytest.approx(own.strength.estimate)
        assert float(theirs["Closeness"]) == pytest.approx(own.closeness.estimate)
        assert float(theirs["Betweenness"]) == own.betweenness.estimate
        assert float(theirs["ExpectedInfluence"]) == pytest.approx(own.expected_influence.estimate)
        assert float(theirs["thresholds"]) == pytest.approx(field)
    assert (tmp_path / "plot.pdf").stat().st_size > 1000


def test_jasp_gets_people(tmp_path):
    """JASP's network module reads rows, not weights: ordered levels as numbers, others by name."""
    schema = pf.Schema({"A1": pf.Ordered(["never", "so so", "often"]), "city": ["x", "y", "z"]})
    table = np.log([[0.3, 0.1, 0.1], [0.1, 0.1, 0.05], [0.05, 0.1, 0.1]])
    model = pf.MarkovRandomField(schema, [("A1", "city")], [table])
    write_jasp(model, tmp_path / "people.csv", 1000, "balanced")
    with open(tmp_path / "people.csv") as file:
        header, *rows = csv.reader(file)
    assert header == ["A1", "city"] and len(rows) == 1000
    counts = [[sum(row == [a, c] for row in rows) for c in "xyz"] for a in "012"]
    assert np.abs(np.array(counts) / 1000 - np.exp(table)).max() < 0.01  # balanced: within 10 rows
    scales = pf.Schema({"A1": pf.Ordered([1, 2, 3]), "age": pf.Bins([0, 18, 65])})
    write_jasp(pf.MarkovRandomField(scales, [], []), tmp_path / "scales.csv", 100, "balanced")
    with open(tmp_path / "scales.csv") as file:
        numbers = [set(column) for column in zip(*csv.reader(file), strict=True)]
    assert numbers == [{"A1", "1", "2", "3"}, {"age", "0", "1"}]
    pf.IsingModel(WEIGHTS, FIELD, NAMES).save(tmp_path / "m.pf")
    target = tmp_path / "m.csv"
    assert main(["export", str(tmp_path / "m.pf"), "--to", "jasp", "-o", str(target)]) == 0
    with open(target, encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert tuple(header) == NAMES and len(rows) == 10_000
    assert {cell for row in rows for cell in row} == {"0", "1"}
