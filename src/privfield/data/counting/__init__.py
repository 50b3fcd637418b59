"""Contingency tables in one pass."""
