"""Peer effects from noisy statistics of one network."""
