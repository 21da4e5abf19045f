"""The tools: what the commands in scripts/ do, a sub-package for each question.

compiling   ONNX -> an artifact, and what an artifact's files hold
tuning      measuring how to compile best, and keeping what was best
inside_tvm  what of these runs inside TVM's process, under any Python from 3.8 on
kernels     this project's own kernels, as TVM's compiler gets them (C code: the folder kernels/c)
zoo         the list of networks, where they come from, their reference results
pictures    how pictures become tensors, and the committed pictures and labels
boards      what is brought to a board, and how it is driven from here
setup       what is brought here from registries of packages
fixtures    data that tests compare with
"""

__version__ = "0.1.0"
