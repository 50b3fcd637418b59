"""Model files: bit for bit, and damage is a clear error."""

import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privfield as pf
from privfield.files import pack, unpack
from privfield.models.card import attach
from privfield.models.loading import model_from_bytes
from privfield.models.saving import model_bytes

SCHEMA = pf.Schema(
    {"smoker": ["no", "yes"], "age": pf.Bins([0, 18, 65])},
    forbidden=[{"smoker": "yes", "age": "0-18"}],
)
MODELS = [
    pf.MarkovRandomField(
        SCHEMA, [("age", "smoker"), ("age",), ()], [[[0.1, -np.inf], [np.pi, 1e-300]], [0, 1], 3.5]
    ),
    pf.IsingModel([[0, 0.1], [0.1, 0]], [1 / 3, -2], names=["ä", "b c"], stamp="NOT PRIVATE: test"),
    pf.PolynomialMRF({(): 0.5, (0, 2): -0.1, (1,): 1 / 3}, size=3),
    pf.NetworkIsing([[0, 0.25, 0], [0.25, 0, 1], [0, 1, 0]], beta=0.1, field=1 / 7),
]


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_saved_and_loaded_bit_for_bit(model, tmp_path):
    model.save(tmp_path / "m.pf")
    back = pf.load(tmp_path / "m.pf")
    assert type(back) is type(model) and back.stamp == model.stamp
    assert model_bytes(back) == model_bytes(model) == (tmp_path / "m.pf").read_bytes()
    assert back.schema == model.schema
    for mine, theirs in zip(model.factors.tables, back.factors.tables, strict=True):
        assert (mine == theirs).all()
    assert back.log_partition() == model.log_partition()


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_copies_of_a_model_that_has_answered(model):
    model.log_partition()
    before = model.marginal(model.schema.names[:2])
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), copy.copy(model)):
        assert type(twin) is type(model)
        assert (twin.marginal(model.schema.names[:2]) == before).all()
        assert model_bytes(twin) == model_bytes(model)


@pytest.mark.parametrize(
    "solution",
    [
        pf.Solution(True, 0.01, 40),
        pf.Solution(False, math.inf, 0, ("age", "ä")),
    ],
)
def test_how_it_was_solved_travels_with_a_model(solution, tmp_path):
    model = attach(pf.IsingModel([[0, 0.1], [0.1, 0]]), solution=solution)
    model.save(tmp_path / "m.pf")
    for twin in (pf.load(tmp_path / "m.pf"), pickle.loads(pickle.dumps(model)), copy.copy(model)):
        assert twin.solution == solution


@pytest.mark.parametrize(
    "changed",
    [
        {"converged": 1},
        {"residual": -1.0},
        {"residual": "0"},
        {"steps": True},
        {"steps": -1},
        {"contradicted": "age"},
        {"contradicted": [1]},
    ],
    ids=str,
)
def test_a_damaged_solution_is_refused(changed):
    model = attach(pf.IsingModel([[0, 0.1], [0.1, 0]]), solution=pf.Solution(True, 0.01, 40))
    header, arrays = unpack("model", model_bytes(model), "this", lambda _: "weights|field")
    header["solution"] |= changed
    with pytest.raises(pf.InputError, match="damaged"):
        model_from_bytes(pack("model", header, arrays))


@pytest.mark.parametrize(
    "ended", [np.array([np.nan]), np.zeros((2, 2)), np.array(["x"]), np.arange(3)], ids=repr
)
def test_a_damaged_end_of_a_search_is_refused(ended):
    model = pf.IsingModel([[0, 0.1], [0.1, 0]])
    header, arrays = unpack("model", model_bytes(model), "this", lambda _: "weights|field")
    with pytest.raises(pf.InputError, match="damaged"):
        model_from_bytes(pack("model", header, arrays | {"ended": ended}))


@given(which=st.sampled_from(MODELS), cut=st.floats(0, 1, exclude_max=True))
def test_a_model_cut_short_is_refused(which, cut):
    data = model_bytes(which)
    with pytest.raises(pf.InputError, match="damaged"):
        model_from_bytes(data[: int(cut * len(data))])


@given(
    which=st.sampled_from(MODELS), where=st.floats(0, 1, exclude_max=True), byte=st.integers(0, 255)
)
def test_a_changed_byte_is_refused_or_harmless(which, where, byte):
    data = bytearray(model_bytes(which))
    data[int(where * len(data))] = byte
    try:
        model = model_from_bytes(bytes(data))
    except pf.InputError:
        return
    assert model_bytes(model) == model_bytes(which)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
arrays = st.sampled_from(
    [
        np.zeros(3),
        np.zeros((2, 2)),
        np.array(["x"]),
        np.arange(4),
        np.array([np.nan]),
        np.zeros((0,)),
    ]
)


@given(which=st.sampled_from(MODELS), data=st.data())
def test_a_file_with_wrong_parts_is_refused_or_a_model(which, data):
    """Replace one header entry or one array by something else of the right container format."""
    header, found = unpack("model", model_bytes(which), "x")
    del header["kind"]
    if data.draw(st.booleans()) and found:
        found[data.draw(st.sampled_from(sorted(found)))] = data.draw(arrays)
    else:
        header[data.draw(st.sampled_from(sorted(header)))] = data.draw(json_values)
    try:
        model = model_from_bytes(pack("model", header, found), "m.pf")
    except pf.InputError:
        return
    assert isinstance(model.factors.shape, tuple)


def test_other_files(tmp_path):
    with pytest.raises(pf.InputError, match="there is no file"):
        pf.load(tmp_path / "none.pf")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(pf.InputError, match="not a privfield file"):
        pf.load(tmp_path / "text")
    m = pf.Measurements.from_tables(SCHEMA, [("age",)], [[1, 2]], noise="laplace", scale=1)
    m.save(tmp_path / "m")
    with pytest.raises(pf.InputError, match="holds 'measurements'; 'model' is needed"):
        pf.load(tmp_path / "m")
    header, found = unpack("model", model_bytes(MODELS[1]), "x")
    del header["kind"]
    with pytest.raises(pf.InputError, match="model format 99; this is 1"):
        model_from_bytes(pack("model", {**header, "format": 99}, found))
    with pytest.raises(pf.InputError, match="unknown model, 'crystal'"):
        model_from_bytes(pack("model", {**header, "model": "crystal"}, found))
