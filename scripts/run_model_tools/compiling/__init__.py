"""ONNX -> an artifact, and what the files of an artifact hold."""
