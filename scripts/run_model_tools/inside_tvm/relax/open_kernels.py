"""Our kernels for tensors whose extents are open.

Products with weights run the kernel of a few rows, for one block after the other: rows are computed
apart, so that what is added to fill up the last block changes nothing.  Other products, and
convolutions, run code that learns the extents when it runs (kernels/c/f32-open.c.in).
"""

import numpy as np

from run_model_tools.inside_tvm.own_kernels import Unusable
from run_model_tools.inside_tvm.relax.own_kernels import wanted_isa
from run_model_tools.kernels.c_compiler import C_FOLDER, c_to_object, target_flags
from run_model_tools.kernels.relax.ffi_c import FAIL, RUNTIME, VALUES

OPERATORS = ("relax.matmul", "relax.nn.conv1d", "relax.nn.conv2d")
"""Of which OpenKernels.of() computes some."""
ROWS = 8
"""Of a block: a register tile of the kernels, and few that are computed in vain."""
_LEAST = 16
"""Depth and columns of products that are worth a kernel."""
_WIDE = 16
"""Vectors of columns from which a product is cut into four parts, for several cores."""
_MOST_AXES = 10
"""f32-open.c.in's."""
_LEAST_CHANNELS = 4
"""Of a group's result: fewer leave a tile's rows without work."""
_OTHERS = ("but those of products and convolutions they are for networks of fixed shapes, and for "
           "batches of samples that are computed apart: ")
_ANY = "run_model_any_"
_PRODUCTS, _CONVOLUTION = _ANY + "products", _ANY + "convolution"

_CALL = """\
typedef struct {
  const char *in; char *out; const void *constant; char *last_in, *last_out; long rows, blocks;
} Rows;
"""

_FUNCTION = """\
int %(symbol)s(int, const void *, const void *, void *, void *, void *);
static int %(name)s_blocks(int id, Group *group, void *of) {
  const Rows *c = of;
  long first, end;
  share(id, group, c->blocks * %(parts)d, &first, &end);
  if (first == end) return 0;
  void *scratch = %(scratch)s;
  if (%(scratch_bytes)d && !scratch) return -1;
  for (long t = first; t < end; ++t) {
    const long block = t %% c->blocks;
    const int last = (block + 1) * %(rows)d > c->rows;
    %(symbol)s((int)(t / c->blocks), last ? c->last_in : c->in + block * %(in_bytes)d, c->constant,
               last ? c->last_out : c->out + block * %(out_bytes)d, 0, scratch);
  }
  if (scratch) give(scratch);
  return 0;
}
/* (rows, packed weights, [products]) */
EXPORTED __tvm_ffi_%(name)s(void *self, const Any *values, int count, Any *result) {
  (void)self, (void)result;
  const Tensor *in = count == 3 ? tensor(&values[0]) : 0;
  const Tensor *weights = in ? tensor(&values[1]) : 0, *out = weights ? tensor(&values[2]) : 0;
  if (!out) return refuse();
  long rows = 1;
  for (int i = 0; i < in->ndim - 1; ++i) rows *= in->shape[i];
  if (!rows) return 0;
  Rows c = {data(in), data(out),
            data(weights), 0, 0, rows,
            (rows + %(rows)d - 1) / %(rows)d};
  const long more = rows %% %(rows)d, from = rows - more;
  if (more) {
    c.last_in = get(%(in_bytes)d + %(out_bytes)d);
    if (!c.last_in) return no_memory();
    c.last_out = c.last_in + %(in_bytes)d;
    __builtin_memset(c.last_in, 0, %(in_bytes)d);
    __builtin_memcpy(c.last_in, c.in + from * %(in_row)d, more * %(in_row)d);
  }
  const int failed = launch(%(name)s_blocks, &c);
  if (more) {
    __builtin_memcpy(c.out + from * %(out_row)d, c.last_out, more * %(out_row)d);
    give(c.last_in);
  }
  return failed;
}
"""


class OpenKernels:
    """Makes calls of kernels, and their code."""

    def __init__(self, target, request):
        self.layers = {}
        """By the names of the functions that call their kernels."""
        self._names = {}
        self._any = {}
        """The functions that learn extents when they run, and what reports say of them."""
        self.reason = ""
        self._isa = None
        try:
            self._isa = wanted_isa(request, target)
            self.reason = "" if self._isa else "there are none for this target"
        except Unusable as error:
            self.reason = str(error)

    def of(self, call):
        """The call of our code that computes a normalised `call`; None where there is none."""
        name = str(getattr(call.op, "name", ""))
        if self._isa is None or name not in OPERATORS or getattr(
                call.ty.shape, "values", None) is None:
            return None
        left, right = call.args
        is_constant = type(right).__name__ == "GenericConst"
        if name != "relax.matmul":
            return self._convolution(call, left, right) if is_constant else None
        of_weights = self._product(call, left, right.value.numpy()) if is_constant else None
        return self._products(call, left, right) if of_weights is None else of_weights

    def _product(self, call, rows, weights):
        """The call that multiplies `rows`, whose last axis is the depth, with an array (depth,
        columns); None where that is nothing for the kernel."""
        from tvm import relax

        from run_model_tools.kernels.matmul import Product, make, options
        from run_model_tools.kernels.tensors import Tensor
        from run_model_tools.kernels.tiles import vectors
        from run_model_tools.kernels.views import View

        if (weights.ndim != 2 or min(weights.shape) < _LEAST
                or str(weights.dtype) != "float32" or str(rows.ty.dtype) != "float32"):
            return None
        depth, columns = weights.shape
        left = View(Tensor((ROWS, depth)), ((), ((ROWS, depth),), ((depth, 1),)))
        product = Product(left, weights)
        found = options(product, self._isa)
        if not found:
            return None
        parts = [1, 4 if vectors(columns, self._isa) >= _WIDE else 1]
        layer = make(product, self._isa, found[0]["tile"], parts)
        if len(layer.constants) != 1 or layer.shared_bytes or len(layer.phases) != 1:
            return None
        name = self._names.setdefault(layer.symbol(0), _ANY + "rows_%d" % len(self._names))
        self.layers[name] = layer
        packed = layer.constants[0]
        return relax.op.call_dps_packed(name, relax.Tuple([
            rows, relax.const(np.ascontiguousarray(packed), "float32")]), call.ty)

    def _products(self, call, left, right):
        """The call of a product of any two tensors; None where it is not for us."""
        kinds = [left.ty, right.ty]
        if min(kind.ndim for kind in kinds) < 2 or max(kind.ndim for kind in kinds) > _MOST_AXES:
            return None
        return self._call_any(_PRODUCTS, call, [left, right])

    def _convolution(self, call, picture, weights):
        """The call of a convolution; None where it is not for us."""
        from tvm import relax

        attrs, axes = call.attrs, picture.ty.ndim - 2
        groups, kernels = int(attrs.groups), weights.ty.shape.values[0]
        layouts = ("NCW", "OIW") if axes == 1 else ("NCHW", "OIHW")
        if (axes not in (1, 2) or (str(attrs.data_layout), str(attrs.kernel_layout)) != layouts
                or int(kernels) // groups < _LEAST_CHANNELS):
            return None
        how = [[*[fill] * (2 - axes), *(int(n) for n in numbers[:axes])] for fill, numbers in (
            (1, attrs.strides), (0, attrs.padding), (1, attrs.dilation))]
        how = relax.const(np.array([*sum(how, []), groups], np.int64), "int64")
        return self._call_any(_CONVOLUTION, call, [picture, weights, how])

    def _call_any(self, name, call, arguments):
        from tvm import relax

        if any(str(one.dtype) != "float32" for one in (
                call.ty, *(argument.ty for argument in arguments[:2]))):
            return None
        self._any[name] = {"kernel": name.removeprefix(_ANY), "extents": "any"}
        return relax.op.call_dps_packed(name, relax.Tuple(arguments), call.ty)

    def add_to(self, code, target, path, also=""):
        """Writes the object file `path`, of the kernels' functions and of `also`, C text that
        follows ffi_c's VALUES and FAIL, and adds it to `code`."""
        c_to_object(VALUES + FAIL + also + self._c_source(), target_flags(dict(target.attrs)),
                    path)
        code.objects.append(str(path))
        code.kernels += self.layers.values()

    def _c_source(self):
        any_extents = ""
        if self._any:
            any_extents = "#define LANES %d\n%s" % (
                self._isa.lanes, (C_FOLDER / "f32-open.c.in").read_text())
        return RUNTIME + any_extents + _CALL + "".join(
            _FUNCTION % {
                "name": name, "symbol": layer.symbol(0), "parts": layer.phases[0].tasks,
                "rows": ROWS, "in_row": 4 * layer.inputs[0][0][-1],
                "out_row": 4 * layer.output_shape[-1],
                "in_bytes": 4 * ROWS * layer.inputs[0][0][-1],
                "out_bytes": 4 * ROWS * layer.output_shape[-1],
                "scratch_bytes": layer.scratch_bytes,
                "scratch": "get(%dull)" % layer.scratch_bytes if layer.scratch_bytes else "0"}
            for name, layer in self.layers.items())

    def report(self, module, why):
        """metadata.json's "kernels"; `why` the network is none for the other kernels."""
        why = _OTHERS + why
        if not self.layers and not self._any:
            return {"method": "stock", "reason": self.reason or why}
        from collections import Counter

        left, ours = Counter(), 0
        for block in module["main"].body.blocks:
            for binding in block.bindings:
                name = getattr(getattr(binding.value, "op", None), "name", None)
                name = str(name).removeprefix("relax.") if name else ""
                if name == "call_dps_packed":
                    called = str(binding.value.args[0].global_symbol)
                    ours += called.startswith(_ANY)
                elif name:
                    left[name] += 1
        return {"method": "ours", "instruction_set": self._isa.name, "lanes": self._isa.lanes,
                "layers": ours, "left_to_tvm": dict(sorted(left.items())), "left_because": {},
                "layout_changes": 0, "reason": why,
                "functions": {**{name: dict(layer.note, rows="any")
                                 for name, layer in self.layers.items()}, **self._any}}


def rewritten(tvm, module, target, request, folder, code):
    """`module`, which was read as it is, with calls of our code, and metadata.json's "kernels"; the
    code is added to `code`.  Raises Unusable where there is nothing for it."""
    from tvm import relax
    from tvm.relax.expr_functor import PyExprMutator, mutator

    kernels = OpenKernels(target, request)

    @mutator
    class Calls(PyExprMutator):
        def visit_call_(self, call):
            visited = self.builder_.normalize(self.visit_expr_post_order(call))
            made = kernels.of(visited)
            return visited if made is None else made

    calls = Calls(module)
    for variable, function in module.functions.items():
        if isinstance(function, relax.Function):
            calls.builder_.update_func(variable, calls.visit_expr(function))
    made = calls.builder_.get()
    report = kernels.report(made, request["unrepaired"])
    if report["method"] == "stock":
        raise Unusable(report["reason"])
    kernels.add_to(code, target, folder / "any_extents.o")
    return made, report
