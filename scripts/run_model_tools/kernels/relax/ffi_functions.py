"""Layers as functions of tvm-ffi's C ABI, which Relax calls with the tensors that they read and,
last, the one that they write (call_dps_packed)."""

from __future__ import annotations

from collections.abc import Mapping

from run_model_tools.kernels.layer import Layer

_HEAD = """\
typedef struct { int type; unsigned more; union { long long number; void *pointer; }; } Any;
typedef struct {
  void *data; int device[2]; int ndim; unsigned dtype; long long *shape, *strides;
  unsigned long long byte_offset;
} Tensor;
typedef struct { void *sync; int tasks; } Group;
typedef int (*Task)(int, Group *, void *);
/* The runtime puts the addresses of its functions here when it has loaded the library. */
#define SLOT __attribute__((weak, visibility("default")))
SLOT int (*__TVMBackendParallelLaunch)(Task, void *, int);
SLOT void *(*__TVMBackendAllocWorkspace)(int, int, unsigned long long, int, int);
SLOT int (*__TVMBackendFreeWorkspace)(int, int, void *);
enum { CPU = 1, FLOAT = 2, TENSOR_POINTER = 7, TENSOR_OBJECT = 70, OBJECT_HEAD = 24 };
static void *get(unsigned long long bytes) {
  return __TVMBackendAllocWorkspace(CPU, 0, bytes, FLOAT, 32);
}
static void give(void *memory) { __TVMBackendFreeWorkspace(CPU, 0, memory); }
static int read(const Any *values, int count, void **data) {
  for (int i = 0; i < count; ++i) {
    if (values[i].type != TENSOR_POINTER && values[i].type != TENSOR_OBJECT) return -1;
    const int head = values[i].type == TENSOR_OBJECT ? OBJECT_HEAD : 0;
    const Tensor *tensor = (const Tensor *)((const char *)values[i].pointer + head);
    data[i] = (char *)tensor->data + tensor->byte_offset;
  }
  return 0;
}
"""


def c_source(layers: Mapping[str, Layer]) -> str:
    """C code of a function for each layer, by its name."""
    return _HEAD + "".join(_function(name, layer) for name, layer in layers.items())


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
            f"  const int each = ({phase.tasks} + group->tasks - 1) / group->tasks;",
            "  const int first = id * each;",
            f"  const int end = first + each < {phase.tasks} ? first + each : {phase.tasks};",
            "  if (first >= end) return 0;",
            *([f"  void *scratch = get({layer.scratch_bytes}ull);",
               "  if (!scratch) return -1;"] if layer.scratch_bytes else ["  void *scratch = 0;"]),
            f"  for (int t = first; t < end; ++t) {symbol}(t, {arguments}, c->shared, scratch);",
            *(["  give(scratch);"] if layer.scratch_bytes else []),
            "  return 0;", "}"]
    lines += [
        f"__attribute__((visibility(\"default\"))) int __tvm_ffi_{name}(",
        "    void *self, const Any *values, int count, Any *result) {",
        "  (void)self;", "  (void)result;",
        f"  {call} c = {{.shared = 0}};",
        f"  if (count != {count} || read(values, count, c.data)) return -1;",
        *([f"  c.shared = get({layer.shared_bytes}ull);",
           "  if (!c.shared) return -1;"] if layer.shared_bytes else []),
        "  int failed = 0;",
        "  Group one = {0, 1};", "  (void)one;"]
    for index, phase in enumerate(layer.phases):
        run = (f"__TVMBackendParallelLaunch({name}_{index}, &c, 0)" if phase.tasks > 1
               else f"{name}_{index}(0, &one, &c)")
        lines.append(f"  if (!failed) failed = {run};")
    lines += [*(["  give(c.shared);"] if layer.shared_bytes else []), "  return failed;", "}"]
    return "\n".join(lines) + "\n"
