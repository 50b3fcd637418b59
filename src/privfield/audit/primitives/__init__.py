"""Checks of the samplers that mechanisms are built from."""
