"""One layer as C code: what a kernel's Python half makes and TVM, or a test, compiles."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Phase:
    """A parallel loop over `tasks` calls of a C function, in any order and at the same time.

    `kernel` names a function of the layer's template:

        KERNEL void kernel(int task, const void *const *inputs, const void *const *constants,
                           void *output, void *shared, void *scratch);

    All of a phase's tasks are over before the next phase begins.
    """

    kernel: str
    tasks: int


@dataclass(frozen=True)
class Window:
    """Picture i is picture first + step * i of a tensor of `count`; outside of it, zeros or, with
    `nearest`, the first or the last one."""

    first: int
    step: int
    count: int
    nearest: bool = False

    def places(self, pictures: int) -> np.ndarray:
        """Of so many pictures, where each lies; -1 where it is zeros."""
        places = self.first + self.step * np.arange(pictures)
        inside = places.clip(0, self.count - 1)
        return inside if self.nearest else np.where(places == inside, places, -1)

    def is_inside(self, pictures: int) -> bool:
        """Whether so many pictures are all of the tensor's."""
        last = self.first + self.step * (pictures - 1)
        return min(self.first, last) >= 0 and max(self.first, last) < self.count

    def of(self, other: Window) -> Window:
        """The window of the tensor that is this window of what another one sees."""
        return replace(other, first=other.first + other.step * self.first,
                       step=other.step * self.step)


@dataclass(frozen=True)
class Layer:
    """C code and constants that compute one output from some inputs.

    The C code is `template` (a file of kernels/c) with `defines` in front, so every shape is a
    constant of the compiler's.  All buffers are dense and aligned to 16 bytes at least.
    """

    kind: str
    """Names the operator, and with it the graph's node and the profile's line: "conv2d_direct"."""
    template: str
    """TYPE-ALGORITHM.c.in, as "f32-conv-direct.c.in"."""
    defines: dict[str, object]
    """Macros; a sequence of numbers becomes a braced list, a float a float32 literal."""
    phases: tuple[Phase, ...]
    inputs: tuple[tuple[tuple[int, ...], str], ...]
    """(shape, dtype) of each activation."""
    constants: tuple[np.ndarray, ...]
    """Weights and the like, in the layout that the C code wants."""
    output_shape: tuple[int, ...]
    output_dtype: str = "float32"
    shared_bytes: int = 0
    """Memory that all tasks of all phases see; not cleared."""
    scratch_bytes: int = 0
    """Memory of one task, while it runs; not cleared."""
    images: int = 1
    """How many pictures, one after the other in each activation: every phase has as many tasks for
    each of them (batched())."""
    windows: tuple[tuple[int, Window], ...] = ()
    """Which pictures of an input, by its index, are read; else each in its place."""
    variant: str = ""
    """Register tile and instruction set, for the names of the C functions: Isa.variant()."""
    note: dict[str, object] = field(default_factory=dict)
    """What a per-layer table wants to know: {"kernel": ..., parameters, "multiply_adds": ...}."""

    def c_source(self) -> str:
        """The layer's C file.  Its functions are called `symbol(i)` for phase i."""
        lines = [c_defines(self.defines) + f'#include "{self.template}"']
        if self._zeros:
            lines.append(_CLEAR % self._zeros)
        for index, phase in enumerate(self.phases):
            ins = [f"i{i}" for i in range(len(self.inputs))]
            consts = [f"c{i}" for i in range(len(self.constants))]
            params = ["int task"] + [f"const void *{p}" for p in ins + consts]
            params += ["void *output", "void *shared", "void *scratch"]
            lines += [
                f"int {self.symbol(index)}({', '.join(params)});",
                f"int {self.symbol(index)}({', '.join(params)}) {{",
                *(self._of_image(phase) if phase.kernel != "clear" else []),
                f"  const void *const inputs[] = {{{', '.join(ins) or '0'}}};",
                f"  const void *const constants[] = {{{', '.join(consts) or '0'}}};",
                f"  {phase.kernel}(task, inputs, constants, output, shared, scratch);",
                "  return 0;", "}"]
        return "\n".join(lines) + "\n"

    def _of_image(self, phase: Phase) -> list[str]:
        """Makes a task of a batch one of a picture."""
        if self.images == 1 and not self.windows:
            return []
        lines = [f"  const long image = task / {phase.tasks // self.images};",
                 f"  task %= {phase.tasks // self.images};"]
        windows = dict(self.windows)
        if self._zeros:
            lines.append("  const void *zeros = shared;")
        for i, (shape, dtype) in enumerate(self.inputs):
            there = f"(const char *)i{i} + %s * {_bytes_of_image(shape, dtype)}"
            if i not in windows:
                lines.append(f"  i{i} = {there % 'image'};")
                continue
            window = windows[i]
            last = window.count - 1
            lines.append(f"  long p{i} = {window.first} + image * {window.step};")
            if window.nearest:
                lines.append(f"  p{i} = p{i} < 0 ? 0 : p{i} > {last} ? {last} : p{i};")
            inside = f"p{i} < 0 || p{i} > {last} ? zeros : " if self._is_zero(window) else ""
            lines.append(f"  i{i} = {inside}{there % f'p{i}'};")
        return [*lines,
                f"  output = (char *)output + image * "
                f"{_bytes_of_image(self.output_shape, self.output_dtype)};",
                f"  shared = (char *)shared + {self._zeros} + image * "
                f"{(self.shared_bytes - self._zeros) // self.images};"]

    def _is_zero(self, window: Window) -> bool:
        """Whether some picture of a window is zeros."""
        return bool((window.places(self.images) < 0).any())

    @property
    def _zeros(self) -> int:
        """Bytes at the begin of what is shared that are zeros, for windows to show."""
        sizes = [_bytes_of_image(*self.inputs[i]) for i, window in self.windows
                 if self._is_zero(window)]
        return -(-max(sizes, default=0) // 64) * 64

    def symbol(self, phase: int) -> str:
        """The C name of a phase: equal code has equal names, other code others.

        It says type, algorithm, register tile and instruction set:
        "run_model_f32_conv_direct_14x2_avx512_0123456789ab_0".
        """
        text = repr((self.kind, self.template,
                     sorted((k, _c_value(v)) for k, v in self.defines.items()),
                     self.phases, self.inputs, [(c.shape, str(c.dtype)) for c in self.constants],
                     self.output_shape, self.output_dtype, self.shared_bytes, self.scratch_bytes,
                     self.variant) + ((self.images,) if self.images > 1 else ())
                    + ((self.windows,) if self.windows else ()))
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        name = self.template.split(".")[0].replace("-", "_")
        if "HALF" in self.defines:
            name = name.replace("f32", "f16")
        return "_".join(filter(None, ["run_model", name, self.variant, digest, str(phase)]))


_CLEAR = """
static void clear(int task, const void *const *inputs, const void *const *constants, void *output,
                  void *shared, void *scratch) {
  (void)task, (void)inputs, (void)constants, (void)output, (void)scratch;
  long *to = shared;
  for (long i = 0; i < %d / (long)sizeof(long); i++) to[i] = 0;
}"""
"""The phase that makes the zeros which windows show."""


def batched(layer: Layer, images: int, windows: Mapping[int, Window] | None = None) -> Layer:
    """The layer for that many pictures at once, each by itself; `windows`: of which pictures of an
    input, by its index, where that is not each in its place."""
    windows = windows or {}
    if images == 1 and not windows:
        return layer
    note = dict(layer.note)
    if "multiply_adds" in note:
        note["multiply_adds"] = images * int(str(note["multiply_adds"]))
    made = replace(
        layer, images=images, output_shape=(images, *layer.output_shape[1:]), note=note,
        windows=tuple(sorted(windows.items())),
        phases=tuple(Phase(phase.kernel, phase.tasks * images) for phase in layer.phases),
        inputs=tuple(((windows[i].count if i in windows else images, *shape[1:]), dtype)
                     for i, (shape, dtype) in enumerate(layer.inputs)),
        shared_bytes=-(-layer.shared_bytes // 64) * 64 * images)
    zeros = made._zeros
    return made if not zeros else replace(
        made, phases=(Phase("clear", 1), *made.phases), shared_bytes=zeros + made.shared_bytes)


def _bytes_of_image(shape: tuple[int, ...], dtype: str) -> int:
    return int(np.prod(shape[1:])) * np.dtype(dtype).itemsize


def c_defines(defines: dict[str, object]) -> str:
    """C text of macros, as Layer.defines says them."""
    return "".join(f"#define {name} {_c_value(value)}\n"
                   for name, value in sorted(defines.items()))


def _c_value(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        return np.float32(value).item().hex() + "f"
    if isinstance(value, str):
        return value
    return "{" + ", ".join(_c_value(item) for item in value) + "}"
