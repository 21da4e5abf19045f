"""Tuning by TVM 0.18's own methods, the choice among our kernels, and what compiles with the
results."""
