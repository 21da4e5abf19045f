"""Networks in 8 bits: the layers that compute with bytes, and graphs that are quantized already."""
