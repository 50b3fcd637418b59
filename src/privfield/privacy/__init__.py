"""Budgets, adjacency, conversions, additive noise, selection, ledger. Knows nothing of models."""
