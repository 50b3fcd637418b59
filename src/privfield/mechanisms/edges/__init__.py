"""Which pairs to measure, and their tables, in one budget."""
