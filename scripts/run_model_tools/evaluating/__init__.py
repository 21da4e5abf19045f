"""Judges a compiled network on a whole data set: the command evaluate_model."""
