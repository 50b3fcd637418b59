"""Compiled loops that many rooms share."""
