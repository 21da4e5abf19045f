"""What compiled functions check of their arguments: the same, by one call instead of branches.

TVM 0.18 (MakePackedAPI) gives each function a branch, with a sentence that spells its condition,
for each dimension of each tensor.  In a network of many layers of ours these are nine tenths of
the library and a third of the time to compile.  Here each function hands its arguments to one that
all share (kernels/c/argument-check.c.in), with a table of what they shall be.
"""

import re
from contextlib import contextmanager

from run_model_tools.inside_tvm import is_supported

CHECK = "run_model_arguments_differ"

# What the sentences of TVM's assertions end in, of those that the shared function makes, too: what
# they expect of a tensor, and the rest.
_TYPE = re.compile(r"\.dtype is expected to be (\w+)$")
_DEVICE = re.compile(r"\.device_type has an unsatisfied constraint: (\d+) == ")
_OTHERS = re.compile(
    r": num_args should be |: TVMValue\* arg pointer was NULL|: int\* type_codes was NULL"
    r"|: Expect arg\[\d+\] to be pointer|\.ndim is expected to equal "
    r"| is expected to have non-NULL (DLTensor\* |data )pointer"
    r"|\.(shape\[\d+\]|device_id) has an unsatisfied constraint: "
    r"|\.byte_offset has an unsatisfied constraint: T\.uint64\(0\) == "
    r"|\.strides: expected to be compact array")

# What tvm_struct_get() is asked for: TVMStructFieldKind of tvm/tir/builtin.h.
_DATA_OF_TENSOR, _VALUE_OF_ARGUMENT = 1, 12


@contextmanager
def shared(tvm, target):
    """Within, functions for the CPU `target` that TVM 0.18 compiles check their arguments so,
    where there is a compiler of the shared one."""
    from run_model_tools.kernels.c_compiler import target_flags

    name = "target.build.llvm"
    original, ir = tvm.get_global_func(name), _shared_function(tvm, target)

    def build(mod, its_target):
        # Constants are folded on this machine, whatever the target.
        if ir is None or target_flags(dict(its_target.attrs)) != target_flags(dict(target.attrs)):
            return original(mod, its_target)
        is_carried = False
        for variable, function in mod.functions.items():
            if isinstance(function, tvm.tir.PrimFunc):
                changed = with_shared_check(tvm, function, variable.name_hint)
                if changed is not function and not is_carried:
                    changed = changed.with_body(tvm.tir.AttrStmt(
                        tvm.runtime.convert("run_model"), "pragma_import_llvm",
                        tvm.tir.StringImm(ir), changed.body))
                    is_carried = True
                mod[variable] = changed
        return original(mod, its_target)

    tvm.register_func(name, build, override=True)
    try:
        yield
    finally:
        tvm.register_func(name, original, override=True)


def _shared_function(tvm, target):
    """The LLVM IR of the function that looks at arguments, or None."""
    from run_model_tools.kernels.c_compiler import (
        C_FOLDER,
        CompileError,
        compile_to_ir,
        target_flags,
    )

    if target.kind.name != "llvm" or not is_supported(tvm):
        return None
    try:
        return compile_to_ir((C_FOLDER / "argument-check.c.in").read_text(),
                             ["-fvisibility=hidden", *target_flags(dict(target.attrs))], [CHECK])
    except CompileError:
        return None


def with_shared_check(tvm, function, name):
    """The function with one check; as it is if it begins with anything but TVM's known ones, or
    takes anything but tensors of shapes that are known."""
    tir = tvm.tir
    names, types, devices, body = [], [], [], function.body
    while True:
        if isinstance(body, tir.AssertStmt):
            message, rest = body.message, body.body
        elif _is_of_strides(tir, body):
            message, rest = body.seq[0].then_case.message, body.seq[1]
        elif isinstance(body, (tir.LetStmt, tir.DeclBuffer)) or (
                isinstance(body, tir.AttrStmt) and body.attr_key == "storage_alignment"):
            names.append(body)
            body = body.body
            continue
        else:
            break
        text = str(message.value)
        type_, device = _TYPE.search(text), _DEVICE.search(text)
        if type_:
            types.append(type_.group(1))
        elif device:
            devices.append(int(device.group(1)))
        elif not _OTHERS.search(text):
            return function
        body = rest
    shapes = _shapes(tir, names)
    # Types of less than a byte have no such assertion.
    if shapes is None or not len(shapes) == len(types) == len(devices):
        return function
    for statement in reversed(names):
        if isinstance(statement, tir.LetStmt):
            body = tir.LetStmt(statement.var, statement.value, body)
        elif isinstance(statement, tir.DeclBuffer):
            body = tir.DeclBuffer(statement.buffer, body)
        else:
            body = tir.AttrStmt(statement.node, statement.attr_key, statement.value, body)
    tensors = list(zip(types, devices, shapes))
    return function.with_body(_checked(tvm, function, name, tensors, body))


def _is_of_strides(tir, statement):
    """Whether it is an assertion on strides, where there are any, and what follows it."""
    if not isinstance(statement, tir.SeqStmt) or len(statement.seq) != 2:
        return False
    check = statement.seq[0]
    return (isinstance(check, tir.IfThenElse) and check.else_case is None
            and isinstance(check.then_case, tir.AssertStmt)
            and isinstance(check.then_case.body, tir.Evaluate))


def _shapes(tir, names):
    """The extents of the arguments, in their order; None where they are others than tensors, or
    some extent is not known."""
    count, data, shapes = 0, [], {}
    for statement in names:
        if isinstance(statement, tir.DeclBuffer):
            if statement.buffer.data in data:
                shapes[data.index(statement.buffer.data)] = list(statement.buffer.shape)
        elif isinstance(statement, tir.LetStmt) and isinstance(statement.value, tir.Call) and (
                statement.value.op.name == "tir.tvm_struct_get"):
            kind = int(statement.value.args[2])
            count += kind == _VALUE_OF_ARGUMENT
            if kind == _DATA_OF_TENSOR:
                data.append(statement.var)
    if len(shapes) != count or not all(
            isinstance(extent, tir.IntImm) for shape in shapes.values() for extent in shape):
        return None
    return [[int(extent) for extent in shapes[index]] for index in range(count)]


def _checked(tvm, function, name, tensors, body):
    import numpy as np

    tir = tvm.tir
    table = [len(tensors)]
    for name_of_type, device, shape in tensors:
        type_ = tvm.DataType(name_of_type)
        table += [type_.type_code, type_.bits, type_.lanes, device, len(shape), *shape]
    values, codes, count = function.params[:3]
    expected = tir.Var("expected", tvm.ir.PointerType(tvm.ir.PrimType("int64"), "global"))
    differ = tir.call_extern("int32", CHECK, values, codes, count.astype("int64"), expected)
    message = tir.StringImm("%s takes %s, and was called with something else" % (
        name, ", ".join("%s %s" % (type_, shape) for type_, _, shape in tensors)))
    # TVM prints an assertion's condition before its message: the name of a constant is the least.
    fits = tir.Var("arguments_fit", "bool")
    failure = tir.LetStmt(fits, tir.const(False, "bool"),
                          tir.AssertStmt(fits, message, tir.Evaluate(0)))
    body = tir.SeqStmt([tir.IfThenElse(differ != 0, failure, None), body])
    numbers = tvm.nd.array(np.array(table, "int64"))
    return tir.AllocateConst(expected, "int64", [len(table)], numbers, body)
