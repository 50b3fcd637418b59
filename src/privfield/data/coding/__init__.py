"""Values to level codes, by public rules."""
