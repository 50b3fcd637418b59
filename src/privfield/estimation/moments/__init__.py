"""Ising models from noisy second moments."""
