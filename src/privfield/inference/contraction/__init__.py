"""Exact inference by contracting along an elimination tree."""
