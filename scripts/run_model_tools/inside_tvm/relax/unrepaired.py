"""An ONNX file that goes to TVM's importer as it is, since shapes in it depend on values."""

from contextlib import contextmanager
from types import SimpleNamespace

from run_model_tools.inside_tvm.relax import computed_extents, folding, same_extents, suppression
from run_model_tools.inside_tvm.relax.importing import read_onnx
from run_model_tools.kernels.relax.ffi_c import FAIL, RUNTIME, VALUES

_OF_SHAPES = {"Cast", "CastLike", "Concat", "ConstantOfShape", "Equal", "Expand", "Gather",
              "Reshape", "Resize", "Shape", "Slice", "Squeeze", "Where"}
"""What the importer makes of shapes as they are."""

_OF_NUMBERS = {"Add", "Div", "Mul", "Range", "Sub", "Unsqueeze"}
"""What it makes of whole numbers that are extents, if all operands are such or constant."""

_INT64 = 7
"""What ONNX calls it."""

_OF_TWO = {"Add", "And", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Mul",
           "Or", "Sub"}
"""Operators of two tensors with the same extents, or 1."""


def read(tvm, request, target, folder, code):
    """The Relax module of the file; functions in C that it calls are added to `code`."""
    with suppression.installed(), computed_extents.installed(), _operands_that_fit():
        module = read_onnx(tvm, request)
    code.add_c(VALUES + FAIL + RUNTIME + same_extents.C_SOURCE + suppression.C_SOURCE,
               "unrepaired", target, folder)
    return module


@contextmanager
def _operands_that_fit():
    """Has the importer take numbers of shapes in all operators, of which it refuses most, and
    arithmetic on tensors whose extents are not seen to be the same."""
    from tvm import relax
    from tvm.relax.frontend.onnx import onnx_frontend

    importer = onnx_frontend.ONNXGraphImporter
    construct, convert = importer._construct_nodes, importer._convert_operator

    def with_tensors(self, graph):
        for node in graph.node:
            folded = folding.folded(node, self._nodes, self.opset)
            if folded is not None:
                self._nodes.update(folded)
                continue
            shapes = {} if node.op_type in _OF_SHAPES else {
                name: self._nodes[name] for name in node.input
                if isinstance(getattr(self._nodes.get(name), "ty", None), relax.ShapeType)}
            if not _is_of_numbers(node, self._nodes):
                shapes.update({name: self._nodes[name] for name in node.input
                               if _is_number(self._nodes.get(name))})
            self._nodes.update({name: _as_tensor(self.bb, shape) for name, shape in shapes.items()})
            construct(self, SimpleNamespace(node=[node]))
            self._nodes.update(shapes)
            self._nodes.update({name: _with_extents(self.bb, self._nodes[name])
                                for name in node.output if name in self._nodes})

    def of_fitting(self, name, inputs, attributes, opset):
        """In branches, too."""
        if name == "Concat" and not all(_is_shape_or_constant(one) for one in inputs):
            inputs[:] = [_as_tensor(self.bb, one) if isinstance(one, relax.ShapeExpr) else one
                         for one in inputs]
            inputs[1:] = [_with_extents_of(self.bb, inputs[0], one, attributes["axis"])
                          for one in inputs[1:]]
        if name in _OF_TWO:
            inputs[1] = _with_extents_of(self.bb, *inputs)
        return convert(self, name, inputs, attributes, opset)

    importer._construct_nodes, importer._convert_operator = with_tensors, of_fitting
    try:
        yield
    finally:
        importer._construct_nodes, importer._convert_operator = construct, convert


def _is_number(value):
    """Whether it is the importer's own of an extent or what it computed from such."""
    from tvm import ir

    return value is not None and ir.is_prim_expr(value)


def _is_shape_or_constant(value):
    from tvm import ir, relax

    return isinstance(value, (ir.GenericConst, relax.ShapeExpr))


def _is_of_numbers(node, known):
    """Whether the importer gives a number, or a shape, of the numbers that a node has."""
    if node.op_type == "Cast":
        return any(a.name == "to" and a.i == _INT64 for a in node.attribute)
    return node.op_type in _OF_NUMBERS and all(
        _is_number(known.get(name)) or _is_constant(known.get(name), node.op_type == "Unsqueeze")
        for name in node.input)


def _is_constant(value, is_list):
    """Whether it is a constant number, or a list."""
    from tvm import ir

    return isinstance(value, ir.GenericConst) and value.ty.ndim == int(is_list)


def _as_tensor(bb, value):
    """A number or a shape of the importer's as a tensor."""
    from tvm import relax

    if not _is_number(value):
        return bb.emit(relax.op.shape_to_tensor(value))
    one = bb.emit(relax.op.shape_to_tensor(relax.ShapeExpr([value])))
    return bb.emit(relax.op.squeeze(one, [0]))


def _with_extents(bb, made):
    """A result of which the importer knows no extents, as that of branches, with a symbol for each:
    TVM compiles hardly anything that is done to one without."""
    from tvm import relax, tirx

    kind = bb.normalize(made).ty if isinstance(made, relax.Expr) else None
    if not isinstance(kind, relax.TensorType) or kind.shape is not None or kind.ndim < 1:
        return made
    symbols = [tirx.Var("extent_%d" % axis, "int64") for axis in range(kind.ndim)]
    return bb.match_cast(made, relax.TensorType(symbols, kind.dtype))


def _with_extents_of(bb, first, second, but=None):
    """The second tensor with the first one's extents, which are compared at run time, where it is
    not seen that they are the same; TVM gives up there.  An extent that may be 1 is none of 1.

    but: an axis along which both are joined, to have the same extents along all others.
    """
    from tvm import relax, sym, tirx

    wanted, have = (getattr(getattr(bb.normalize(one).ty, "shape", None), "values", None)
                    for one in (first, second))
    if wanted is None or have is None:
        return second
    analyzer, shape = sym.Analyzer(), list(have)
    for axis in range(-min(len(wanted), len(have)), 0):
        if but is not None and axis % len(have) == but % len(have):
            continue
        pair = wanted[axis], have[axis]
        if not analyzer.can_prove_equal(*pair) and (but is not None or not any(
                isinstance(one, tirx.IntImm) and one.value == 1 for one in pair)):
            shape[axis] = wanted[axis]
    if all(a is b for a, b in zip(shape, have)):
        return second
    return bb.emit(same_extents.of(second, relax.TensorType(shape, second.ty.dtype)))
