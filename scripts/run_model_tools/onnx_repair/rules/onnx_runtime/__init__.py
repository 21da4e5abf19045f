"""Operators of ONNX Runtime's own (com.microsoft)."""
