"""What other programs read back."""

import csv

import networkx as nx
import numpy as np
import pytest

import privfield as pf
from privfield.models.export import to_pgmpy, write_graphml, write_qgraph, write_uai

ISING = pf.IsingModel(
    [[0, 0.5, 0], [0.5, 0, -0.25], [0, -0.25, 0]], [0.1, 0, -1], names=["low mood", "b", "c"]
)


def test_graphml_reads_back(tmp_path):
    write_graphml(ISING, tmp_path / "g.graphml")
    graph = nx.read_graphml(tmp_path / "g.graphml")
    assert graph.edges["low mood", "b"]["weight"] == 0.5
    assert graph.nodes["c"]["field"] == -1
    network = pf.NetworkIsing([[0, 0.5], [0.5, 0]], beta=0.7, field=0.1)
    write_graphml(network, tmp_path / "n.graphml")
    assert nx.read_graphml(tmp_path / "n.graphml").graph["beta"] == 0.7
    assert list(graph.nodes(data=True)) == list(ISING.graph().nodes(data=True))
    assert nx.utils.edges_equal(graph.edges(data=True), ISING.graph().edges(data=True))


def test_uai_has_the_same_distribution(tmp_path):
    """Read back by a reader of our own, following the format's description."""
    schema = pf.Schema({"a": 2, "b": 3, "c": 1})
    tables = [np.array([[0.1, -np.inf, 2], [700.0, 1, 1]]), np.array([1.0, 2, 3])]
    model = pf.MarkovRandomField(schema, [("a", "b"), ("b",)], tables)
    write_uai(model, tmp_path / "m.uai")
    tokens = iter((tmp_path / "m.uai").read_text().split())
    assert next(tokens) == "MARKOV"
    shape = [int(next(tokens)) for _ in range(int(next(tokens)))]
    scopes = [
        [int(next(tokens)) for _ in range(int(next(tokens)))] for _ in range(int(next(tokens)))
    ]
    joint = np.ones(shape)
    for scope in scopes:
        values = np.array([float(next(tokens)) for _ in range(int(next(tokens)))])
        table = values.reshape([shape[i] for i in scope])
        order = np.argsort(scope)
        spread = [shape[i] if i in scope else 1 for i in range(len(shape))]
        joint = joint * np.transpose(table, order).reshape(spread)
    assert next(tokens, None) is None
    np.testing.assert_allclose(joint / joint.sum(), model.marginal(["a", "b", "c"]), atol=1e-12)


def test_uai_never_makes_the_unlikely_impossible(tmp_path):
    schema = pf.Schema({"a": 2, "b": 2})
    cliques = [("a",), ("a", "b")]
    even = pf.MarkovRandomField(schema, cliques, [[0, -1e4], [[-1e4, -1e4], [0, 0]]])
    write_uai(even, tmp_path / "even.uai")  # the large parts cancel
    values = (tmp_path / "even.uai").read_text().split()[-4:]
    assert [float(v) for v in values] == [1, 1, 1, 1]
    steep = pf.MarkovRandomField(schema, [("a", "b")], [[[0, -1e4], [-1e4, 0]]])
    with pytest.raises(pf.InputError, match="unlikely into what is impossible"):
        write_uai(steep, tmp_path / "steep.uai")
    assert not (tmp_path / "steep.uai").exists()


def test_qgraph_files(tmp_path):
    write_qgraph(ISING.to_mrf(), tmp_path / "w.csv", tmp_path / "t.csv")
    rows = list(csv.reader((tmp_path / "w.csv").read_text().splitlines()))
    assert rows[0] == ["", "low mood", "b", "c"]
    assert [row[0] for row in rows[1:]] == ["low mood", "b", "c"]
    np.testing.assert_allclose([[float(v) for v in row[1:]] for row in rows[1:]], ISING.weights)
    rows = list(csv.reader((tmp_path / "t.csv").read_text().splitlines()))
    assert rows[0] == ["variable", "threshold"]
    np.testing.assert_allclose([float(row[1]) for row in rows[1:]], ISING.field)


def test_qgraph_needs_a_binary_pairwise_model_and_leaves_no_half(tmp_path):
    model = pf.MarkovRandomField(pf.Schema({"a": 3}), [], [])
    with pytest.raises(pf.InputError, match="two levels"):
        write_qgraph(model, tmp_path / "w.csv", tmp_path / "t.csv")
    with pytest.raises(pf.InputError, match="does not exist"):
        write_qgraph(ISING, tmp_path / "w.csv", tmp_path / "no" / "t.csv")
    with pytest.raises(pf.InputError, match="must differ"):
        write_qgraph(ISING, tmp_path / "w.csv", tmp_path / "w.csv")
    assert list(tmp_path.iterdir()) == []


def test_pgmpy_agrees():
    pytest.importorskip("pgmpy")
    from pgmpy.inference import VariableElimination

    schema = pf.Schema({"a": ["x", "y"], "b": 3, "alone": 2})
    table = np.array([[0.1, -np.inf, 2], [0.5, 1, 1]])
    model = pf.MarkovRandomField(schema, [("a", "b")], [table])
    network = to_pgmpy(model)
    assert network.check_model()
    found = VariableElimination(network).query(["a", "b"], show_progress=False)
    order = [found.variables.index(name) for name in ("a", "b")]
    values = np.transpose(found.values, order)  # pgmpy leaves Markov networks unnormalised
    np.testing.assert_allclose(values / values.sum(), model.marginal(["a", "b"]), atol=1e-9)


def test_without_pgmpy_the_way_is_named():
    try:
        import pgmpy  # noqa: F401
    except ImportError:
        with pytest.raises(pf.InputError, match="pip install pgmpy"):
            to_pgmpy(ISING)
