"""Networks and outcomes: every source gives the same matrix; odd input follows declared rules."""

import itertools
from decimal import Decimal
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import privfield as pf
from privfield.data.network.outcomes import open_outcomes
from privfield.data.network.public import quantise
from privfield.data.network.read import read_network

GRAPH = nx.karate_club_graph()


def dense(network):
    return network.couplings.toarray()


def test_scalings_are_the_papers():
    a = nx.to_numpy_array(GRAPH, weight=None)
    d = a.sum(axis=0)
    laplacian = a / np.sqrt(np.outer(d, d))
    assert np.allclose(dense(read_network(GRAPH)), laplacian, atol=1e-8)
    assert np.allclose(dense(read_network(GRAPH, "mean-degree")), a / d.mean())
    assert (dense(read_network(GRAPH, "none")) == a).all()
    ring = nx.cycle_graph(7)
    assert (dense(read_network(ring, "regular")) == nx.to_numpy_array(ring) / 2).all()
    assert (dense(read_network(csr_array(laplacian), "none")) == dense(read_network(GRAPH))).all()


def test_whole_numbers_are_symmetric_and_fine():
    network = read_network(GRAPH)
    whole = network.integers.toarray()
    assert (whole == whole.T).all() and whole.dtype == np.int64 and not np.diag(whole).any()
    assert 2**28 < network.largest_row_sum <= 2**30 + len(GRAPH)
    assert network.total == whole.sum() and network.edges == GRAPH.number_of_edges()
    equal = read_network(GRAPH, "mean-degree")
    assert set(equal.integers.data) == {1}
    assert equal.largest_row_sum == max(dict(GRAPH.degree()).values())


def test_files_give_the_same_network(tmp_path):
    graph = nx.relabel_nodes(nx.Graph(GRAPH.edges()), str)
    wanted = read_network(graph).digest
    nx.write_gml(graph, tmp_path / "g.gml")
    nx.write_graphml(graph, tmp_path / "g.graphml")
    nx.write_pajek(graph, tmp_path / "g.net")
    lines = [f"{u},{v}" for u, v in graph.edges()]
    (tmp_path / "g.csv").write_text("source,target\n" + "\n".join(lines) + "\n")
    (tmp_path / "bare.csv").write_text("\n".join(lines))
    (tmp_path / "g.tsv").write_text("from\tto\n" + "\n".join(lines).replace(",", "\t"))
    (tmp_path / "g.edges").write_text("# comment\n" + "\n".join(lines).replace(",", " "))
    order = list(graph.nodes)
    for path in sorted(tmp_path.iterdir()):
        network = read_network(path)
        if list(network.names) == order:
            assert network.digest == wanted, path.name
        place = [network.names.index(name) for name in order]
        assert (dense(network)[np.ix_(place, place)] == dense(read_network(graph))).all()


def test_loops_multi_edges_and_directions_follow_the_rule():
    graph = nx.MultiDiGraph([(0, 1), (1, 0), (0, 1), (1, 2), (2, 2)])
    network = read_network(graph, "none")
    assert (dense(network) == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]).all()
    assert any("self-loop" in note for note in network.notes)
    assert any("counted once" in note for note in network.notes)
    assert any("directions" in note for note in network.notes)


def test_isolated_nodes_stay_and_weigh_nothing():
    graph = nx.Graph([(0, 1), (1, 2)])
    graph.add_node(3)
    network = read_network(graph)
    assert network.nodes == 4 and not dense(network)[3].any()


def test_weights_count_when_asked_for(tmp_path):
    network = read_network(GRAPH, "none", weight="weight")
    assert np.allclose(dense(network), nx.to_numpy_array(GRAPH, weight="weight"), atol=1e-6)
    (tmp_path / "w.csv").write_text("u,v,trust\na,b,2\nb,c,0.5\n")
    assert np.allclose(dense(read_network(tmp_path / "w.csv", "none", "trust"))[0, 1], 2)
    signed = read_network(csr_array([[0, -1.0], [-1.0, 0]]), "none")
    assert not signed.attractive


@pytest.mark.parametrize(
    ("graph", "scaling", "words"),
    [
        (nx.Graph(), "laplacian", "no nodes"),
        (nx.empty_graph(3), "laplacian", "no edges"),
        (nx.path_graph(3), "regular", "same degree"),
        (nx.path_graph(3), "other", "scaling must be"),
        (csr_array((0, 0)), "none", "no nodes"),
        (np.ones((2, 3)), "none", "square"),
        (np.array([[0, 1.0], [2.0, 0]]), "none", "symmetric"),
        (np.eye(2), "none", "zero diagonal"),
        (np.array([[0, np.nan], [np.nan, 0]]), "none", "finite"),
        (np.array([[0, 1j], [1j, 0]]), "none", "networkx graph"),
        (csr_array([[0, -1.0], [-1.0, 0]]), "laplacian", "not negative"),
        (7, "none", "networkx graph"),
        ("nothing.csv", "none", "no file"),
        ("nothing.xyz", "none", "must end in"),
    ],
)
def test_public_mistakes_are_named(graph, scaling, words):
    with pytest.raises(pf.InputError, match=words):
        read_network(graph, scaling)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no lines"),
        ("alice,bob\ncarol,dora\n", "header or an edge"),
        ("a\nb\n", "two node names"),
        ("source,target\n", "header only"),
    ],
)
def test_odd_edge_files_are_refused(tmp_path, text, words):
    (tmp_path / "g.csv").write_text(text)
    with pytest.raises(pf.InputError, match=words):
        read_network(tmp_path / "g.csv")


def test_damaged_files_are_refused(tmp_path):
    for name in ("g.gml", "g.graphml"):
        (tmp_path / name).write_text("graph [ node [ ")
        with pytest.raises(pf.InputError, match="is not a whole"):
            read_network(tmp_path / name)


# -- outcomes --------------------------------------------------------------------------------------

ODD = [1, 2.5, True, "3", Decimal("0.1"), Fraction(1, 9), np.float32(4), 10**400, b"2"]
ODD += ["yes", "TRUE", " t", "Y", b"Yes", np.str_("true")]
DOWN = [
    0,
    -1,
    float("nan"),
    None,
    "no",
    "yesterday",
    "false",
    b"\xff",
    "",
    "nan",
    Decimal("sNaN"),
    object(),
    [1],
    np.array(1),
    np.ma.masked,
    1j,
    float("-inf"),
]


def test_any_value_is_read_by_the_public_rule():
    values = ODD + DOWN
    names = list(range(len(values)))
    expected = [1] * len(ODD) + [-1] * len(DOWN)
    assert open_outcomes(dict(zip(names, values, strict=True)), names)().tolist() == expected
    assert open_outcomes(values, names)().tolist() == expected
    assert open_outcomes(np.array([0.5, np.nan, -np.inf]), range(3))().tolist() == [1, -1, -1]


@given(st.lists(st.floats() | st.integers() | st.text() | st.none() | st.binary(), min_size=1))
def test_values_never_raise(values):
    signs = open_outcomes(values, range(len(values)))()
    assert set(signs.tolist()) <= {-1, 1} and signs.dtype == np.int8


def test_names_are_public_and_must_match():
    names = ("a", "b", "c")
    with pytest.raises(pf.InputError, match="1 of 3 nodes has none"):
        open_outcomes({"a": 1, "b": 1}, names)
    with pytest.raises(pf.InputError, match="1 of them names no node"):
        open_outcomes({"a": 1, "b": 1, "c": 0, "d": 1}, names)
    read = open_outcomes({"a": 1, "d": 1}, names, missing="negative")
    assert read().tolist() == [1, -1, -1]
    for wrong in (np.ones(2), np.ones((3, 1)), 5, np.ones(3, dtype=complex)):
        with pytest.raises(pf.InputError, match="outcomes must"):
            open_outcomes(wrong, names)


def test_a_series_is_read_by_its_index():
    pandas = pytest.importorskip("pandas")
    names = ("a", "b", "c")
    series = pandas.Series([1, 0, 1], index=["c", "a", "b"])
    assert open_outcomes(series, names)().tolist() == [-1, 1, 1]
    odd = pandas.Series([pandas.NA, "yes", None], index=["c", "a", "b"], dtype="object")
    assert open_outcomes(odd, names)().tolist() == [1, -1, -1]
    with pytest.raises(pf.InputError, match="3 of 3 nodes have none"):
        open_outcomes(pandas.Series([1, 0, 1]), names)
    with pytest.raises(pf.InputError, match="more than once"):
        open_outcomes(pandas.Series([1, 0, 1], index=["a", "b", "a"]), names)
    with pytest.raises(pf.InputError, match=r"shape \(3, 1\)"):
        open_outcomes(pandas.DataFrame({"x": [1, 0, 1]}, index=names), names)


@pytest.mark.parametrize("table", [[[1], [0], [1]], [(1, 2)] * 3, np.ones((3, 1))])
def test_tables_are_no_outcomes(table):
    with pytest.raises(pf.InputError, match=r"got shape \(3, "):
        open_outcomes(table, ("a", "b", "c"))


@pytest.mark.parametrize("header", ["node", "node,age,hiv", "node\tage\thiv", "the first of us"])
def test_a_header_has_two_cells(tmp_path, header):
    path = tmp_path / "o.csv"
    path.write_text(f"{header}\na,1\nb,Yes\n")
    with pytest.raises(pf.InputError, match="two cells"):
        open_outcomes(path, ("a", "b"))
    path.write_text(f"{header},x\ra,1\rb,Yes\r")  # one line
    with pytest.raises(pf.InputError, match="two cells"):
        open_outcomes(path, ("a", "b"))
    path.write_text("my node;hiv\na,true\nb,no\n")
    assert open_outcomes(path, ("a", "b"))().tolist() == [1, -1]


def test_files_of_outcomes_are_read_line_by_line(tmp_path):
    path = tmp_path / "o.csv"
    path.write_text('node,hiv\n1,1\n2,"\n3,\n"4",1\n5;1\n6\t-2\n7 1\n8,1\u20283,1\n')
    names = tuple(range(1, 9))
    assert open_outcomes(path, names)().tolist() == [1, -1, -1, 1, 1, -1, 1, -1]


def test_no_line_changes_how_another_is_read(tmp_path):
    """Whatever one node's value is, the others' signs stay: that is what a flip may change."""
    names = ("a", "b", "c")
    for place, value in itertools.product(range(3), ['"', "1;", "x\ty", "#", '1"2"', ",,,", "é"]):
        cells = ["1", "0", "1"]
        cells[place] = value
        path = tmp_path / "o.csv"
        path.write_text("".join(f"{n},{c}\n" for n, c in zip(names, cells, strict=True)))
        signs = open_outcomes(path, names)()
        others = [k for k in range(3) if k != place]
        assert signs[others].tolist() == [[1, -1, 1][k] for k in others]


def test_a_schema_names_the_positive_level():
    schema = pf.Schema({"hiv": ["negative", "positive"]})
    signs = open_outcomes(["positive", "negative", None, 3], range(4), schema=schema)()
    assert signs.tolist() == [1, -1, -1, -1]
    with pytest.raises(pf.InputError, match="two levels"):
        open_outcomes([1], range(1), schema=pf.Schema({"x": 3}))


def test_values_that_count_as_positive():
    values = ["ja", " JA ", b"ja", "nein", "yes", 2, "2.0", Decimal(2), 1, True, None, np.nan, []]
    read = open_outcomes(values, range(13), positive=["Ja", 2])
    assert read().tolist() == [1, 1, 1, -1, -1, 1, 1, 1, -1, -1, -1, -1, -1]
    assert open_outcomes(np.array([1, 2, 0]), range(3), positive=2)().tolist() == [-1, 1, -1]
    assert open_outcomes([True, False], range(2), positive="true")().tolist() == [1, -1]
    for wrong in ([], [""], "", [None], [[]]):
        with pytest.raises(pf.InputError, match="positive must name values"):
            open_outcomes([1], range(1), positive=wrong)
    with pytest.raises(pf.InputError, match="the schema says already"):
        open_outcomes([1], range(1), schema=pf.Schema({"x": ["a", "b"]}), positive=["b"])


def test_quantising_keeps_small_couplings_to_a_billionth_of_a_row():
    rng = np.random.default_rng(0)
    matrix = np.triu(rng.normal(size=(30, 30)), 1)
    matrix += matrix.T
    network = quantise(matrix, tuple(range(30)), "none")
    assert np.abs(dense(network) - matrix).max() <= network.unit / 2
    assert network.unit * 2**29 <= np.abs(matrix).sum(axis=0).max() * 1.001
