"""Markov random fields from noisy tables."""
