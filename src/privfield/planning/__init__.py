"""What it will cost and how good it will be, before any data is read."""
