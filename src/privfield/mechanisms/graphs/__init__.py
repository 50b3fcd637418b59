"""Graphs released as a whole, if they are stable."""
