"""Saved files: whole or not at all, and damage is a clear error."""

import io
import os
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


def test_a_file_that_would_unpack_to_too_much_is_refused_before_it_does(monkeypatch):
    big = pack("thing", {}, {"x": np.zeros(2_000_000)})
    assert len(big) < 50_000
    monkeypatch.setattr("privfield.files.MOST_BYTES", 10**6)
    with pytest.raises(pf.InputError, match=r"it would unpack to 16,000,\d+ bytes in 2 parts"):
        unpack("thing", big, "it")


def test_a_part_longer_than_it_declares_is_refused():
    """A bomb may lie about its size: nothing is read beyond what was declared."""
    buffer = io.BytesIO(pack("thing", {}, {"x": np.zeros(100_000)}))
    data = bytearray(buffer.getvalue())
    declared = (800_128).to_bytes(4, "little")
    assert data.count(declared) >= 1
    lying = bytes(data).replace(declared, (64).to_bytes(4, "little"))
    with pytest.raises(pf.InputError, match="damaged"):
        unpack("thing", lying, "it")


def test_a_file_of_another_kind_is_not_unpacked(monkeypatch):
    monkeypatch.setattr(np, "load", lambda *a, **k: pytest.fail("its arrays were read"))
    with pytest.raises(pf.InputError, match="'model' is needed"):
        unpack("model", PACKED, "it")


@pytest.mark.parametrize(
    "saved",
    [
        pf.IsingModel(np.zeros((2, 2)), np.zeros(2)),
        pf.ChainModel(["a", "b"], [0.5, 0.5], np.full((2, 2), 0.5)),
        pf.measure(np.ones((3, 2), int), pf.Schema({"a": 2, "b": 2}), [("a", "b")], pf.NON_PRIVATE),
    ],
    ids=lambda each: type(each).__name__,
)
def test_arrays_that_the_kind_does_not_name_are_never_unpacked(saved, monkeypatch, tmp_path):
    path = tmp_path / "x.pf"
    saved.save(path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("surplus.npy", b"not an array")
    sizes = []
    monkeypatch.setattr(
        np, "load", lambda file, *a, load=np.load, **k: sizes.append(1) or load(file)
    )
    read = pf.Measurements.load if isinstance(saved, pf.Measurements) else pf.load
    assert repr(read(path)) == repr(saved)
    with zipfile.ZipFile(path) as archive:
        assert len(sizes) == sum(name.endswith(".npy") for name in archive.namelist()) - 1


@pytest.mark.parametrize("moment", ["open", "write", "replace"])
def test_a_signal_at_any_moment_leaves_nothing_behind(tmp_path, monkeypatch, moment):
    """Also between the file's making and the first line of the block."""
    real = {"open": open, "replace": os.replace}

    def stopped(*arguments, **options):
        if moment == "open":
            real["open"](*arguments, **options).close()  # it exists, and then the signal comes
        raise KeyboardInterrupt

    if moment == "open":
        monkeypatch.setattr("builtins.open", stopped)
    elif moment == "replace":
        monkeypatch.setattr(os, "replace", stopped)
    with pytest.raises(KeyboardInterrupt), write_whole(tmp_path / "out") as file:
        file.write(b"half")
        raise KeyboardInterrupt
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("moment", ["write", "close"])
def test_an_interrupt_while_packing_is_an_interrupt(monkeypatch, moment):
    def stop(self, *_):
        raise KeyboardInterrupt

    monkeypatch.setattr(zipfile._ZipWriteFile, moment, stop)
    with pytest.raises(KeyboardInterrupt):
        pack("kind", {}, {"x": np.zeros(3)})


def test_what_a_kill_left_is_swept_when_it_is_ours_and_old(tmp_path):
    ours = tmp_path / f".out.{'0' * 16}.privfield-part"
    young = tmp_path / f".out.{'1' * 16}.privfield-part"
    others = [tmp_path / ".out.0000.privfield-part", tmp_path / f".in.{'0' * 16}.privfield-part"]
    for path in (ours, young, *others):
        path.write_bytes(b"x")
        if path != young:
            os.utime(path, (1, 1))
    with write_whole(tmp_path / "out") as file:
        file.write(b"whole")
    assert sorted(tmp_path.iterdir()) == sorted([tmp_path / "out", young, *others])
