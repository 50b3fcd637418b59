"""Answers to parity queries."""
