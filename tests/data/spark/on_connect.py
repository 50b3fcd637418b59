"""A program for `test_spark.py`: a client of Spark Connect, and a server that it starts."""

import os
import sys
import tempfile
from pathlib import Path

import pyspark
import pytest
import test_spark as cases
from pyspark import cloudpickle
from pyspark.sql import SparkSession

import privfield as pf


def main() -> None:
    cloudpickle.register_pickle_by_value(cases)
    os.environ["SPARK_HOME"] = os.path.dirname(pyspark.__file__)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.remote("local[2]")
    spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    from pyspark.sql import functions as F

    frame = spark.createDataFrame(cases.TABLE.to_pylist(), cases._types(cases.TABLE))
    for place in (1, 16):  # people; private SGD, which passes twice over rows that are kept
        _, _, release = cases.SAME[place]
        assert release(frame.repartition(3)).to_bytes() == release(cases.TABLE).to_bytes()
    kept = "spark.connect.session.planCache.enabled"
    spark.conf.set(kept, "false")  # as if the server had forgotten: it analyses each plan again
    with tempfile.TemporaryDirectory() as folder:
        for number, case in enumerate(cases.FOLDERS):
            place = Path(folder, str(number))
            found = cases.one_more_in_a_folder_of_its_own(spark, place, *case)
            assert found == [[0, 5, 5], [1, 5, 5]]
    spark.conf.unset(kept)
    schema, budget = pf.Schema(cases.LABELS), pf.ZCDP(1)
    assert pf.check(frame.filter(F.col("b") >= 0), schema).rows < cases.TABLE.num_rows
    refused = [
        frame.withColumn("b", (F.rand() < 0.5).cast("int")),
        frame.limit(10),
        frame.sample(0.5),
        frame.selectExpr("cast(rand() * 2 as int) as a", "b", "c"),
        frame.withColumn("b", F.udf(lambda x: x, "long")("b")),
    ]
    for each in refused:
        with pytest.raises(pf.InputError, match="a client of Spark Connect does not know what"):
            pf.measure(each, schema, [("a", "b")], budget)
    assert pf.measure(refused[0].localCheckpoint(), schema, [("a", "b")], budget).tables
    bad = frame.select(F.concat(F.lit("SECRET"), F.col("id")).cast("int").alias("a"), "b", "c")
    try:
        pf.measure(bad, schema, [("a",)], budget)
    except pf.InputError as error:
        print(error)
    spark.stop()


if __name__ == "__main__":
    main()
