"""Tables on a real Spark: the same numbers as here, bit by bit, and nothing of a record beside.

One session with two cores serves all tests of this file; `make test` keeps them on one worker.
"""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest

import privfield as pf
from privfield.cli import main
from privfield.data.aggregate import RowCount
from privfield.data.rows import Variables
from privfield.data.sequences.form import StateSet, id_unit
from privfield.data.spark import files as spark_files
from privfield.data.spark.jobs import Partial
from privfield.data.table import open_table, unit_of
from privfield.mechanisms.chains.mechanism import ChainTransitions
from privfield.mechanisms.chains.segments import Segments
from privfield.mechanisms.edges.mechanism import EdgeSelection
from privfield.mechanisms.edges.stable import StableTables
from privfield.mechanisms.forecasting.study import public_rows
from privfield.mechanisms.frank_wolfe import rows as frank_wolfe_rows
from privfield.mechanisms.frank_wolfe.general import LossFrankWolfe
from privfield.mechanisms.frank_wolfe.ising import IsingFrankWolfe
from privfield.mechanisms.frank_wolfe.logistic import LogisticFrankWolfe
from privfield.mechanisms.frank_wolfe.pairwise import PairwiseFrankWolfe
from privfield.mechanisms.frank_wolfe.polynomial import PolynomialFrankWolfe
from privfield.mechanisms.gradients.pseudolikelihood import PseudolikelihoodGradients
from privfield.mechanisms.gradients.sgd import StochasticGradients
from privfield.mechanisms.graphs.statistics import ChowLiuTree, CorrelationGraph
from privfield.mechanisms.graphs.structure import StableStructure
from privfield.mechanisms.graphs.votes import BlockVotes
from privfield.mechanisms.items.mechanism import ItemScores
from privfield.mechanisms.moments.mechanism import SecondMoments
from privfield.mechanisms.parities.gaussian import NoisyParities
from privfield.mechanisms.parities.phases import RegressionsAndParities
from privfield.mechanisms.parities.pmw import MultiplicativeWeights
from privfield.mechanisms.parities.sepfem import PerturbedLeader
from privfield.mechanisms.peers.local import LocalStatistic
from privfield.mechanisms.peers.objective import PerturbedObjective
from privfield.mechanisms.peers.statistics import NetworkStatistics
from privfield.mechanisms.registry import MECHANISMS
from privfield.mechanisms.scores.mechanism import HeldOutScore
from privfield.mechanisms.tables.mechanism import ContingencyTables
from privfield.privacy.coins import Coins
from privfield.schema import Ordered

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'privfield[spark]'")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("Spark needs Java 17, which is not installed", allow_module_level=True)

pytestmark = [
    pytest.mark.xdist_group("spark"),
    # PySpark says that it has not been tried with the newest pandas, which is not used here
    pytest.mark.filterwarnings("ignore:PySpark does not yet:FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # better code is not ready in time
SEED = 20261116
SECRET = "SECRET-4711"
LABELS = {"a": ["u", "v", "w"], "b": ["0", "1", "2", "3"], "c": ["false", "true"]}
SIGNS = pf.Schema({f"x{i}": 2 for i in range(5)})


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    from pyspark import cloudpickle
    from pyspark.sql import SparkSession

    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers do not see the tests
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    folder = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.driver.extraJavaOptions": QUICK_JAVA,
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    builder = SparkSession.builder.master("local[2,4]")  # a task may fail three times
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    session.sparkContext.setCheckpointDir(str(folder / "checkpoints"))
    yield session
    session.stop()


def made_up(rows=3000, people=700):
    """Values that fit, values that do not, nulls and people with many rows."""
    rng = np.random.default_rng(SEED)
    words = np.array(["u", "v", "w", "other", None], object)
    owners = np.floor(people * rng.random(rows) ** 2).astype(int)  # some have many rows
    return pa.table(
        {
            "a": pa.array(words[rng.choice(5, rows, p=[0.4, 0.3, 0.2, 0.07, 0.03])]),
            "b": pa.array(rng.integers(-1, 6, rows), pa.int64(), mask=rng.random(rows) < 0.02),
            "c": pa.array(rng.random(rows) < 0.3),
            "id": pa.array([f"p{n}" if n % 50 else None for n in owners], pa.string()),
        }
    )


TABLE = made_up()
BITS = pa.table({name: np.random.default_rng(1).integers(0, 2, 2000) for name in SIGNS.names})


def frame_of(spark, table, parts=3):
    """Shuffled rows in that many partitions, one of them empty."""
    order = np.random.default_rng(2).permutation(table.num_rows)
    frame = spark.createDataFrame(table.take(pa.array(order)).to_pylist(), schema=_types(table))
    return frame.repartition(parts - 1).union(frame.filter("1 = 0"))


def _types(table):
    names = {"string": "string", "int64": "long", "bool": "boolean"}
    return ", ".join(f"{field.name} {names[str(field.type)]}" for field in table.schema)


@pytest.fixture(scope="module")
def frames(spark):
    return {"TABLE": frame_of(spark, TABLE).cache(), "BITS": frame_of(spark, BITS).cache()}


def signed(kind, budget=None, **settings):
    def release(data):
        about = {"schema": SIGNS, "names": SIGNS.names, "insecure_seed": SEED}
        return kind.measure(data, budget or pf.ZCDP(1), **about, **settings)

    return kind, "BITS", release


def levelled(kind, unit=None, budget=None, wrap=list, **settings):
    schema = pf.Schema({name: wrap(levels) for name, levels in LABELS.items()}, unit=unit)

    def release(data):
        return kind.measure(
            data,
            budget or pf.ZCDP(1),
            unit_of(schema),
            schema=schema,
            insecure_seed=SEED,
            **settings,
        )

    return kind, "TABLE", release


SGD = {"steps": 2, "sampling_rate": 0.3, "clip": 1, "learning_rate": 0.01}
MOVES = ("id", "c", "a", "b")  # columns of person, sequence, state and order
PAIRS = (("a", "b"), ("b", "c"), ("a", "c"))


def sgd():
    terms = {"budget": pf.ApproxDP(1, 1e-6), "adjacency": "add-remove"}
    return levelled(StochasticGradients, cliques=PAIRS, **SGD, **terms)


def by_chance(rows):
    """A user's learner: what it finds depends on its rows, their order and its random state."""
    return [(0, 1)] * (rows[0, 0] == 0) + [(1, 2)] * (np.random.random() < 0.9)


def stable(kind, unit=None, **settings):
    schema = pf.Schema(LABELS, unit=unit)
    if kind is StableStructure:
        settings["variables"] = Variables(schema.names, schema.shape)
    return levelled(kind, unit, pf.ApproxDP(4, 0.1), blocks=9, **settings)


def chain(cut=None):
    def release(data):
        return ChainTransitions.measure(
            *(data, pf.ZCDP(1), id_unit(MOVES)),
            states=StateSet.of(LABELS["a"]),
            columns=MOVES,
            cut=cut,
            insecure_seed=SEED,
        )

    return ChainTransitions, "TABLE", release


SAME = [
    levelled(ContingencyTables, cliques=PAIRS),
    levelled(ContingencyTables, unit=pf.Person("id", rows=2), cliques=PAIRS),
    levelled(ContingencyTables, unit=pf.Person("id", rows=None), cliques=PAIRS),
    levelled(EdgeSelection),
    levelled(ItemScores, wrap=Ordered),
    levelled(PairwiseFrankWolfe, width=1.0, steps=2),
    levelled(ChowLiuTree, budget=pf.ApproxDP(1, 1e-6), names=tuple(LABELS)),
    signed(SecondMoments),
    signed(PseudolikelihoodGradients, steps=2),
    signed(IsingFrankWolfe, width=1.0, steps=2),
    signed(PolynomialFrankWolfe, width=1.0, order=3, steps=2),
    signed(NoisyParities, order=2),
    signed(MultiplicativeWeights, order=2, rounds=2),
    signed(PerturbedLeader, order=2, rounds=2),
    signed(CorrelationGraph, budget=pf.ApproxDP(1, 1e-6), threshold=0.2),
    signed(RegressionsAndParities, order=2, width=1.0, steps=2),
    sgd(),
    stable(StableStructure),
    stable(StableStructure, unit=pf.Person("id", rows=1), rule="mode"),
    stable(StableStructure, learner=by_chance),
    stable(StableTables),
    chain(),
    chain(Segments(3, 2, "all", most=1)),
]
NO_TABLES = {
    LogisticFrankWolfe,
    LossFrankWolfe,
    NetworkStatistics,
    LocalStatistic,
    PerturbedObjective,
}


def test_every_mechanism_that_reads_tables_is_here():
    tested = {kind for kind, _, _ in SAME} | {HeldOutScore}
    assert tested | NO_TABLES == set(MECHANISMS)


@pytest.mark.parametrize("case", SAME, ids=lambda case: case[0].__name__)
def test_the_same_release_as_here(case, frames):
    _, name, release = case
    assert release(frames[name]).to_bytes() == release(globals()[name]).to_bytes()


def test_many_passes_over_rows_that_executors_keep(frames, monkeypatch):
    """More possible rows than can be listed: the sums of each step are made on Spark."""
    monkeypatch.setattr(frank_wolfe_rows, "_MOST_PATTERNS", 1)
    for kind, name, release in (
        signed(IsingFrankWolfe, width=1.0, steps=3),
        levelled(PairwiseFrankWolfe, unit=pf.Person("id", rows=2), width=1.0, steps=3),
    ):
        assert release(frames[name]).to_bytes() == release(globals()[name]).to_bytes(), kind


def test_the_votes_of_blocks(frames):
    variables = Variables(tuple(LABELS), (3, 4, 2))
    task = BlockVotes(Parities(), variables, 40, 3)
    found, here = (
        open_table(data, pf.Schema(LABELS)).by_blocks(task, Coins(b"a key for a test"), 40)
        for data in (frames["TABLE"], TABLE)
    )
    assert found.tolist() == here.tolist()
    assert len(set(here.tolist())) > 4  # of 8: blocks vote differently


class Parities:
    """Finds edges by the sums of its rows' codes, and by the first row."""

    def __call__(self, rows):
        return (rows.sum(axis=0) + rows[0]) % 2 == 1


def test_scores(frames):
    model = pf.IsingModel(np.full((5, 5), 0.1) - 0.1 * np.eye(5), names=SIGNS.names)
    found, here = (
        pf.release_score(model, data, pf.PureDP(1), schema=SIGNS, insecure_seed=SEED)
        for data in (frames["BITS"], BITS)
    )
    assert found.to_bytes() == here.to_bytes()
    walk = pf.ChainModel(LABELS["a"], np.full(3, 1 / 3), np.eye(3) / 2 + 1 / 6)
    found, here = (
        pf.release_score(walk, data, pf.PureDP(1), columns=MOVES, insecure_seed=SEED)
        for data in (frames["TABLE"], TABLE)
    )
    assert found.to_bytes() == here.to_bytes()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The same rows as one Parquet file of many row groups, and as two CSV files."""
    path = tmp_path_factory.mktemp("files")
    pq.write_table(TABLE, path / "rows.parquet", row_group_size=500)
    (path / "csv").mkdir()
    for number, part in enumerate((TABLE[:1000], TABLE[1000:])):
        arrow_csv.write_csv(part, path / "csv" / f"{number}.csv")
    return path


@pytest.mark.parametrize("files", ["rows.parquet", "csv"])
def test_files_that_tasks_read(files, folder, spark, monkeypatch):
    monkeypatch.chdir(folder)  # Java and its workers stay where they are
    for unit in (None, pf.Person("id", rows=2), pf.Person("id", rows=None)):
        _, _, release = levelled(ContingencyTables, unit=unit, cliques=PAIRS)
        assert release(pf.SparkFiles(spark, files)).to_bytes() == release(files).to_bytes()


def test_csv_files_are_cut_where_records_end(spark, tmp_path, monkeypatch):
    """Quoted fields hold commas, quotes and ends of lines; pieces begin anywhere."""
    monkeypatch.setattr(spark_files, "_SPLIT_BYTES", 1001)
    words = ["u", '"v\n,"', '"w\r\n""x"""', "z,too many"]
    lines = [f"{words[n % 7 % 4]},{n % 5},true,p{n % 40}" for n in range(300)]
    path = tmp_path / "odd.csv"
    path.write_bytes(("a,b,c,id\n" + "\n".join(lines)).encode())
    levels = {"a": ["u", "v\n,", 'w\r\n"x"'], "b": 5, "c": ["false", "true"]}
    files = pf.SparkFiles(spark, str(path))
    bare, people = pf.Schema(levels), pf.Schema(levels, unit=pf.Person("id", rows=2))
    assert len(open_table(files, bare).source.rows()[1].shares) > 4
    here = pf.check(path, people)
    assert pf.check(files, people) == here and here.ragged_rows and here.quoted
    found, here = (
        pf.measure(data, bare, [("a", "b")], pf.ZCDP(1), insecure_seed=SEED)
        for data in (files, path)
    )
    assert found.to_bytes() == here.to_bytes()
    assert public_rows(files, bare) == 300


def test_folders_partitioned_as_hive_does(folder, spark):
    frame_of(spark, TABLE).write.partitionBy("c").parquet(str(folder / "hive"))
    _, _, release = levelled(ContingencyTables, cliques=PAIRS)
    found = release(pf.SparkFiles(spark, str(folder / "hive")))
    assert found.to_bytes() == release(TABLE).to_bytes()


FOLDERS = [("site", ["01", "02"], "x"), ("day", ["2024-01-01", "2024-01-02"], "unknown")]


def one_more_in_a_folder_of_its_own(spark, path, column, names, other):
    """The counts of a folder partitioned by `names`, and of that with a record of the other."""
    schema = pf.Schema({column: ["none", *names], "y": ["u", "v"]})
    counts = []
    for name in (*names, other):
        (path / f"{column}={name}").mkdir(parents=True)
        rows = pa.table({"y": ["u"] * (1 if name == other else 5)})
        pq.write_table(rows, path / f"{column}={name}" / "part.parquet")
        files = pf.SparkFiles(spark, str(path))
        if name != names[0]:
            found = pf.measure(files, schema, [(column,)], pf.NON_PRIVATE)
            counts.append(found.tables[0].tolist())
    return counts


@pytest.mark.parametrize("case", FOLDERS, ids=lambda case: case[0])
def test_no_folder_decides_how_the_names_of_others_are_read(case, spark, tmp_path):
    asked = "spark.sql.sources.partitionColumnTypeInference.enabled"
    for before in (None, "true"):
        if before:
            spark.conf.set(asked, before)
        found = one_more_in_a_folder_of_its_own(spark, tmp_path / str(before), *case)
        assert found == [[0, 5, 5], [1, 5, 5]]
        assert spark.conf.get(asked, None) == before
    spark.conf.unset(asked)


def test_people_in_any_order_and_partitioning(spark):
    schema = pf.Schema(LABELS, unit=pf.Person("id", rows=3))
    task = RowCount()
    here = open_table(TABLE, schema).aggregate(task, 5)
    _, _, release = levelled(ContingencyTables, unit=schema.unit, cliques=PAIRS)
    for parts in (2, 7, 64):
        frame = frame_of(spark, TABLE, parts)
        assert open_table(frame, schema).aggregate(task, 5) == here
        assert release(frame).to_bytes() == release(TABLE).to_bytes()


def test_check_and_the_public_number_of_rows(frames):
    for unit in (None, pf.Person("id", rows=2)):
        schema = pf.Schema(LABELS, unit=unit)
        assert pf.check(frames["TABLE"], schema) == pf.check(TABLE, schema)
    assert public_rows(frames["TABLE"], pf.Schema(LABELS)) == TABLE.num_rows


def test_a_thousand_columns(spark):
    names = [f"x{n}" for n in range(1000)]
    codes = np.random.default_rng(3).integers(0, 2, (90, 1000))
    frame = spark.createDataFrame(codes.tolist(), ", ".join(f"{name} long" for name in names))
    schema, pairs = pf.Schema(dict.fromkeys(names, 2)), list(pairwise(names))
    found, here = (
        pf.measure(data, schema, pairs, pf.ZCDP(1), insecure_seed=SEED)
        for data in (frame.repartition(3), codes)
    )
    assert found.to_bytes() == here.to_bytes()


def test_a_job_that_was_cut_off_goes_on(frames, folder, spark, tmp_path):
    """Charged once, whatever happens; what was drawn is not drawn again."""
    ledger = pf.Ledger(tmp_path / "l", pf.ZCDP(1))
    asked = {"ledger": ledger, "job": "j"}
    schema = pf.Schema(LABELS)

    def stop(news):
        if news.stage == "adding noise":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pf.measure(frames["TABLE"], schema, PAIRS, pf.ZCDP(1), progress=stop, **asked)
    found = pf.measure(frames["TABLE"], schema, PAIRS, pf.ZCDP(1), **asked)
    files = pf.SparkFiles(spark, str(folder / "rows.parquet"))
    again = pf.measure(files, schema, PAIRS, pf.ZCDP(1), **asked)  # wherever the rows are now
    assert again.to_bytes() == found.to_bytes()
    assert [charge.cost for charge in ledger.charges()] == [pf.ZCDP(1)]


class CacheIsWritable:
    """Counts tasks that can keep compiled code."""

    cells = 1

    def partial(self, batches):
        import numba

        folder = Path(numba.config.CACHE_DIR)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "probe").write_bytes(b"")
        return np.ones(1, np.int64)


def test_compiled_code_is_kept_even_if_the_folder_for_it_cannot_be_written(spark, monkeypatch):
    environment = spark.sparkContext.environment
    monkeypatch.setitem(environment, "NUMBA_CACHE_DIR", "/dev/null/no-folder")
    frame = spark.range(0, 9, 1, 2)
    assert open_table(frame, pf.Schema({"id": 9})).scan(CacheIsWritable()) == 2


def test_no_rows(spark):
    schema = pf.Schema(LABELS)
    frame = spark.createDataFrame([], "a string, b long, c boolean")
    found = pf.measure(frame, schema, PAIRS, pf.NON_PRIVATE)
    assert [table.sum() for table in found.tables] == [0, 0, 0]


def test_learners(frames):
    learner = pf.MarginalLearner(
        pf.ZCDP(10), cliques="all-pairs", schema=pf.Schema(LABELS), insecure_seed=SEED
    )
    found = learner.fit(frames["TABLE"]).model_.marginal(["c"])
    assert (found == learner.fit(TABLE).model_.marginal(["c"])).all()


# -- what is refused, before anything is charged ---------------------------------------------------


def test_what_cannot_be_done_there_is_said_before_the_charge(frames, tmp_path):
    ledger = pf.Ledger(tmp_path / "l", pf.ApproxDP(10, 1e-5))
    columns = ("id", None, "a")
    with pytest.raises(
        pf.InputError, match=r"on Spark, where rows have no order\. Name the column"
    ):
        pf.ChainLearner(pf.PureDP(1), states=["u", "v", "w"], columns=columns, ledger=ledger).fit(
            frames["TABLE"]
        )
    assert not ledger.charges()
    with pytest.raises(pf.InputError, match="data is on Spark"):
        next(open_table(frames["TABLE"], pf.Schema(LABELS)).batches())


def test_columns_that_are_missing_or_of_another_type(frames, spark):
    schema = pf.Schema({"a": ["u", "v"], "z": 2})
    with pytest.raises(pf.InputError, match=r"lacks 1 column of the schema: 'z'"):
        pf.measure(frames["TABLE"], schema, [("a",)], pf.PureDP(1))
    dates = spark.sql("select date'2024-01-01' as a, 1 as z")
    with pytest.raises(pf.InputError, match="column 'a' has type date"):
        pf.measure(dates, schema, [("a",)], pf.PureDP(1))


def test_frames_that_differ_from_reading_to_reading(frames):
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    frame, schema = frames["BITS"], pf.Schema({"x0": 2, "r": 2})
    grouped = frame.groupBy("x0")
    flip = F.udf(lambda x: x, "long").asNondeterministic()
    refused = [
        frame.withColumn("r", (F.rand() < 0.5).cast("int")),
        frame.withColumn("r", F.lit(1)).limit(10),
        frame.withColumn("r", F.lit(1)).sample(0.5, seed=1),
        frame.withColumn("r", flip("x1")),
        frame.withColumnRenamed("x1", "r").dropDuplicates(["x0"]),
        grouped.agg(F.first("x1").alias("r")),
        grouped.agg(F.first("x1").alias("r")).select("x0", "r"),
        # an aggregate of so many columns that Spark's text of it ends before the last
        grouped.agg(*(F.sum("x1").alias(f"s{k}") for k in range(40)), F.mode("x1").alias("r")),
        grouped.agg(F.max_by("x1", "x2").alias("r")),
        grouped.agg(F.expr("cast(listagg(cast(x1 as string)) as long)").alias("r")),
        frame.withColumn("r", F.first("x1").over(Window.partitionBy("x0"))),
        frame.withColumnRenamed("x1", "r").sortWithinPartitions("x0").limit(10),
        frame.withColumnRenamed("x1", "r").orderBy("x0").sample(0.5, seed=1),
        frame.withColumn("r", F.expr("(select max(id) from (select id from range(9) limit 1))")),
    ]
    for each in refused:
        with pytest.raises(pf.InputError, match="the plan of the Spark frame has"):
            pf.measure(each, schema, [("x0", "r")], pf.PureDP(1))
    kept = [
        refused[0].localCheckpoint(),
        frame.withColumnRenamed("x1", "r").orderBy("x0", "r").limit(10),
        frame.withColumn("r", F.first("x1").over(Window.partitionBy("x0").orderBy("x1"))),
        frame.withColumn("r", F.max("x1").over(Window.partitionBy("x0"))),
    ]
    for each, rows in zip(kept, (2000, 10, 2000, 2000), strict=True):
        assert pf.measure(each, schema, [("x0", "r")], pf.NON_PRIVATE).tables[0].sum() == rows


# -- nothing of a record ---------------------------------------------------------------------------


def raised(spark, frame, schema, **options):
    with pytest.raises(pf.InputError) as found:
        pf.measure(frame, schema, [("a",)], pf.PureDP(1), **options)
    return found.value


def test_errors_show_no_record(spark, tmp_path):
    """A function of the user and a cast that fails quote the value; what comes out does not."""
    from pyspark.sql import functions as F

    def fail(value):
        raise ValueError(f"cannot read {value}")

    frame = spark.createDataFrame([(SECRET,)], "a string")
    schema = pf.Schema({"a": 2})
    ledger = pf.Ledger(tmp_path / "l", pf.PureDP(10))
    for bad in (
        frame.select(F.udf(fail, "string")("a").alias("a")),
        frame.select(F.col("a").cast("int").alias("a")),
    ):
        error = raised(spark, bad, schema, ledger=ledger)
        assert "the job on Spark failed" in str(error)
        seen = [str(error), repr(error), *error.__notes__]
        seen += [repr(error.__cause__), repr(error.__context__)]
        assert not any(SECRET in text or "ValueError" in text for text in seen)
        assert any("charged" in note for note in error.__notes__)


class Failing:
    """An aggregate whose error quotes a record."""

    cells = 1

    def partial(self, batches):
        raise ValueError(SECRET)


def test_errors_of_tasks_keep_nothing_but_their_type():
    with pytest.raises(RuntimeError, match=r"reading stopped \(ValueError\)") as found:
        list(Partial(Failing().partial)(iter([])))
    assert found.value.__context__ is None
    assert SECRET not in str(found.value)


def test_progress_tells_no_numbers_and_rows_only_where_they_are_public(frames):
    for adjacency, may in (("replace-one", True), ("add-remove", False)):
        news = []
        found = pf.measure(
            frames["TABLE"],
            pf.Schema(LABELS),
            PAIRS,
            pf.PureDP(1),
            adjacency=adjacency,
            progress=news.append,
        )
        assert news and all(each.done is None for each in news)  # not even the number of tasks
        assert (found.total is not None) is may


# -- when things go wrong --------------------------------------------------------------------------


class Dying(RowCount):
    """Kills the Python process of its task, the first time."""

    def __init__(self, marker):
        self.marker = marker

    def partial(self, batches):
        found = super().partial(batches)
        try:
            os.close(os.open(self.marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return found
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_killed_in_mid_task_changes_nothing(frames, tmp_path):
    table = open_table(frames["TABLE"], pf.Schema(LABELS))
    marker = tmp_path / "died"
    assert table.aggregate(Dying(str(marker))).tolist() == [TABLE.num_rows]
    assert marker.exists()


class Slow(RowCount):
    """Takes its time."""

    def partial(self, batches):
        time.sleep(60)
        return super().partial(batches)


def test_ctrl_c_cancels_the_job(frames, spark):
    table = open_table(frames["TABLE"], pf.Schema(LABELS))
    timer = threading.Timer(2.0, os.kill, (os.getpid(), signal.SIGINT))
    start = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        table.aggregate(Slow())
    tracker = spark.sparkContext.statusTracker()
    while tracker.getActiveJobsIds() and time.monotonic() - start < 50:
        time.sleep(0.1)
    assert time.monotonic() - start < 50


def run(name, *arguments):
    """A program beside this file, to its end."""
    line = [sys.executable, Path(__file__).with_name(name), *arguments]
    env = os.environ | {"JAVA_TOOL_OPTIONS": QUICK_JAVA}
    return subprocess.run(line, capture_output=True, text=True, timeout=900, env=env)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds executors in /proc")
def test_two_executors_speculation_and_one_of_them_killed(tmp_path):
    done = run("on_a_cluster.py", tmp_path)
    assert done.stdout.startswith("data: the job on Spark failed."), done.stderr[-2000:]
    assert "SECRET" not in done.stdout + done.stderr


def test_a_client_of_spark_connect():
    pytest.importorskip("grpc")
    pytest.importorskip("zstandard")
    done = run("on_connect.py")
    assert "data: the job on Spark failed." in done.stdout, done.stderr[-2000:]
    assert "SECRET" not in done.stdout


# -- the command line ------------------------------------------------------------------------------


def test_the_command_line(folder, spark, tmp_path, capsys):
    schema = tmp_path / "s.toml"
    schema.write_text(pf.Schema(LABELS).to_toml())
    data, models = str(folder / "rows.parquet"), [tmp_path / "here.pf", tmp_path / "there.pf"]
    for model, where in zip(models, ([], ["--spark", "local[2]"]), strict=True):
        common = ["--schema", str(schema), *where]
        spend = ["--rho", "1", "--cliques", "all-pairs", "--insecure-seed", "1", "--yes"]
        assert main(["fit", data, *common, *spend, "-o", str(model)]) == 0
        assert main(["check", data, *common, "--json"]) == 0
    here, there = map(pf.load, models)
    assert (here.marginal(["a", "b"]) == there.marginal(["a", "b"])).all()
    checks = [line for line in capsys.readouterr().out.splitlines() if '"PRIVATE"' in line]
    assert len(checks) == 2


def test_addresses_that_need_spark(spark, tmp_path):
    with pytest.raises(pf.InputError, match=r"is on a remote file system, which Spark reads"):
        pf.measure("s3a://bucket/x.parquet", pf.Schema({"a": 2}), [("a",)], pf.PureDP(1))
    pq.write_table(BITS, tmp_path / "bits.parquet")
    address = (tmp_path / "bits.parquet").as_uri()  # read as any other file system of Spark
    found = pf.measure(pf.SparkFiles(spark, address), SIGNS, [("x0",)], pf.NON_PRIVATE)
    assert found.tables[0].sum() == BITS.num_rows
