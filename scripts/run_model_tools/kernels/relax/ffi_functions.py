"""Layers as functions of tvm-ffi's C ABI, which Relax calls with the tensors that they read and,
last, the one that they write (call_dps_packed)."""

from __future__ import annotations

from collections.abc import Mapping

from run_model_tools.kernels.layer import Layer
from run_model_tools.kernels.relax.ffi_c import FAIL, RUNTIME, VALUES

_READ = """\
static int read(const Any *values, int count, void **places) {
  for (int i = 0; i < count; ++i) {
    const Tensor *given = tensor(&values[i]);
    if (!given) return -1;
    places[i] = data(given);
  }
  return 0;
}
"""


def c_source(layers: Mapping[str, Layer]) -> str:
    """C code of a function for each layer, by its name."""
    functions = [_function(name, layer) for name, layer in layers.items()]
    return "".join([VALUES, FAIL, RUNTIME, _READ, *functions])


def _function(name: str, layer: Layer) -> str:
    count = len(layer.inputs) + len(layer.constants) + 1
    call = f"{name}_call"
    lines = [f"typedef struct {{ void *data[{count}]; void *shared; }} {call};"]
    arguments = ", ".join(f"c->data[{i}]" for i in range(count))
    types = ", ".join(["int", *["const void *"] * (count - 1), "void *, void *, void *"])
    for index, phase in enumerate(layer.phases):
        symbol = layer.symbol(index)
        lines += [
            f"int {symbol}({types});",
            f"static int {name}_{index}(int id, Group *group, void *of) {{",
            f"  const {call} *c = of;",
            "  long first, end;",
            f"  share(id, group, {phase.tasks}, &first, &end);",
            "  if (first == end) return 0;",
            *([f"  void *scratch = get({layer.scratch_bytes}ull);",
               "  if (!scratch) return -1;"] if layer.scratch_bytes else ["  void *scratch = 0;"]),
            "  for (long t = first; t < end; ++t) {",
            f"    {symbol}((int)t, {arguments}, c->shared, scratch);", "  }",
            *(["  give(scratch);"] if layer.scratch_bytes else []),
            "  return 0;", "}"]
    lines += [
        f"__attribute__((visibility(\"default\"))) int __tvm_ffi_{name}(",
        "    void *self, const Any *values, int count, Any *result) {",
        "  (void)self;", "  (void)result;",
        f"  {call} c = {{.shared = 0}};",
        f"  if (count != {count} || read(values, count, c.data)) return refuse();",
        *([f"  c.shared = get({layer.shared_bytes}ull);",
           "  if (!c.shared) return no_memory();"] if layer.shared_bytes else []),
        "  int failed = 0;",
        "  Group one = {0, 1};", "  (void)one;"]
    for index, phase in enumerate(layer.phases):
        run = (f"launch({name}_{index}, &c)" if phase.tasks > 1
               else f"{name}_{index}(0, &one, &c) ? no_memory() : 0")
        lines.append(f"  if (!failed) failed = {run};")
    lines += [*(["  give(c.shared);"] if layer.shared_bytes else []), "  return failed;", "}"]
    return "\n".join(lines) + "\n"
