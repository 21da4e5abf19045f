"""An ONNX file that goes to TVM's importer as it is, since shapes in it depend on values."""

from contextlib import contextmanager
from types import SimpleNamespace

from run_model_tools.inside_tvm.relax import same_extents, suppression
from run_model_tools.inside_tvm.relax.importing import read_onnx
from run_model_tools.kernels.relax.ffi_c import FAIL, RUNTIME, VALUES

_OF_SHAPES = {"Cast", "CastLike", "Concat", "ConstantOfShape", "Equal", "Expand", "Gather",
              "Reshape", "Resize", "Shape", "Slice", "Squeeze", "Where"}
"""What the importer makes of shapes as they are."""

_OF_TWO = {"Add", "And", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Mul",
           "Or", "Sub"}
"""Operators of two tensors with the same extents, or 1."""


def read(tvm, request, target, folder, code):
    """The Relax module of the file; functions in C that it calls are added to `code`."""
    with suppression.installed(), _operands_that_fit():
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
            shapes = {} if node.op_type in _OF_SHAPES else {
                name: self._nodes[name] for name in node.input
                if isinstance(getattr(self._nodes.get(name), "ty", None), relax.ShapeType)}
            self._nodes.update({name: self.bb.emit(relax.op.shape_to_tensor(shape))
                                for name, shape in shapes.items()})
            construct(self, SimpleNamespace(node=[node]))
            self._nodes.update(shapes)
            self._nodes.update({name: _with_extents(self.bb, self._nodes[name])
                                for name in node.output if name in self._nodes})

    def of_fitting(self, name, inputs, attributes, opset):
        """In branches, too."""
        if name in _OF_TWO:
            inputs[1] = _with_extents_of(self.bb, *inputs)
        return convert(self, name, inputs, attributes, opset)

    importer._construct_nodes, importer._convert_operator = with_tensors, of_fitting
    try:
        yield
    finally:
        importer._construct_nodes, importer._convert_operator = construct, convert


def _with_extents(bb, made):
    """A result of which the importer knows no extents, as that of branches, with a symbol for each:
    TVM compiles hardly anything that is done to one without."""
    from tvm import relax, tirx

    kind = bb.normalize(made).ty if isinstance(made, relax.Expr) else None
    if not isinstance(kind, relax.TensorType) or kind.shape is not None or kind.ndim < 1:
        return made
    symbols = [tirx.Var("extent_%d" % axis, "int64") for axis in range(kind.ndim)]
    return bb.match_cast(made, relax.TensorType(symbols, kind.dtype))


def _with_extents_of(bb, first, second):
    """The second tensor with the first one's extents, which are compared at run time, where it is
    not seen that they are the same; TVM gives up there.  An extent that may be 1 is none of 1."""
    from tvm import relax, sym, tirx

    wanted, have = (getattr(getattr(bb.normalize(one).ty, "shape", None), "values", None)
                    for one in (first, second))
    if wanted is None or have is None:
        return second
    analyzer, shape = sym.Analyzer(), list(have)
    for axis in range(-min(len(wanted), len(have)), 0):
        pair = wanted[axis], have[axis]
        if not analyzer.can_prove_equal(*pair) and not any(
                isinstance(one, tirx.IntImm) and one.value == 1 for one in pair):
            shape[axis] = wanted[axis]
    if all(a is b for a, b in zip(shape, have)):
        return second
    return bb.emit(same_extents.of(second, relax.TensorType(shape, second.ty.dtype)))
