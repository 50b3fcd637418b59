"""Measurements as values: saved, loaded, checked."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privfield as pf

SCHEMA = pf.Schema({"smoker": ["no", "yes"], "age": pf.Bins([0, 18, 40, 65])})
TABLE = np.array([[5.0, 7, -1], [2, 3, 4]])


def example(**changes):
    parts = {"noise": "laplace", "scale": 24.0, "total": 10_000} | changes
    return pf.Measurements.from_tables(SCHEMA, [("smoker", "age")], [TABLE], **parts)


def test_tables_from_elsewhere():
    m = example()
    assert m.cliques == (("smoker", "age"),) and m.scales == (24.0,)
    assert m.noise == "laplace" and m.total == 10_000
    assert m.cost is None and m.adjacency is None and m.stamp is None
    assert (m.table(["age", "smoker"]) == TABLE.T).all()
    assert m.laws[0].margin() == pytest.approx(24 * np.log(20))
    assert not m.tables[0].flags.writeable


def test_saved_and_loaded_bit_for_bit(tmp_path):
    m = example(adjacency="add-remove", cost=pf.PureDP(0.1), total=None)
    m.save(tmp_path / "m.zip")
    back = pf.Measurements.load(tmp_path / "m.zip")
    assert back.to_bytes() == m.to_bytes()
    assert (back.tables[0] == TABLE).all() and back.cost == pf.PureDP(0.1)
    assert back.schema == SCHEMA and back.adjacency == "add-remove" and back.total is None


BYTES = example().to_bytes()


@given(cut=st.integers(0, len(BYTES) - 1))
def test_a_file_cut_short_is_refused(cut):
    with pytest.raises(pf.InputError, match="damaged"):
        pf.Measurements.from_bytes(BYTES[:cut])


def test_a_file_whose_parts_do_not_fit_is_refused():
    from privfield.files import pack, unpack

    header, arrays = unpack("measurements", BYTES, "x")
    del header["kind"]
    broken = [
        ({**header, "cliques": [["smoker", "sex"]]}, arrays),
        ({**header, "scales": []}, arrays),
        ({**header, "scales": ["a"]}, arrays),
        ({**header, "noise": "loud"}, arrays),
        ({**header, "cost": {"kind": "pure", "epsilon": "-1"}}, arrays),
        ({**header, "schema": "format = 7"}, arrays),
        ({**header, "adjacency": "near"}, arrays),
        (header, {}),
        (header, {"table0": np.zeros(3)}),
        ({k: v for k, v in header.items() if k != "grid"}, arrays),
    ]
    for bad_header, bad_arrays in broken:
        with pytest.raises(pf.InputError, match="damaged"):
            pf.Measurements.from_bytes(pack("measurements", bad_header, bad_arrays))
    with pytest.raises(pf.InputError, match="has format 9; this is 1"):
        pf.Measurements.from_bytes(pack("measurements", {**header, "format": 9}, arrays))


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"noise": "loud"}, "noise must be one of 'discrete-laplace'.*got 'loud'"),
        ({"scale": 0}, "scale of .* must be above 0; got 0"),
        ({"scale": -1}, "must be above 0; got -1"),
        ({"scale": np.nan}, "must be above 0; got nan"),
        ({"scale": [1, 2]}, "equally many; got 1, 1 and 2"),
        ({"scale": "big"}, "numbers only"),
        ({"total": -5}, "total must be None or a number from 0; got -5"),
        ({"total": np.inf}, "total must be"),
        ({"total": "x"}, "total must be"),
        ({"cost": "x"}, "cost must be a budget or None; got str"),
        ({"adjacency": "near"}, "adjacency must be one of"),
    ],
)
def test_bad_statistics_are_refused(changes, text):
    with pytest.raises(pf.InputError, match=text):
        example(**changes)


def test_bad_tables_are_refused():
    make = pf.Measurements.from_tables
    with pytest.raises(pf.InputError, match=r"must have shape \(2, 3\); got \(3, 2\)"):
        make(SCHEMA, [("smoker", "age")], [TABLE.T], noise="laplace", scale=1)
    with pytest.raises(pf.InputError, match="finite numbers only"):
        make(SCHEMA, [("smoker", "age")], [TABLE * np.nan], noise="laplace", scale=1)
    with pytest.raises(pf.InputError, match="one array for each of 2 cliques"):
        make(SCHEMA, [("smoker",), ("age",)], [[1, 2]], noise="laplace", scale=1)
    with pytest.raises(pf.InputError, match="no variable 'sex'"):
        make(SCHEMA, [("sex",)], [[1, 2]], noise="laplace", scale=1)
    with pytest.raises(pf.InputError, match="numbers only"):
        make(SCHEMA, [("smoker",)], [["a", "b"]], noise="laplace", scale=1)
    with pytest.raises(pf.InputError, match="was not measured"):
        example().table(["age"])
