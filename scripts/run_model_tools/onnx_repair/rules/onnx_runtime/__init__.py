"""Operators of ONNX Runtime's own."""

DOMAIN = "com.microsoft"
