"""Kernels of this project's own for the TVM compiler.

It runs inside of TVM 0.18, in the process that tvm_process.py starts.  A network is read from Relay
(relay/reading.py), its layers are given kernels (registry.py), in 8 bits where that is asked for
(int8/), and it goes back to Relay as calls of operators that run C code of the repository's
kernels/c (relay/operators.py).
"""
