"""Data sets on disk, read into examples: pictures and what is true of them."""
