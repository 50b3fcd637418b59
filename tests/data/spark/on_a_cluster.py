"""A program for `test_spark.py`: every way over rows on two executors, with speculation.

Then executors are killed, one in mid-task, one whose sums others wait for, so that a stage must run
again. The last job fails on a value that Spark would quote, on the screen as well.
"""

import os
import signal
import sys
from pathlib import Path

import pyspark
import test_spark as cases
from pyspark import cloudpickle
from pyspark.sql import SparkSession

import privfield as pf
from privfield.data.aggregate import RowCount
from privfield.data.spark import jobs
from privfield.data.table import open_table
from privfield.mechanisms.chains.mechanism import ChainTransitions
from privfield.mechanisms.frank_wolfe import rows
from privfield.mechanisms.frank_wolfe.pairwise import PairwiseFrankWolfe
from privfield.mechanisms.gradients.sgd import StochasticGradients
from privfield.mechanisms.graphs.structure import StableStructure
from privfield.mechanisms.moments.mechanism import SecondMoments
from privfield.mechanisms.tables.mechanism import ContingencyTables

FOLDER = Path(sys.argv[1])
# sums of rows, people, signs and sequences, samples of kept rows, blocks of rows and of people;
# other mechanisms take one of these ways, and `test_spark.py` has them all
WAYS = {ContingencyTables, SecondMoments, ChainTransitions, StochasticGradients, StableStructure}


def kill_once(marker):
    """Kill the Java process that this worker serves, the first time."""
    try:
        os.close(os.open(FOLDER / marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    daemon = Path(f"/proc/{os.getppid()}/stat").read_text()
    os.kill(int(daemon.rpartition(")")[2].split()[1]), signal.SIGKILL)


class KillsAnExecutor(RowCount):
    """In mid-task."""

    def partial(self, batches):
        found = super().partial(batches)
        kill_once("killed")
        return found


def killing_adder(batches, add=jobs.add_slices):
    """With the executor are gone the sums that it has made in the stage before."""
    kill_once("killed while adding")
    yield from add(batches)


def attempts(spark):
    """How often a stage was run again, at most."""
    context = spark.sparkContext
    store, jvm = context._jsc.sc().statusStore(), context._jvm
    nothing = context._gateway.new_array(jvm.double, 0)
    stages = store.stageList(None, False, False, nothing, None)
    return max(stages.apply(place).attemptId() for place in range(stages.size()))


def main() -> None:
    for module in (sys.modules["__main__"], cases):  # workers do not see the tests
        cloudpickle.register_pickle_by_value(module)
    os.environ["SPARK_HOME"] = os.path.dirname(pyspark.__file__)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.speculation": "true",
        "spark.speculation.interval": "50ms",
        "spark.speculation.multiplier": "1.01",
        "spark.speculation.quantile": "0.1",
        "spark.executor.memory": "512m",
        "spark.deploy.maxExecutorRetries": "-1",  # a slow machine loses some of them
        "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "spark.local.dir": str(FOLDER),
    }
    builder = SparkSession.builder.master("local-cluster[2,1,1024]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    tables = {name: getattr(cases, name) for name in ("TABLE", "BITS")}
    frames = {name: cases.frame_of(spark, table).cache() for name, table in tables.items()}
    for kind, name, release in cases.SAME:
        if kind in WAYS:
            found, here = release(frames[name]), release(tables[name])
            assert found.to_bytes() == here.to_bytes(), kind
    rows._MOST_PATTERNS = 1  # so that every step is a pass on Spark
    for kind, name, release in cases.SAME:
        if kind is PairwiseFrankWolfe:
            assert release(frames[name]).to_bytes() == release(tables[name]).to_bytes()
    bare, frame = pf.Schema(cases.LABELS), frames["TABLE"]
    assert open_table(frame, bare).aggregate(KillsAnExecutor()).tolist() == [frame.count()]
    assert (FOLDER / "killed").exists()
    jobs.add_slices = killing_adder
    pairs = [("a", "b"), ("b", "c")]
    found, here = (
        pf.measure(data, bare, pairs, pf.ZCDP(1), insecure_seed=4)
        for data in (frame.repartition(6), tables["TABLE"])
    )
    assert found.to_bytes() == here.to_bytes()
    assert (FOLDER / "killed while adding").exists()
    assert attempts(spark) > 0
    bad = frame.selectExpr("cast(concat('SECRET', id) as int) as a", "b", "c")
    try:
        pf.measure(bad, bare, [("a",)], pf.ZCDP(1))
    except pf.InputError as error:
        print(error)
    spark.stop()


if __name__ == "__main__":
    main()
