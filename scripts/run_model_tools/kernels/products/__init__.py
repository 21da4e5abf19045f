"""Products of matrices, and weights of few bits."""
