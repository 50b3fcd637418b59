"""What the command line's options mean."""
