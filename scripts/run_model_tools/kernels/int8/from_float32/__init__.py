"""A float32 network -> the same network in 8 bits, by what its activations are on some pictures."""
