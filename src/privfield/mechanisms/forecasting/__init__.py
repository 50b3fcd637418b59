"""What to expect of each way to do a study, and the one choice among them."""
