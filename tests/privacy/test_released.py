"""Saved releases: one base, the same files as ever, and damaged ones refused."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest

import privfield as pf
from privfield.files import pack, unpack
from privfield.mechanisms.chains.measurements import ChainMeasurements
from privfield.mechanisms.frank_wolfe.trajectory import Trajectory
from privfield.mechanisms.gradients.pseudolikelihood import PseudolikelihoodTrajectory
from privfield.mechanisms.gradients.sgd import SGDTrajectory
from privfield.mechanisms.moments.moments import Moments
from privfield.mechanisms.peers.release import LocalRelease, ObjectiveRelease, StatisticRelease
from privfield.privacy.adjacency import Adjacency
from privfield.privacy.noise import NoiseLaw
from privfield.privacy.released import Released, cost_from_json, cost_to_json
from privfield.privacy.terms import Terms

SCHEMA = pf.Schema({"a": ["x", 'y"\n'], "b": ["☃", "v"]})
BOTH = Adjacency.ADD_REMOVE
STAMP = "NOT PRIVATE: the noise is repeatable (insecure_seed)"


def examples(cost):
    whole = np.arange(6).reshape(2, 3)
    paths = (np.zeros((2, 1), np.int32), np.ones((2, 1, 1), np.int8), np.arange(2))
    return [
        Moments(("a", "☃"), np.zeros((2, 2), np.int64), np.arange(2), "none", 0.0, 5, None, cost,
                BOTH, STAMP),
        PseudolikelihoodTrajectory(("a", "b"), whole, 0.5, 2.0, 1.0, 9.0, cost, BOTH, STAMP),
        Trajectory("logistic", *paths, 2, 1.5, cost, BOTH, {"features": 2}, STAMP),
        ChainMeasurements(("a", "b"), np.zeros(2), np.zeros((2, 2)), "none", 0.0, 0.0, 1.0, 1.0,
                          3.0, cost, BOTH, "person", STAMP),
        pf.Measurements(SCHEMA, (("a", "b"),), (np.eye(2),), "laplace", (2.0,), None, cost, BOTH,
                        stamp=STAMP),
        StatisticRelease("d", cost, STAMP, ("H",), (3,), (0.0,), (0.5,), (NoiseLaw("none", 0.0),)),
        LocalRelease("d", cost, STAMP, 3, 0.0, 0.5, Fraction(1, 3), 4, 1),
        ObjectiveRelease("d", cost, STAMP, 3, Fraction(1, 4), Fraction(5), Fraction(1, 2),
                         Fraction(1, 2), 0.1, 2.0),
    ]  # fmt: skip


def sgd(cost):
    gradients = np.arange(8).reshape(2, 4)
    return SGDTrajectory(SCHEMA, (("a", "b"),), gradients, 0.5, 2.0, 0.1, 1.0, 0.1, cost, BOTH)


ALL = [*examples(pf.ZCDP(0.3)), *examples(pf.NON_PRIVATE), sgd(pf.ApproxDP(1, 1e-6))]

COMMON = {"kind", "format", "version", "cost", "stamp"}
KEYS = {  # of files that exist: they must stay readable
    "moments": {"names", "noise", "scale", "total", "count", "adjacency"},
    "pseudolikelihood-trajectory": {"names", "numbers", "adjacency"},
    "frank-wolfe-trajectory": {"regressions", "columns", "radius", "adjacency", "about"},
    "sgd-trajectory": {"schema", "cliques", "numbers", "adjacency", "tied"},
    "chain measurements": {
        *("states", "noise", "scales", "grids", "limit", "adjacency", "unit", "segment", "share"),
    },
    "measurements": {
        *("schema", "cliques", "noise", "scales", "grid", "total", "adjacency"),
        "centred",
    },
    "network-statistics": {"digest", "names", "counts", "origins", "steps", "laws"},
    "network-local": {
        *("digest", "count", "origin", "step", "epsilon", "ceiling", "slope"),
    },
    "network-objective": {
        *("digest", "cell", "step", "bound", "epsilon_noise", "epsilon_slope"),
        *("ridge", "scale", "least"),
    },
}


@pytest.mark.parametrize("value", ALL, ids=lambda value: type(value).__name__)
def test_files_keep_their_kind_format_and_keys(value, tmp_path):
    assert isinstance(value, Released)
    header, _ = unpack(value.KIND, value.to_bytes(), "x")
    assert header["format"] == 1 and set(header) == COMMON | KEYS[value.KIND]
    value.save(tmp_path / "v.pf")
    again = type(value).load(tmp_path / "v.pf")
    assert again.to_bytes() == value.to_bytes()
    assert again.cost == value.cost and again.stamp == value.stamp
    assert repr(again) == repr(value)


@pytest.mark.parametrize("value", ALL, ids=lambda value: type(value).__name__)
def test_damaged_files_are_refused(value):
    header, arrays = unpack(value.KIND, value.to_bytes(), "x")
    del header["kind"]
    for key in header:
        if key in ("version", *value.LATER):  # not needed to read
            continue
        rest = {name: part for name, part in header.items() if name != key}
        with pytest.raises(pf.InputError, match=r"damaged|has format"):
            type(value).from_bytes(pack(value.KIND, rest, arrays))
    with pytest.raises(pf.InputError, match="has format 2; this is 1"):
        type(value).from_bytes(pack(value.KIND, {**header, "format": 2}, arrays))
    with pytest.raises(pf.InputError, match="'other'"):
        type(value).from_bytes(pack("other", header, arrays))
    if arrays:
        with pytest.raises(pf.InputError, match="damaged"):
            type(value).from_bytes(pack(value.KIND, header, {}))


@pytest.mark.parametrize(
    "wrong", [{"total": "5"}, {"total": None}, {"count": 3}, {"scale": 2.0}, {"noise": "loud"}]
)
def test_moments_whose_numbers_do_not_fit_are_refused(wrong):
    header, arrays = unpack("moments", ALL[0].to_bytes(), "x")
    del header["kind"]
    with pytest.raises(pf.InputError, match="damaged"):
        Moments.from_bytes(pack("moments", {**header, **wrong}, arrays))


def test_costs_and_stamps():
    for cost in (pf.PureDP(0.1), pf.ZCDP(0.1), pf.ApproxDP(1, 1e-6), pf.NON_PRIVATE, None):
        assert cost_from_json(cost_to_json(cost)) == cost
    assert Terms(pf.ZCDP(1)).stamp is None
    assert Terms(pf.ZCDP(1), insecure_seed=0).stamp == STAMP
    assert Terms(pf.NON_PRIVATE, insecure_seed=0).stamp.startswith("NOT PRIVATE: no noise")


@dataclass(frozen=True)
class Inner:
    number: int
    part: float | None


@dataclass(frozen=True, eq=False)
class Outer(Released):
    KIND = "outer"
    NAMES: ClassVar[dict[str, str]] = {"tables": "table"}
    LATER = ("note",)

    tables: tuple[np.ndarray, ...]
    inside: tuple[Inner, ...]
    note: str = ""


@pytest.mark.parametrize("many", [0, 1, 11])
def test_lists_of_arrays_and_of_small_values_are_stored(many):
    tables = tuple(np.arange(n) for n in range(many))
    value = Outer(tables, (Inner(1, 0.5), Inner(2, None)), "n")
    again = Outer.from_bytes(value.to_bytes())
    assert again.inside == value.inside and again.note == "n"
    assert [t.tolist() for t in again.tables] == [t.tolist() for t in tables]
    header, arrays = unpack("outer", value.to_bytes(), "x")
    assert header["inside"] == [[1, 0.5], [2, None]]
    assert set(arrays) == {f"table{n}" for n in range(many)}
    del header["kind"], header["note"]
    assert Outer.from_bytes(pack("outer", header, arrays)).note == ""  # an old file
    for wrong in ([[1]], [[1, 0.5, 2]], [["1", 0.5]], [1]):
        with pytest.raises(pf.InputError, match="damaged"):
            Outer.from_bytes(pack("outer", {**header, "inside": wrong}, arrays))


def test_older_files_of_networks_are_read():
    """Costs, laws and fractions once had a tag each, and files told their version."""
    parts = {"format": 1, "version": "1.0", "digest": "d", "stamp": None}
    cost = {"cost": {"kind": "pure", "epsilon": "1/3"}}
    third = {"fraction": "1/3"}
    laws = [{"law": ["discrete-laplace", 2.5, 1.0]}]
    numbers = {"names": ["H"], "counts": [-3], "origins": [0.5], "steps": [2.0], "laws": laws}
    found = StatisticRelease.from_bytes(
        pack("network-statistics", {**parts, "cost": cost, **numbers}, {})
    )
    law = NoiseLaw("discrete-laplace", 2.5)
    third_dp = pf.PureDP(Fraction(1, 3))
    assert found == StatisticRelease("d", third_dp, None, ("H",), (-3,), (0.5,), (2.0,), (law,))
    numbers = {"count": 7, "origin": 0.5, "step": -2.0, "epsilon": third, "ceiling": 4, "slope": 2}
    free = {"cost": {"cost": "non-private"}}
    found = LocalRelease.from_bytes(pack("network-local", {**parts, **free, **numbers}, {}))
    third = Fraction(1, 3)
    assert found == LocalRelease("d", pf.NON_PRIVATE, None, 7, 0.5, -2.0, third, 4, 2)
    numbers = {"cell": 9, "ridge": 0.25, "scale": 1.5}
    numbers |= {key: {"fraction": text} for key, text in (("step", "1/256"), ("bound", "5"))}
    numbers |= {key: {"fraction": "1/3"} for key in ("epsilon_noise", "epsilon_slope")}
    found = ObjectiveRelease.from_bytes(
        pack("network-objective", {**parts, "cost": cost, **numbers}, {})
    )
    grid = Fraction(1, 256), Fraction(5)
    assert found == ObjectiveRelease("d", third_dp, None, 9, *grid, third, third, 0.25, 1.5)
