"""Sequences of people's states."""
