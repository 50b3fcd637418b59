"""Small algebra that many rooms share: interactions of tables."""
