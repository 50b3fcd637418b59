"""How sure an estimate is."""
