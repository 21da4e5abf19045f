"""Networks in TensorFlow Lite's format: what the file says, and running them in LiteRT."""
