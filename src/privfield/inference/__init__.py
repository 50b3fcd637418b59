"""Answers of a Markov random field: exact contraction, belief propagation, samplers."""
