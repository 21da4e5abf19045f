"""TensorFlow Lite -> Relay: TVM's importer, and what it lacks or does otherwise than LiteRT."""
