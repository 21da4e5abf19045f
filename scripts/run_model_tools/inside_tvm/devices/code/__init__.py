"""Kernels of TIR -> text (GLSL, CUDA C++) -> code -> the bytes of a module as TVM makes it."""
