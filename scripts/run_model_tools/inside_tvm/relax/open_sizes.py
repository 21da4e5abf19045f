"""A network for inputs of several sizes: read at some of them, made one function, and guarded."""

import json

from run_model_tools.inside_tvm import Refusal
from run_model_tools.inside_tvm.relax import recurrent
from run_model_tools.inside_tvm.relax.generalising import Differs, generalise
from run_model_tools.inside_tvm.relax.importing import read_onnx
from run_model_tools.inside_tvm.relax.open_kernels import OpenKernels

_C_SOURCE = """\
/* A sentence in which %d stands for a number. */
static int fail_with(const char *text, long long number) {
  char message[1024];
  unsigned at = 0;
  for (; *text && at < sizeof message - 32; ++text) {
    if (text[0] != '%' || text[1] != 'd') { message[at++] = *text; continue; }
    char digits[24];
    unsigned count = 0;
    do digits[count++] = (char)('0' + number % 10); while (number /= 10);
    while (count) message[at++] = digits[--count];
    ++text;
  }
  message[at] = 0;
  return fail(message);
}

static int copy(const Tensor *from, Tensor *to) {
  __builtin_memcpy(data(to), data(from), bytes(from));
  return 0;
}

/* (tensor, [the same]) */
EXPORTED __tvm_ffi_run_model_same_extents(void *self, const Any *values, int count, Any *result) {
  (void)self, (void)result;
  const Tensor *from = count == 2 ? tensor(&values[0]) : 0;
  Tensor *to = from ? tensor(&values[1]) : 0;
  if (!to || from->ndim != to->ndim) return refuse();
  for (int i = 0; i < from->ndim; ++i) {
    if (from->shape[i] != to->shape[i])
      return fail("the network does not take inputs of these sizes: inside of it, extents that "
                  "have to be equal are not");
  }
  return copy(from, to);
}
"""

_GUARD = """\
/* (input, [the same]) */
EXPORTED __tvm_ffi_%(name)s(void *self, const Any *values, int count, Any *result) {
  (void)self, (void)result;
  const Tensor *from = count == 2 ? tensor(&values[0]) : 0;
  Tensor *to = from ? tensor(&values[1]) : 0;
  if (!to || from->ndim != %(rank)d || to->ndim != %(rank)d) return refuse();
%(checks)s
  return copy(from, to);
}
"""

_CHECK = """\
  if (from->shape[%(axis)d] < %(least)dll || from->shape[%(axis)d] > %(most)dll ||
      from->shape[%(axis)d] %% %(step)dll)
    return fail_with(%(text)s, from->shape[%(axis)d]);"""


def read(tvm, request, target, folder, code):
    """(module, metadata's "kernels") of the request's readings; what it calls is added to `code`.
    Raises Refusal "open" if they are not one network of any size."""
    opened = request["opened"]
    readings, hidden = [], []
    for reading in request["readings"]:
        with recurrent.installed():
            readings.append(read_onnx(tvm, dict(request, **reading)))
        hidden.append(_hidden(reading["onnx"]))
    inputs = list(opened["inputs"].items())
    guards, source = _guards(inputs, opened["limits"])
    try:
        module = generalise(tvm, readings, [shape for _, shape in inputs], opened["samples"],
                            hidden, guards)
    except Differs as error:
        raise Refusal("open", str(error)) from error
    except Exception as error:
        # TVM's inference, of an operator that it does not know with open extents.
        lines = (str(error).strip() or type(error).__name__).splitlines()
        raise Refusal("open", lines[-1]) from error
    kernels = OpenKernels(target, request)
    module = kernels.rewritten(module)
    kernels.add_to(code, target, folder, _C_SOURCE + source + recurrent.C_SOURCE)
    return module, kernels.report(module, opened["reason"])


def _hidden(path):
    import onnx
    from onnx import numpy_helper

    from run_model_tools.onnx_repair.open_extents import HIDDEN, VALUE

    return {tensor.name[:-len(VALUE)]: numpy_helper.to_array(tensor)
            for tensor in onnx.load(path).graph.initializer if tensor.name.startswith(HIDDEN)}


def _guards(inputs, limits):
    """(names, C code) of functions that look at an input's sizes, by the inputs' places; each
    symbol is looked at where it stands first."""
    names, source, seen = {}, [], set()
    for index, (name, shape) in enumerate(inputs):
        new = [(axis, symbol) for axis, symbol in enumerate(shape)
               if isinstance(symbol, str) and symbol not in seen]
        seen.update(symbol for _, symbol in new)
        if not new:
            continue
        names[index] = "run_model_expect_sizes_%d" % index
        source.append(_GUARD % {
            "name": names[index], "rank": len(shape), "checks": "\n".join(_CHECK % dict(
                limits[symbol], axis=axis, text=json.dumps(_sentence(symbol, name, limits[symbol])))
                for axis, symbol in new)})
    return names, "\n".join(source)


def _sentence(symbol, name, limits):
    allowed = "%d to %d" % (limits["least"], limits["most"])
    if limits["step"] > 1:
        allowed += " in steps of %d" % limits["step"]
    text = "the extent '%s' of the input '%s' is %%d, and this artifact is for %s" % (
        symbol, name, allowed)
    return text.encode("ascii", "replace").decode()[:900]
