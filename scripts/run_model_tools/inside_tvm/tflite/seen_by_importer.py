"""Graphs, tensors, buffers and the table of expressions as TVM's importer reads them."""

from hashlib import sha256
from itertools import count

import numpy as np
from tflite.SubGraph import SubGraph
from tvm import relay
from tvm.relay.frontend import tflite as frontend

from run_model_tools.inside_tvm.tflite.pieces import Pieces


class SharedTable(frontend.ExprTable):
    """What all graphs of a file share: expressions by names, with equal constants once, since a
    loop has them in each iteration."""

    def __init__(self):
        super().__init__()
        self.constants = {}
        self.pieces = Pieces()
        self.calls = count()

    def new_const(self, value, shape=None, dtype="float32", source_name=None):
        array = np.asarray(value, order="C")  # np.ascontiguousarray() makes rows of scalars
        key = (str(dtype), array.dtype.str, array.shape, sha256(array).digest())
        if key not in self.constants:
            self.constants[key] = super().new_const(value, shape, dtype, source_name)
        return self.constants[key]

    def with_constants(self, body):
        """An expression in which the weights are constants and no longer variables."""
        found = [var for var in relay.analysis.free_vars(body) if var.name_hint in self.params]
        # relay.const() takes int64 for int32, unless it is told.
        return relay.bind(body, {var: relay.const(np.array(self.params[var.name_hint]),
                                                  var.type_annotation.dtype) for var in found})


class NamedGraph(SubGraph):
    """A graph, with names of its tensors."""

    def __init__(self, stored, names):
        super().__init__()
        self.Init(stored._tab.Bytes, stored._tab.Pos)
        self.names = names


class StoredBuffer:
    """A buffer of the flatbuffer, as the importer sees it."""

    def __init__(self, value):
        self.value = value

    def DataAsNumpy(self):
        return np.frombuffer(np.ascontiguousarray(self.value).tobytes(), np.uint8)

    def DataLength(self):
        return self.value.nbytes


class ComputedBuffer:
    """What the importer wants as a buffer and the file computes, as shapes are of open batches."""

    def __init__(self, compute):
        self._compute = compute

    def DataAsNumpy(self):
        return StoredBuffer(self._compute()).DataAsNumpy()

    def DataLength(self):
        return 0


class SeenTensor:
    """A tensor of the flatbuffer, as the importer sees it: of float32 and without scales."""

    def __init__(self, original, kind):
        self._original, self._kind = original, kind

    def Type(self):
        return self._kind

    def Quantization(self):
        return None

    def Sparsity(self):
        return None

    def __getattr__(self, name):
        return getattr(self._original, name)
