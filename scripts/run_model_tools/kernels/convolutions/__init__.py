"""Convolutions of float32 and bfloat16: the ways to compute them, and what is joined to them."""
