"""Kernels of this project's own for the TVM compiler.

Runs inside of TVM's process (see scripts/run_model_tools/tvm_worker.py).  A network is read from
Relay (reading.py), its convolutions are given kernels (choice.py) and it goes back to Relay as
calls of operators that run C code from ../c (relay_layer.py).
"""
