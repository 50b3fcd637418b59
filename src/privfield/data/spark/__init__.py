"""Tables on Apache Spark: sums are made where the rows are. docs/privacy/spark.md."""
