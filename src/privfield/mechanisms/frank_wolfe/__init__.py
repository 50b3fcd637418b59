"""Private Frank–Wolfe."""
