"""A network for inputs of several sizes: read at some of them, made one function, and guarded."""

import json

from run_model_tools.errors import last_line
from run_model_tools.inside_tvm import Refusal
from run_model_tools.inside_tvm.relax import recurrent, same_extents
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
"""

_GUARD = """\
/* (input, those whose extents its own are sums of, [the same]) */
EXPORTED __tvm_ffi_%(name)s(void *self, const Any *values, int count, Any *result) {
  (void)self, (void)result;
  const Tensor *from = count == %(count)d ? tensor(&values[0]) : 0;
  Tensor *to = from ? tensor(&values[count - 1]) : 0;
  if (!to || from->ndim != %(rank)d || to->ndim != %(rank)d) return refuse();
%(checks)s
  return copy(from, to);
}
"""

_CHECK = """\
  if (from->shape[%(axis)d] < %(least)dll || from->shape[%(axis)d] > %(most)dll ||
      from->shape[%(axis)d] %% %(step)dll)
    return fail_with(%(text)s, from->shape[%(axis)d]);"""

_PART = """\
  const Tensor *other%(at)d = tensor(&values[%(at)d]);
  if (!other%(at)d || other%(at)d->ndim <= %(axis)d) return refuse();"""

_TOTAL = """\
  if (from->shape[%(axis)d] != %(sum)s) return fail_with(%(text)s, from->shape[%(axis)d]);"""


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
    guards, source = _guards(inputs, opened["limits"], opened["totals"])
    try:
        module = generalise(tvm, readings, [shape for _, shape in inputs], opened["samples"],
                            hidden, guards, opened["totals"])
    except Differs as error:
        raise Refusal("open", str(error)) from error
    except Exception as error:
        # TVM's inference, of an operator that it does not know with open extents.
        raise Refusal("open", last_line(error)) from error
    kernels = OpenKernels(target, request)
    module = kernels.rewritten(module)
    kernels.add_to(code, target, folder, "".join([
        _C_SOURCE, same_extents.C_SOURCE, source, recurrent.C_SOURCE]))
    return module, kernels.report(module, opened["reason"])


def _hidden(path):
    import onnx
    from onnx import numpy_helper

    from run_model_tools.onnx_repair.open_extents import HIDDEN, VALUE

    return {tensor.name[:-len(VALUE)]: numpy_helper.to_array(tensor)
            for tensor in onnx.load(path).graph.initializer if tensor.name.startswith(HIDDEN)}


def _guards(inputs, limits, totals):
    """({an input's place: (name, places of other inputs that it takes)}, C code) of functions that
    look at an input's sizes; each symbol is looked at where it stands first, totals everywhere."""
    guards, source, seen = {}, [], {}
    for index, (_, shape) in enumerate(inputs):
        for axis, symbol in enumerate(shape):
            if isinstance(symbol, str):
                seen.setdefault(symbol, (index, axis))
    for index, (name, shape) in enumerate(inputs):
        checks, others = [], []
        for axis, symbol in enumerate(shape):
            if symbol in totals:
                parts, more = totals[symbol]
                first = len(others) + 1
                others += [seen[part][0] for part in parts]
                checks += [_PART % {"at": at, "axis": seen[part][1]}
                           for at, part in enumerate(parts, first)]
                checks.append(_TOTAL % {
                    "axis": axis, "text": json.dumps(_total_sentence(symbol, name, parts, more)),
                    "sum": " + ".join(["other%d->shape[%d]" % (at, seen[part][1])
                                       for at, part in enumerate(parts, first)] + [str(more)])})
            elif seen.get(symbol) == (index, axis):
                checks.append(_CHECK % dict(
                    limits[symbol], axis=axis,
                    text=json.dumps(_sentence(symbol, name, limits[symbol]))))
        if not checks:
            continue
        guards[index] = "run_model_expect_sizes_%d" % index, others
        source.append(_GUARD % {"name": guards[index][0], "rank": len(shape),
                                "count": len(others) + 2, "checks": "\n".join(checks)})
    return guards, "\n".join(source)


def _total_sentence(symbol, name, parts, more):
    total = " + ".join([*("'%s'" % part for part in parts), *([str(more)] if more else [])])
    text = "the extent '%s' of the input '%s' is %%d, and this artifact is for %s" % (
        symbol, name, total)
    return text.encode("ascii", "replace").decode()[:900]


def _sentence(symbol, name, limits):
    allowed = "%d to %d" % (limits["least"], limits["most"])
    if limits["step"] > 1:
        allowed += " in steps of %d" % limits["step"]
    text = "the extent '%s' of the input '%s' is %%d, and this artifact is for %s" % (
        symbol, name, allowed)
    return text.encode("ascii", "replace").decode()[:900]
