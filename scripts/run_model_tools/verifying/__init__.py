"""Runs what was compiled before it is put in place, and compares it with the network it is of."""
