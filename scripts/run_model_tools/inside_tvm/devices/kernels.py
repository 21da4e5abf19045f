"""What the kernels of a network need of a GPU, seen on their way to TVM's code generator."""

import math
import os
import re
import tempfile
from contextlib import contextmanager

from run_model_tools.inside_tvm import Refusal
from run_model_tools.inside_tvm.operators.own_operators import once

KINDS = ("opencl", "vulkan", "cuda")
PROMISED_GROUPS = 65535
"""In each dimension: what Vulkan promises (maxComputeWorkGroupCount), and all kinds have."""
MOST_GROUPS = {"opencl": None, "vulkan": (PROMISED_GROUPS, PROMISED_GROUPS, PROMISED_GROUPS),
               "cuda": (2 ** 31 - 1, PROMISED_GROUPS, PROMISED_GROUPS)}
"""What Vulkan promises, and all of NVIDIA's GPUs have.  OpenCL counts threads, in numbers of 64
bits."""
MOST_DEEP = 64
"""Threads of a group in the third dimension: what NVIDIA's GPUs have by all three ways, and Vulkan
promises.  In the other two they have as many as a group may have in all."""
_SHARED = ("shared", "shared.dyn")
_DECLARATION = re.compile(r"^__kernel void \w+\([^;{]*\);\n", re.MULTILINE)
_DEFINITION = re.compile(r"^__kernel void (?=(\w+)\()", re.MULTILINE)
_MANY = 4096
"""Numbers that one thread may work on where there are fewer threads than a subgroup has; beyond
this, a kernel is counted as one that leaves the GPU idle."""


class Needs:
    """Of all kernels together: threads of a group, groups, bytes of shared memory, types of
    numbers."""

    def __init__(self):
        self.kernels = 0
        self.threads = 1
        self.deep = 1
        """Of them in the third dimension."""
        self.groups = [1, 1, 1]
        """Of the kernel that has most, in each dimension."""
        self.group_sizes = {}
        """{kernel: threads of its groups in each dimension}"""
        self.shared_bytes = 0
        self.types = set()
        self.idle = []
        """Kernels whose groups have one thread, though there is work for many."""
        self.longest = {"kernel": "", "steps": 0}
        """The kernel in which one thread does most, and how many numbers it writes on the way."""

    def see(self, tvm, name, function):
        """Takes a lowered kernel in."""
        extents, shared, work = {}, 0, 1

        def visit(node):
            nonlocal shared, work
            if isinstance(node, tvm.tir.AttrStmt) and node.attr_key == "thread_extent":
                if isinstance(node.value, tvm.tir.IntImm):
                    extents[str(node.node.thread_tag)] = int(node.value)
            elif isinstance(node, tvm.tir.Allocate):
                scope = str(node.buffer_var.type_annotation.storage_scope)
                if scope in _SHARED:
                    count = 1
                    for extent in node.extents:
                        count *= int(extent)
                    kind = tvm.DataType(node.dtype)
                    shared += count * kind.lanes * ((kind.bits + 7) // 8)
            elif isinstance(node, tvm.tir.For) and isinstance(node.extent, tvm.tir.IntImm):
                work = max(work, int(node.extent))
            elif isinstance(node, (tvm.tir.BufferLoad, tvm.tir.BufferStore)):
                self.types.add(str(tvm.DataType(str(node.buffer.dtype))))

        tvm.tir.stmt_functor.post_order_visit(function.body, visit)
        size, grid = ([extents.get("%s.%s" % (word, axis), 1) for axis in "xyz"]
                      for word in ("threadIdx", "blockIdx"))
        threads, groups = math.prod(size), math.prod(grid)
        steps = steps_of_a_thread(tvm, function.body)
        if steps > self.longest["steps"]:
            self.longest = {"kernel": name, "steps": steps}
        self.kernels += 1
        self.threads = max(self.threads, threads)
        self.deep = max(self.deep, size[2])
        self.groups = [max(pair) for pair in zip(self.groups, grid)]
        self.group_sizes[name] = size
        self.shared_bytes = max(self.shared_bytes, shared)
        if threads == 1 and (groups > 1 or work > _MANY):
            self.idle.append(name)

    def describe(self):
        """For metadata.json."""
        return {"threads_per_group": self.threads, "shared_memory_bytes": self.shared_bytes,
                "types": sorted(self.types), "longest_thread": self.longest}


def steps_of_a_thread(tvm, body):
    """How many numbers a thread writes, in memory or on the way there, whatever its index is."""
    tir = tvm.tir
    if isinstance(body, tir.SeqStmt):
        return sum(steps_of_a_thread(tvm, one) for one in body.seq)
    if isinstance(body, tir.For):
        extent = int(body.extent) if isinstance(body.extent, tir.IntImm) else 1
        return extent * steps_of_a_thread(tvm, body.body)
    if isinstance(body, tir.IfThenElse):
        otherwise = steps_of_a_thread(tvm, body.else_case) if body.else_case else 0
        return max(steps_of_a_thread(tvm, body.then_case), otherwise)
    if isinstance(body, tir.BufferStore):
        return tvm.DataType(body.value.dtype).lanes
    inner = getattr(body, "body", None)
    return 0 if inner is None else steps_of_a_thread(tvm, inner)


def _with_exact_choices(tir, function):
    """The function without max and min of floats: OpenCL's may give anything where one is NaN, and
    nan_arithmetic.py counts on the second."""
    def chosen(node):
        if not str(node.dtype).startswith("float"):
            return None
        compare = tir.GT if isinstance(node, tir.Max) else tir.LT
        return tir.Select(compare(node.a, node.b), node.a, node.b)

    return function.with_body(tir.stmt_functor.ir_transform(
        function.body, None, chosen, ["tir.Max", "tir.Min"]))


def _ready_for_drivers(tvm, module, group_sizes):
    """The module of OpenCL C without TVM's declarations of all kernels before each of them, none of
    which calls another: of a recurrent network's 268 kernels they are 12 of 13 MB, which a driver
    would read at every kernel.  Each says what size its groups have: a driver that does not know
    may give a thread registers of which the GPU has too few for so many threads."""
    load = tvm.get_global_func("runtime.module.loadfile_cl", allow_missing=True)
    if load is None:
        return module

    def sized(match):
        size = group_sizes.get(match[1])
        return match[0] if size is None else (
            "__kernel __attribute__((reqd_work_group_size(%d, %d, %d))) void " % tuple(size))

    with tempfile.TemporaryDirectory(prefix="run_model-") as folder:
        path = os.path.join(folder, "kernels.cl")
        module.save(path)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(_DEFINITION.sub(sized, _DECLARATION.sub("", text)))
        return load(path, "cl")


@once
def _complete_opencl(tvm):
    """Calls functions by OpenCL's names where TVM has no rule and takes those of C's library."""
    for name in ("tan", "asin", "acos", "atan", "asinh", "acosh", "atanh"):
        tvm.ir.register_intrin_lowering("tir." + name, target="opencl", f=lambda call, name=name: (
            tvm.tir.call_pure_extern(call.dtype, name, call.args[0])))


@contextmanager
def seen(tvm, target):
    """Gives the Needs of what is compiled for a target's GPU while it is open; None for a CPU."""
    kind = target.kind.name
    if kind not in KINDS:
        yield None
        return
    name = "target.build." + kind
    original = tvm.get_global_func(name, allow_missing=True)
    if original is None:
        raise Refusal("generator", "this TVM %s has no code generator for %s" % (
            tvm.__version__, kind))
    needs = Needs()
    if kind == "opencl":
        _complete_opencl(tvm)

    def build(module, of_target):
        for variable, function in module.functions.items():
            needs.see(tvm, str(variable.name_hint), function)
        if kind == "opencl":
            module = tvm.IRModule({variable: _with_exact_choices(tvm.tir, function)
                                   for variable, function in module.functions.items()},
                                  attrs=module.attrs)
            return _ready_for_drivers(tvm, original(module, of_target), needs.group_sizes)
        return original(module, of_target)

    tvm.register_func(name, build, override=True)
    try:
        yield needs
    finally:
        tvm.register_func(name, original, override=True)
