"""Noisy contingency tables."""
