"""A program for `test_spark.py`: two executors, speculation on, one of them killed in mid-task.

Its last job fails on a value that Spark would quote, on the screen as well.
"""

import os
import signal
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyspark
from pyspark import cloudpickle
from pyspark.sql import SparkSession

import privfield as pf
from privfield.data.aggregate import RowCount
from privfield.data.table import open_table, unit_of
from privfield.mechanisms.frank_wolfe import rows
from privfield.mechanisms.frank_wolfe.pairwise import PairwiseFrankWolfe

SEED = 4
FOLDER = Path(sys.argv[1])
SCHEMA = pf.Schema({"a": 2, "b": 2, "c": 2}, unit=pf.Person("id", rows=2))


class KillsAnExecutor(RowCount):
    """Kills the Java process that its worker serves, the first time."""

    def partial(self, batches):
        found = super().partial(batches)
        try:
            os.close(os.open(FOLDER / "killed", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return found
        daemon = Path(f"/proc/{os.getppid()}/stat").read_text()
        os.kill(int(daemon.rpartition(")")[2].split()[1]), signal.SIGKILL)


def main() -> None:
    cloudpickle.register_pickle_by_value(sys.modules["__main__"])
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
        "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "spark.local.dir": str(FOLDER),
    }
    builder = SparkSession.builder.master("local-cluster[2,1,1024]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    rng = np.random.default_rng(SEED)
    columns = {name: rng.integers(0, 2, 2000) for name in "abc"}
    table = pa.table({**columns, "id": [f"p{n}" for n in rng.integers(0, 900, 2000)]})
    frame = spark.createDataFrame(table.to_pylist(), "a long, b long, c long, id string")
    frame = frame.repartition(3)
    common = {"schema": SCHEMA, "insecure_seed": SEED}
    unit, budget = unit_of(SCHEMA), pf.ZCDP(1)
    rows._MOST_PATTERNS = 1  # so that every step is a pass on Spark
    for release in (
        lambda data: pf.measure(data, SCHEMA, [("a", "b"), ("c",)], budget, insecure_seed=SEED),
        lambda data: PairwiseFrankWolfe.measure(data, budget, unit, width=1.0, steps=2, **common),
    ):
        assert release(frame).to_bytes() == release(table).to_bytes()
    bare = pf.Schema({"a": 2, "b": 2, "c": 2})
    assert open_table(frame, bare).aggregate(KillsAnExecutor()).tolist() == [2000]
    assert (FOLDER / "killed").exists()
    bad = frame.selectExpr("cast(concat('SECRET', id) as int) as a", "b", "c")
    try:
        pf.measure(bad, bare, [("a",)], budget)
    except pf.InputError as error:
        print(error)
    spark.stop()


if __name__ == "__main__":
    main()
