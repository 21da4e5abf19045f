"""Loops and branches: decided or unrolled, or all iterations of one computed at once."""
