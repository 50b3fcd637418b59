"""Noisy statistics of one network."""
