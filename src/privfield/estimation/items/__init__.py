"""Ordinal models from noisy products of item scores."""
