"""Noisy transitions of people's sequences."""
