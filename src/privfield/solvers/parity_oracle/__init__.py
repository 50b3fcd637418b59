"""The best parity for a cloud of weighted states."""
