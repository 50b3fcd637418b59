"""A Spark session for the command line."""

from __future__ import annotations

import os
import sys
from typing import Any

from privfield.data.guard import guarded
from privfield.errors import InputError


def start_session(master: str) -> Any:
    """A session at that master; "default" is the one that spark-submit was told.

    Spark's own messages are switched off: those about failed tasks may quote records.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise InputError(
            "--spark needs PySpark and Java 17: pip install 'privfield[spark]'."
        ) from None
    builder: Any = SparkSession.builder
    if master != "default":
        builder = builder.master(master)
    if master.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = builder.config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false").appName("privfield")
    problem = (
        f"--spark: Spark cannot be started at {master!r}. It must be local[2], a master's address "
        "such as spark://host:7077 or yarn, or default; and Java 17 must be installed."
    )
    spark = guarded(builder.getOrCreate, problem)
    spark.sparkContext.setLogLevel("OFF")
    return spark
