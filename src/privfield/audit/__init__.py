"""Does this installation keep its privacy claims? Enumeration and likelihood ratios, no data."""
