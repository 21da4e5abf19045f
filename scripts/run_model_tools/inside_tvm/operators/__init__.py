"""Operators that TVM lacks, computes otherwise than ONNX, or takes long for."""
