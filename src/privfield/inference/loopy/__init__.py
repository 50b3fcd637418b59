"""Belief propagation on graphs with cycles."""
