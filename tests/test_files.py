"""Saved files: whole or not at all, and damage is a clear error."""

import io
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privfield as pf
from privfield.files import pack, read_bytes, unpack, write_whole

PACKED = pack("thing", {"a": [1, "ü"]}, {"x": np.arange(12).reshape(3, 4), "y": np.array(2.5)})


def test_what_is_packed_comes_back():
    header, arrays = unpack("thing", PACKED, "it")
    assert header == {"kind": "thing", "a": [1, "ü"]}
    assert (arrays["x"] == np.arange(12).reshape(3, 4)).all()
    assert arrays["y"].shape == () and arrays["y"] == 2.5
    assert pack("thing", {"a": [1, "ü"]}, {}) == pack("thing", {"a": [1, "ü"]}, {})


@given(cut=st.integers(0, len(PACKED) - 1))
def test_a_truncated_file_is_refused(cut):
    with pytest.raises(pf.InputError, match="it is not a privfield file, or it is damaged"):
        unpack("thing", PACKED[:cut], "it")


@given(position=st.integers(0, len(PACKED) - 1), value=st.integers(0, 255))
def test_a_changed_byte_is_refused_or_harmless(position, value):
    changed = PACKED[:position] + bytes([value]) + PACKED[position + 1 :]
    try:
        header, arrays = unpack("thing", changed, "it")
    except pf.InputError:
        return
    assert header == {"kind": "thing", "a": [1, "ü"]}
    assert set(arrays) <= {"x", "y"}


def test_pickles_and_foreign_zips_are_refused():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("privfield.json", '{"kind": "thing"}')
        data = io.BytesIO()
        np.save(data, np.array([{"a": 1}], dtype=object), allow_pickle=True)
        archive.writestr("x.npy", data.getvalue())
    for content in (buffer.getvalue(), b"", b"PK\x03\x04 nonsense"):
        with pytest.raises(pf.InputError, match="damaged"):
            unpack("thing", content, "it")
    with pytest.raises(pf.InputError, match="holds 'thing'; 'model' is needed"):
        unpack("model", PACKED, "it")


def test_an_interrupted_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "out"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), write_whole(path) as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
    with write_whole(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_bad_places(tmp_path):
    with pytest.raises(pf.InputError, match="is a folder"), write_whole(tmp_path):
        pass
    with pytest.raises(pf.InputError, match="does not exist"), write_whole(tmp_path / "a" / "b"):
        pass
    with pytest.raises(pf.InputError, match="there is no file"):
        read_bytes(tmp_path / "none")
    with pytest.raises(pf.InputError, match="cannot read"):
        read_bytes(tmp_path)
