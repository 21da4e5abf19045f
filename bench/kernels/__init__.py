"""The table of single layers: what kernels_per_layer reads, matches and prints."""
