"""Noisy second moments."""
