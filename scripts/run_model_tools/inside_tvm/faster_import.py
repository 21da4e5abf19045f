"""Lets TVM 0.18's ONNX importer take time in proportion to the network, with the same result.

The importer asks for the type, and tries to fold constants, of every new expression together with
all of the network before it; and each sum of two extents of a shape is a module that LLVM compiles.
For a transformer that is most of what compiling it takes.  Here types are inferred from those of an
expression's arguments, expressions that were folded once are remembered, and NumPy computes shapes,
which become constants as numbers: NumPy tries a dozen attributes of each of TVM's own integers.
"""

from contextlib import contextmanager

from run_model_tools.inside_tvm import faster_folding, is_supported


@contextmanager
def linear_importer(tvm):
    """While it is open, from_onnx works so; releases other than 0.18 are left as they are."""
    if not is_supported(tvm):
        yield
        return
    from onnx import checker
    from tvm.relay.frontend import common
    from tvm.relay.frontend import onnx as importer

    faster_folding.remember(tvm)
    folder = _Folder(tvm, common.fold_constant)
    infer_type = _local_inference(tvm, common.infer_type)
    replaced = [(module, name, getattr(module, name)) for module in (common, importer)
                for name in ("fold_constant", "infer_type", "shape_of")]
    replaced.append((checker, "check_model", checker.check_model))
    shape_of = _plain_shapes(tvm, common.shape_of, infer_type)
    try:
        for module in (common, importer):
            module.fold_constant = folder.fold
            module.infer_type = infer_type
            module.shape_of = shape_of
        checker.check_model = _unchecked
        tvm.ir.Op.span = None
        yield
    finally:
        del tvm.ir.Op.span
        for module, name, original in replaced:
            setattr(module, name, original)


def _unchecked(_model):
    """Of a model that was repaired, whose every node was checked, the importer makes the file once
    more to check it: weights take several times their memory."""


def _local_inference(tvm, original):
    """infer_type() that reuses the types of what an expression is made of."""
    from tvm import relay

    def infer_type(node, mod=None):
        if mod is not None or not isinstance(node, (relay.Call, relay.Tuple, relay.TupleGetItem)):
            return original(node, mod)
        try:
            relay.transform.InferTypeLocal(node)
            return node if _type_of(node) is not None else original(node, mod)
        except tvm.TVMError:
            # With the whole expression at hand TVM's message says more.
            return original(node, mod)

    return infer_type


def _plain_shapes(tvm, original, infer_type):
    """shape_of() whose constants are made of Python's integers."""
    import numpy as np
    from tvm import relay

    def shape_of(x, dtype="int64", start=None, end=None):
        extents = list(infer_type(x).checked_type.shape)
        if not all(isinstance(extent, tvm.tir.IntImm) for extent in extents):
            return original(x, dtype, start, end)
        numbers = [int(extent) for extent in extents[start or 0:end or len(extents)]]
        return relay.const(np.array(numbers, dtype), dtype)

    return shape_of


def _type_of(node):
    try:
        return node.checked_type
    except ValueError:
        return None


class _Folder:
    """fold_constant() of expressions that share what they are made of."""

    def __init__(self, tvm, original):
        from tvm import relay

        self.tvm = tvm
        self.relay = relay
        self.original = original
        self.known = {}  # expression -> what became of it

    def fold(self, node, mod=None):
        """`node` with all in it evaluated that constants decide."""
        if mod is not None:
            return self.original(node, mod)
        relay = self.relay
        stack = [node]
        while stack:
            expr = stack[-1]
            if expr in self.known:
                stack.pop()
                continue
            if isinstance(expr, relay.Call):
                parts = list(expr.args)
                if not isinstance(expr.op, self.tvm.ir.Op):
                    return self.original(node)
            elif isinstance(expr, relay.Tuple):
                parts = list(expr.fields)
            elif isinstance(expr, relay.TupleGetItem):
                parts = [expr.tuple_value]
            elif isinstance(expr, (relay.Var, relay.Constant)):
                parts = []
            else:
                # Functions and branches: what they hold is not followed here.
                return self.original(node)
            missing = [part for part in parts if part not in self.known]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            folded = self._folded(expr, parts, [self.known[part] for part in parts])
            self.known[expr] = folded
            self.known.setdefault(folded, folded)
        return self.known[node]

    def _folded(self, expr, parts, now):
        """The expression with its parts as they are now, evaluated if they are constants."""
        relay = self.relay
        changed = any(not part.same_as(new) for part, new in zip(parts, now))
        if isinstance(expr, relay.Tuple):
            return relay.Tuple(now, expr.span) if changed else expr
        if isinstance(expr, relay.TupleGetItem):
            if isinstance(now[0], relay.Tuple):
                return now[0].fields[expr.index]
            return relay.TupleGetItem(now[0], expr.index, expr.span) if changed else expr
        if not isinstance(expr, relay.Call):
            return expr
        if changed:
            expr = relay.Call(expr.op, now, expr.attrs, expr.type_args, expr.span)
        if expr.op.name in ("shape_of", "vm.shape_of", "ndarray_size"):
            return self.original(expr)
        values = [self._value(one) for one in now]
        if not now or any(value is None for value in values):
            return expr
        result = faster_folding.evaluate(expr.op.name, expr.attrs, values)
        if result is None:
            return self.original(expr)
        return relay.Constant(self.tvm.nd.array(result))

    def _value(self, expr):
        """An array, a list of them for a tuple, None for what is no constant."""
        if isinstance(expr, self.relay.Constant):
            return expr.data.numpy()
        if isinstance(expr, self.relay.Tuple):
            values = [self._value(field) for field in expr.fields]
            return None if any(value is None for value in values) else values
        return None
