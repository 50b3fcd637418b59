"""Noisy products of the scores of items on a scale."""
