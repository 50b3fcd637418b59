"""Any source of records, as batches of columns."""
