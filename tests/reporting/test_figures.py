"""Figures with matplotlib, and where nodes stand."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

import privfield as pf
from privfield.estimation.uncertainty.strengths import EdgeInterval
from privfield.reporting import drawing
from privfield.reporting.layout import HEIGHT, WIDTH, positions

STARTS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.mark.parametrize("kind", ["network", "marginals"])
@pytest.mark.parametrize("form", STARTS)
def test_files_of_each_kind(learner, tmp_path, kind, form):
    path = tmp_path / f"f.{form}"
    learner.model_.plot(path, kind=kind)
    data = path.read_bytes()
    assert data.startswith(STARTS[form])
    learner.model_.plot(path, kind=kind)
    assert path.read_bytes() == data  # the same model, the same picture


def test_an_svg_holds_its_words(learner, tmp_path):
    learner.model_.plot(tmp_path / "f.svg", kind="marginals")
    assert "low mood = yes" in (tmp_path / "f.svg").read_text()


def test_into_given_axes(learner):
    axes = Figure().add_subplot()
    assert learner.model_.plot(ax=axes) is axes
    edges = [line for line in axes.lines if line.get_linewidth() > 1]
    assert len(edges) >= 5
    dashed = [line for line in edges if line.get_linestyle() != "-"]
    assert dashed  # the negative one


def test_what_protects_nobody_says_so(symptoms):
    model = symptoms(pf.NON_PRIVATE).model_
    assert "NOT PRIVATE" in model.plot().get_title()
    assert "NOT PRIVATE" in model.plot(kind="marginals").get_title()


def test_without_measurements_there_are_no_error_bars():
    axes = pf.IsingModel([[0, 0.5], [0.5, 0]], names=["$a$", "b"]).plot(kind="marginals")
    assert len(axes.patches) == 2 and not axes.collections


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "pie"}, "kind must be"),
        ({"path": "f.gif"}, r"\.png, \.svg or \.pdf"),
        ({"path": 3}, "file name"),
        ({"level": 2}, "level"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(pf.InputError, match=message):
        pf.IsingModel([[0, 0.5], [0.5, 0]]).plot(**arguments)


def test_models_without_a_figure():
    with pytest.raises(pf.InputError, match="PeerEffect"):
        pf.NetworkIsing([[0, 1], [1, 0]], 0.4).plot()
    with pytest.raises(pf.InputError, match="up to 200 variables"):
        pf.IsingModel(np.zeros((201, 201))).plot()


# -- layout ----------------------------------------------------------------------------------------

links = st.integers(1, 40).flatmap(
    lambda n: st.tuples(
        st.just(n),
        st.lists(
            st.tuples(st.integers(0, n - 1), st.integers(0, n - 1), st.floats(0, 1)).filter(
                lambda link: link[0] != link[1]
            ),
            max_size=30,
        ),
    )
)


@settings(deadline=None, max_examples=40)
@given(links)
def test_every_node_stands_in_the_frame_apart_from_others(case):
    count, edges = case
    spots = positions(count, edges)
    assert spots.shape == (count, 2) and np.isfinite(spots).all()
    assert (spots >= 0).all() and (spots <= [WIDTH, HEIGHT]).all()
    gap = np.linalg.norm(spots[:, None] - spots[None], axis=2) + 1e9 * np.eye(count)
    assert gap.min() > 8
    assert (positions(count, edges) == spots).all()


def test_stronger_is_nearer():
    spots = positions(3, [(0, 1, 1.0), (1, 2, 0.1), (0, 2, 0.1)])
    near = np.linalg.norm(spots[0] - spots[1])
    assert near < np.linalg.norm(spots[1] - spots[2])
    assert near < np.linalg.norm(spots[0] - spots[2])


def test_communities_are_numbered_in_letters_that_fonts_have():
    """Beyond ⑩ many fonts draw a box, and the 21st circled number is none."""
    many = drawing.Drawing(("a", "b", "c"), ((0, 0),) * 3, 9, (), ("",) * 3, False, 0, (1, 10, 21))
    assert [drawing.label(many, node) for node in range(3)] == ["a ①", "b ⑩", "c (21)"]


def test_edges_without_a_verdict_are_drawn_sparsely():
    names = [f"v{i}" for i in range(100)]
    pairs = list(itertools.combinations(names, 2))
    bare = [EdgeInterval(a, b, 2 - k / 5000, None, None, True) for k, (a, b) in enumerate(pairs)]
    found = drawing.draw_network(names, bare, [], 0.95)
    assert [each.edge for each in found.edges] == bare[:200]
    assert found.left_out == len(bare) - 200
    clear = [replace(edge, low=0.1, high=1.0, verdict="clear") for edge in bare]
    assert len(drawing.draw_network(names, clear, [], 0.95).edges) == 1500
