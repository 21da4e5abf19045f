"""Functions that Relax calls: whatever they fail of, they say why, since TVM's own machine breaks
down where nothing is said."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest

from run_model_tools.kernels.c_compiler import C_FOLDER
from run_model_tools.kernels.convolutions import planar
from run_model_tools.kernels.convolutions.convolution import Convolution
from run_model_tools.kernels.isa import GENERIC
from run_model_tools.kernels.layer import c_defines
from run_model_tools.kernels.relax.ffi_c import FAIL, RUNTIME, VALUES
from run_model_tools.kernels.relax.ffi_functions import c_source

# Called with 1x1x1x1 tensors, of which there are as many as the command line says: without memory,
# no kernel looks into them.
_MAIN = """
#include <stdio.h>
#include <stdlib.h>
static const char *said = "nothing";
void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message) { said = message; }
int FUNCTION(void *, const Any *, int, Any *);
static void *refuse_memory(int a, int b, unsigned long long c, int d, int e) { return 0; }
static int one_task(Task task, void *of, int count) {
  Group group = {0, 1};
  return task(0, &group, of);
}
int main(int argc, char **argv) {
  __TVMBackendParallelLaunch = one_task;
  __TVMBackendAllocWorkspace = refuse_memory;
  float number = 1;
  long long shape[4] = {1, 1, 1, 1};
  Tensor tensor = {(char *)&number, {1, 0}, 4, FLOAT, 32, 1, shape, 0, 0};
  Any values[8] = {0}, result = {0};
  for (int i = 0; i < 8; ++i) values[i] = (Any){TENSOR_POINTER, 0, .pointer = &tensor};
  const int status = FUNCTION(0, values, atoi(argv[1]), &result);
  printf("%d %s", status, said);
  return 0;
}
"""
NO_MEMORY = "-1 there is not enough memory for what a kernel keeps while it runs"
REFUSED = "-1 a kernel was given tensors of other types or extents than it is for"


def said(folder, function, sources, *arguments):
    """What `function` returns and says, given so many tensors."""
    files = []
    for index, source in enumerate(sources):
        files.append(folder / f"part{index}.c")
        files[-1].write_text(source)
    program = folder / "program"
    subprocess.run(["gcc", "-std=gnu17", "-O1", "-w", f"-DFUNCTION={function}", f"-I{C_FOLDER}",
                    "-o", program, *files], check=True)
    return [subprocess.run([program, str(count)], check=True, capture_output=True,
                           text=True).stdout for count in arguments]


def test_a_layer_without_memory_says_so(tmp_path):
    weight = np.ones((16, 3, 3, 3), np.float32)
    conv = Convolution(weight, np.zeros(16, np.float32), ((1, 3, 30, 30),), (),
                       padding=(1, 1, 1, 1))
    layer = planar.make(conv, GENERIC, **planar.options(conv, GENERIC)[0])
    assert layer.scratch_bytes
    tensors = len(layer.inputs) + len(layer.constants) + 1
    functions = c_source({"layer": layer})
    assert said(tmp_path, "__tvm_ffi_layer", [functions + _MAIN, layer.c_source()],
                tensors, tensors - 1) == [NO_MEMORY, REFUSED]


OPEN = {
    "products": ("f32-open-products.c.in", 3, {
        "LEFT_AXES": [0, 1, 2, 3], "RIGHT_AXES": [0, 1, 2, 3], "OUT_AXES": [0, 1, 2, 3],
        "TILE_ROWS": 4, "TILE_VECTORS": 2}),
    "convolution": ("f32-open-convolution.c.in", 4, {
        "HAS_GAPS": 0, "TAPS": 1, "TILE_ROWS": 4, "TILE_VECTORS": 2, "OPERANDS": 0,
        "OPERAND_FULL": [0], "PROGRAM": "const vec value = product;"}),
    "join": ("open-join.c.in", 3, {"INPUTS": 2, "AXIS": 1}),
    "transpose": ("open-transpose.c.in", 2, {"AXES": 3, "ORDER": [0, 2, 1]}),
    "interleave": ("f32-open-interleave.c.in", 2, {"DOWN": 2, "ACROSS": 2, "TOP": 0, "LEFT": 0}),
    "pool": ("f32-open-pool.c.in", 2, {
        "MAX": 1, "COUNTS_PADS": 0, "TAPS_Y": 1, "TAPS_X": 1, "STRIDE_Y": 1, "STRIDE_X": 1,
        "BEFORE_Y": 0, "BEFORE_X": 0}),
    "resize": ("f32-open-resize.c.in", 2, {"LINEAR": 1, "AT": "x", "NEAREST": "0"})}
"""By what it does: the source of a function of open extents, its tensors, and macros."""


@pytest.mark.parametrize("what", OPEN)
def test_a_kernel_of_open_extents_says_so(tmp_path, what):
    template, tensors, defines = OPEN[what]
    text = VALUES + FAIL + RUNTIME + c_defines(
        {"LANES": 4, "FUNCTION": "__tvm_ffi_open", **defines}) + f'#include "{template}"\n' + _MAIN
    answers = said(tmp_path, "__tvm_ffi_open", [text], tensors, tensors - 1)
    # One number is as many as none of the others wants: constants of whole numbers, two to join, a
    # cell of four.
    needs_memory = what in ("products", "pool", "resize")
    assert answers == [NO_MEMORY if needs_memory else REFUSED, REFUSED]
