"""Noisy gradients."""
