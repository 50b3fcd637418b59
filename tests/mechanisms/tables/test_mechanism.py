"""`measure`: right counts, right noise, the promise kept; nothing else depends on records."""

import io
import logging
from datetime import date
from decimal import Decimal
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pytest

import privfield as pf
from privfield.privacy.noise import gaussian_cost
from traces import public_trace

SCHEMA = pf.Schema({"a": 2, "b": 3})
CLIQUES = [("a", "b"), ("b",)]
RNG = np.random.default_rng(20240501)
DATA = RNG.integers(0, [2, 3], (500, 2))
BUDGETS = [pf.PureDP(1), pf.ZCDP(0.1), pf.ApproxDP(0.7, 1e-6)]


def exact_tables(data):
    return pf.measure(np.asarray(data).reshape(-1, 2), SCHEMA, CLIQUES, pf.NON_PRIVATE).tables


def test_without_noise_the_counts_are_pandas_counts():
    m = pf.measure(DATA, SCHEMA, CLIQUES, pf.NON_PRIVATE)
    frame = pd.DataFrame(DATA, columns=["a", "b"])
    assert (m.tables[0] == pd.crosstab(frame.a, frame.b).to_numpy()).all()
    assert (m.tables[1] == frame.b.value_counts().sort_index().to_numpy()).all()
    assert m.noise == "none" and m.total == 500 and m.cost is pf.NON_PRIVATE
    assert m.stamp.startswith("NOT PRIVATE") and "NOT PRIVATE" in repr(m)


def test_what_comes_back_says_everything_public():
    m = pf.measure(DATA, SCHEMA, CLIQUES, pf.ApproxDP(1, 1e-6))
    assert m.cliques == (("a", "b"), ("b",)) and m.schema == SCHEMA
    assert [t.shape for t in m.tables] == [(2, 3), (3,)]
    assert m.adjacency == "replace-one" and m.total == 500 and m.stamp is None
    assert m.cost <= pf.ApproxDP(1, 1e-6)
    assert m.noise == "discrete-laplace" and m.scales == (4.0, 4.0)  # 2 tables, 2 cells each
    added = pf.measure(DATA, SCHEMA, CLIQUES, pf.PureDP(1), adjacency="add-remove")
    assert added.scales == (2.0, 2.0) and added.total is None


def test_data_from_a_file_a_frame_and_an_array_agree(tmp_path):
    frame = pd.DataFrame(DATA, columns=["a", "b"])
    frame.to_csv(tmp_path / "d.csv", index=False)
    frame.to_parquet(tmp_path / "d.parquet")
    for data in (frame, tmp_path / "d.csv", str(tmp_path / "*.parquet"), DATA):
        m = pf.measure(data, SCHEMA, CLIQUES, pf.NON_PRIVATE)
        assert (m.tables[0] == exact_tables(DATA)[0]).all()


# -- people ----------------------------------------------------------------------------------------

PEOPLE = pd.DataFrame(
    {
        "id": ["u", "u", "u", "v", "v", None, "w"],
        "a": [0, 1, 1, 0, 0, 1, 1],
        "b": [0, 1, 2, 0, 1, 2, 2],
    }
)


def test_at_most_two_rows_per_person():
    schema = pf.Schema({"a": 2, "b": 3}, unit=pf.Person("id", rows=2))
    m = pf.measure(PEOPLE, schema, [("a", "b")], pf.NON_PRIVATE)
    assert m.tables[0].sum() == sum(min(2, many) for many in PEOPLE["id"].value_counts())
    assert m.total is None  # how many rows people have is private
    noisy = pf.measure(PEOPLE, schema, [("a", "b")], pf.PureDP(1))
    assert noisy.scales == (4.0,)  # replacing a person moves up to 2 rows out and 2 in


@pytest.mark.parametrize("rows", [1, 2])
def test_the_order_of_the_table_tells_nothing(rows):
    """A table sorted by what one person did: everybody else's rows are chosen as before."""
    schema = pf.Schema({"a": 2, "b": 3}, unit=pf.Person("id", rows=rows))
    lines = [(person, place % 2, place % 3) for person in "uvwxyz" for place in range(6)]

    def tables(lines):
        frame = pd.DataFrame(lines, columns=["id", "a", "b"])
        return pf.measure(frame, schema, [("a", "b")], pf.NON_PRIVATE, insecure_seed=5).tables[0]

    assert (tables(lines) == tables(lines[::-1])).all()
    without = [line for line in lines if line[0] != "u"]
    assert (tables(sorted(without, key=lambda line: line[1])) == tables(without)).all()
    assert np.abs(tables(lines) - tables(without[::-1])).sum() == rows


def test_people_who_share_one_weight():
    schema = pf.Schema({"a": 2, "b": 3}, unit=pf.Person("id", rows=None))
    m = pf.measure(PEOPLE, schema, [("a",)], pf.NON_PRIVATE)
    assert m.tables[0] == pytest.approx([1 / 3 + 1, 2 / 3 + 1], abs=1e-5)
    assert m.tables[0].sum() <= 3
    noisy = pf.measure(PEOPLE, schema, [("a",)], pf.PureDP(1), adjacency="add-remove")
    assert noisy.scales == (1.0,) and noisy.grid == 2**-20
    assert (noisy.tables[0] / noisy.grid % 1 == 0).all()


@pytest.mark.parametrize("rows", [1, 2, None])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("seed", [0, 1])
def test_person_level_sensitivity_by_enumeration(rows, adjacency, seed):
    """Every person with up to three rows over two cells, next to one fixed other person.

    The seed fixes the key that chooses rows: the promise holds for each.
    """
    schema = pf.Schema({"a": 2, "b": 2}, unit=pf.Person("id", rows=rows))
    cliques = [("a", "b"), ("a",)]
    histories = [h for size in range(4) for h in product([(0, 0), (1, 1)], repeat=size)]

    def tables(history):
        lines = [("x", *row) for row in history] + [("y", 0, 1), ("y", 1, 1)]
        frame = pd.DataFrame(lines, columns=["id", "a", "b"])
        found = pf.measure(frame, schema, cliques, pf.NON_PRIVATE, insecure_seed=seed).tables
        return np.concatenate([np.asarray(t, float).ravel() for t in found])

    all_tables = [tables(h) for h in histories]
    pairs = (
        [(s, t) for s in all_tables for t in all_tables]
        if adjacency == "replace-one"
        else [(s, all_tables[0]) for s in all_tables]
    )
    m = pf.measure(
        pd.DataFrame({"id": ["x"], "a": [0], "b": [0]}), schema, cliques, pf.PureDP(1), adjacency
    )
    worst = max(np.abs(s - t).sum() for s, t in pairs)
    assert worst == pytest.approx(m.scales[0])  # the claim is kept and attained: Δ₁ = b at ε = 1


# -- nothing else depends on records ---------------------------------------------------------------


def trace_of(data, *seen, adjacency="replace-one"):
    release = partial(pf.measure, data, SCHEMA, CLIQUES, pf.PureDP(1))
    return public_trace(release, "measurements", *seen, adjacency=adjacency)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_public_metadata_is_the_same_on_neighbours(adjacency, tmp_path, capfd, caplog):
    caplog.set_level(logging.DEBUG)
    wild = np.array(DATA, dtype=float)
    wild[7] = [np.nan, 1e300]  # a record full of nonsense
    versions = [DATA, wild] if adjacency == "replace-one" else [DATA, DATA[:-1], DATA[:0]]
    traces = []
    for number, data in enumerate(versions):
        traces.append(trace_of(data, tmp_path / str(number), capfd, caplog, adjacency=adjacency))
    assert all(trace == traces[0] for trace in traces)
    assert traces[0]["printed"] == ("", "", "")


ODD_LINES = [
    b"1",  # too few fields
    b"1,2,3,4",  # too many
    b"",  # nothing at all
    b" ",
    b'"a\nb",1',  # a line break inside quotes
    b"\xff\xfe,1",  # no UTF-8
    b"1e999," + b"9" * 5000,
    b"x" * 200_000 + b",1",
]


@pytest.mark.parametrize("line", ODD_LINES, ids=range(len(ODD_LINES)))
def test_one_odd_line_of_a_csv_changes_nothing_but_its_own_row(line, tmp_path, capfd, caplog):
    rows = [b"%d,%d" % tuple(row) for row in DATA]
    traces, tables = [], []
    for number, changed in enumerate([rows, [*rows[:7], line, *rows[8:]]]):
        path = tmp_path / "data.csv"
        path.write_bytes(b"\n".join([b"a,b", *changed]) + b"\n")
        tables.append(pf.measure(path, SCHEMA, [("a", "b")], pf.NON_PRIVATE))
        traces.append(trace_of(path, tmp_path / str(number), capfd, caplog))
    assert traces[0] == traces[1]
    assert tables[0].total == tables[1].total == 500
    assert np.abs(tables[0].tables[0] - tables[1].tables[0]).sum() <= 2


ODD_OBJECTS = [None, 1.5, Decimal("1"), "x", b"\xff", {"HIV": 1}, [1], date(2020, 1, 1), 2**80, {1}]


@pytest.mark.parametrize("value", ODD_OBJECTS, ids=repr)
def test_one_odd_object_in_a_frame_changes_nothing_but_its_own_row(value, tmp_path, capfd, caplog):
    schema = pf.Schema({"a": ["0", "1"], "b": 3})
    traces, tables = [], []
    for number in range(2):
        a = [Decimal(int(x)) for x in DATA[:, 0]]
        b = DATA[:, 1].astype(object)
        if number:
            a[7] = b[7] = value
        frame = pd.DataFrame({"a": pd.Series(a, dtype=object), "b": pd.Series(b, dtype=object)})
        tables.append(pf.measure(frame, schema, [("a", "b")], pf.NON_PRIVATE))
        traces.append(trace_of(frame, tmp_path / str(number), capfd, caplog))
    assert traces[0] == traces[1]
    assert np.abs(tables[0].tables[0] - tables[1].tables[0]).sum() <= 2


def test_under_add_remove_progress_counts_nothing():
    news = []
    pf.measure(DATA, SCHEMA, CLIQUES, pf.PureDP(1), "add-remove", progress=news.append)
    assert [item.done for item in news] == [None, None]
    news.clear()
    pf.measure(DATA, SCHEMA, CLIQUES, pf.PureDP(1), progress=news.append)
    assert pf.Progress("counting", 500) in news


# -- ledger and seed -------------------------------------------------------------------------------


def test_a_finished_job_needs_no_data(tmp_path):
    pd.DataFrame(DATA, columns=["a", "b"]).to_csv(tmp_path / "d.csv", index=False)
    ledger = pf.Ledger(tmp_path / "l", total=pf.PureDP(1))
    arguments = (tmp_path / "d.csv", SCHEMA, CLIQUES, pf.PureDP(1))
    first = pf.measure(*arguments, ledger=ledger, job="a")
    (tmp_path / "d.csv").unlink()
    assert pf.measure(*arguments, ledger=ledger, job="a").to_bytes() == first.to_bytes()


def test_rows_and_people_do_not_share_a_ledger(tmp_path):
    ledger = pf.Ledger(tmp_path / "l", total=pf.PureDP(10))
    pf.measure(PEOPLE, SCHEMA, [("a",)], pf.PureDP(1), ledger=ledger)
    person = pf.Schema({"a": 2, "b": 3}, unit=pf.Person("id"))
    with pytest.raises(pf.InputError, match=r"protects one row; .* one person \(id\)"):
        pf.measure(PEOPLE, person, [("a",)], pf.PureDP(1), ledger=ledger)


def test_gaussian_tables_after_a_structure_in_one_epsilon_delta_ledger(tmp_path):
    """Halves of a total: a stable release, then Gaussian noise asked as (ε, δ)."""
    ledger = pf.Ledger(tmp_path / "l", total=pf.ApproxDP(2, 1e-6))
    half = ledger.total * 0.5
    ledger.charge("structure", half, "replace-one")
    m = pf.measure(DATA, SCHEMA, CLIQUES, half, noise="gaussian", ledger=ledger)
    assert m.cost == gaussian_cost(half, 100) and ledger.remaining is None


def test_a_job_is_measured_once(tmp_path):
    ledger = pf.Ledger(tmp_path / "l", total=pf.PureDP(1))
    first = pf.measure(DATA, SCHEMA, CLIQUES, pf.PureDP(0.6), ledger=ledger, job="a")
    again = pf.measure(DATA, SCHEMA, CLIQUES, pf.PureDP(0.6), ledger=ledger, job="a")
    assert first.to_bytes() == again.to_bytes()
    assert ledger.spent.epsilon == 0.6
    with pytest.raises(pf.InputError, match="another request"):
        pf.measure(DATA, SCHEMA, [("a",)], pf.PureDP(0.6), ledger=ledger, job="a")
    with pytest.raises(pf.BudgetRefused, match=r"Missing: epsilon=0\.2"):
        pf.measure(DATA, SCHEMA, CLIQUES, pf.PureDP(0.6), ledger=ledger)


def test_bad_input_is_found_before_anything_is_charged(tmp_path):
    ledger = pf.Ledger(tmp_path / "l", total=pf.PureDP(1))
    (tmp_path / "empty.csv").touch()
    (tmp_path / "other.csv").write_text("x,y\n1,2\n")
    before = sorted(p.name for p in tmp_path.iterdir())
    bad = [
        ({"data": tmp_path / "none.csv"}, "none.csv"),
        ({"data": tmp_path / "empty.csv"}, "empty"),
        ({"data": tmp_path / "other.csv"}, "'a'"),
        ({"data": 3}, "int"),
        ({"data": DATA[:, :1]}, "2"),
        ({"schema": {"a": 2}}, "schema must be a pf.Schema; got dict"),
        ({"cliques": []}, "at least one"),
        ({"cliques": "ab"}, "list of tuples"),
        ({"cliques": [("a", "z")]}, "no variable 'z'"),
        ({"cliques": [("a", "a")]}, "names a variable twice"),
        ({"cliques": [("a", "b"), ("b", "a")]}, "is listed twice"),
        ({"cliques": [()]}, "empty clique"),
        ({"budget": None}, "budget must be .*got NoneType"),
        ({"budget": 1.0}, "budget must be .*got float"),
        ({"budget": pf.NON_PRIVATE}, "NON_PRIVATE cannot be charged"),
        ({"adjacency": "replace"}, "adjacency must be one of"),
        ({"adjacency": "flip-outcome"}, "for marginals"),
        ({"adjacency": "add-remove"}, "replace-one releases"),
        ({"noise": "loud"}, "noise must be"),
        ({"noise": "gaussian"}, "no pure ε"),
        ({"insecure_seed": -1}, "insecure_seed must be a whole number from 0; got -1"),
        ({"insecure_seed": "x"}, "insecure_seed must be"),
        ({"progress": 5}, "progress must be a function; got int"),
        ({"job": 5}, "job must be non-empty text"),
    ]
    for changes, text in bad:
        arguments = {
            "data": DATA,
            "schema": SCHEMA,
            "cliques": CLIQUES,
            "budget": pf.PureDP(0.1),
        } | changes
        with pytest.raises(pf.InputError, match=text):
            pf.measure(ledger=ledger, **arguments)
    assert ledger.charges() == []
    assert sorted(p.name for p in tmp_path.iterdir()) == before


def test_a_table_too_large_is_refused_with_its_size(tmp_path):
    schema = pf.Schema(dict.fromkeys("abcd", 1000))
    ledger = pf.Ledger(tmp_path / "l", total=pf.PureDP(1))
    text = r"The largest is \('a', 'b', 'c', 'd'\) with 1,000,000,000,000 cells"
    with pytest.raises(pf.InputError, match=text):
        pf.measure(np.zeros((3, 4), int), schema, [tuple("abcd")], pf.PureDP(1), ledger=ledger)
    assert ledger.charges() == []


def test_a_seed_repeats_the_noise_and_stamps_the_result(tmp_path):
    runs = [pf.measure(DATA, SCHEMA, CLIQUES, pf.PureDP(1), insecure_seed=5) for _ in range(2)]
    assert runs[0].to_bytes() == runs[1].to_bytes()
    assert runs[0].stamp.startswith("NOT PRIVATE")
    runs[0].save(tmp_path / "m")
    assert "NOT PRIVATE" in repr(pf.Measurements.load(tmp_path / "m"))


def test_an_error_while_reading_says_how_to_go_on(tmp_path):
    """Records were not readable: charged, nothing released, and a retry costs nothing."""
    ledger = pf.Ledger(tmp_path / "l", total=pf.PureDP(1))
    import pyarrow as pa

    def broken():
        yield pa.record_batch({"a": [0, 1], "b": [0, 2]})
        raise OSError("CANARY disk trouble")

    reader = pa.RecordBatchReader.from_batches(
        pa.schema([("a", pa.int64()), ("b", pa.int64())]), broken()
    )
    with pytest.raises(pf.InputError) as caught:
        pf.measure(reader, SCHEMA, CLIQUES, pf.PureDP(1), ledger=ledger, job="a")
    assert "CANARY" not in str(caught.value)
    assert "job='a'" in caught.value.__notes__[0]
    m = pf.measure(DATA, SCHEMA, CLIQUES, pf.PureDP(1), ledger=ledger, job="a")
    assert m.total == 500 and ledger.spent.epsilon == 1


def test_no_rows_at_all():
    m = pf.measure(DATA[:0], SCHEMA, CLIQUES, pf.PureDP(1))
    assert m.total == 0 and m.tables[0].shape == (2, 3)
    assert io.BytesIO(m.to_bytes()).getbuffer().nbytes > 0
