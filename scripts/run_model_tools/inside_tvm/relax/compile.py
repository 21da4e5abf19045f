"""A trained network -> a Relax executable in one library: the actions "compile_relax"
and "compile_many_relax"."""

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from run_model_tools.errors import last_line
from run_model_tools.inside_tvm import Refusal, own_kernels, result_or_error, tell
from run_model_tools.inside_tvm.cpu import host_plan_target, llvm_features, native_target
from run_model_tools.inside_tvm.relax import (
    aligned_constants,
    batches,
    exact_sizes,
    nan_operators,
    open_kernels,
    open_sizes,
    recurrent,
    unrepaired,
)
from run_model_tools.inside_tvm.relax.importing import read_onnx
from run_model_tools.inside_tvm.relax.own_kernels import Code, rewrite, wanted_isa

_LIST_OPTIONS = ("mattr", "keys", "libs")
_OF_OPEN_SIZES = ("dynamic", "unrepaired")
"""What a request says of a network that is read as it is, and does not hold for its exact sizes."""


def compile_model(tvm, request):
    """A trained network -> model.so in `directory`."""
    text = request["target"]
    if text == "native":
        lanes = request.get("host_lanes")
        text = host_plan_target(tvm, lanes) if lanes else native_target(tvm)
    target = _make_target(tvm, text)
    if target.kind.name != "llvm":
        raise Refusal("target", "Relax is compiled by LLVM here, and it is for %s"
                      % target.kind.name)
    nan_operators.install(tvm)
    tell(request, "work", at="the network is read")
    with tempfile.TemporaryDirectory(prefix="run_model-") as folder:
        with tvm.transform.PassContext(opt_level=request["opt_level"]):
            code = Code()
            module, kernels = _read(tvm, request, target, Path(folder), code)
            axes = request.get("batch_axes")
            if axes:
                module = batches.of_any_size(tvm, module, axes, target, Path(folder), code)
            signature = describe(tvm, module["main"])
            if request.get("exact"):
                module, kernels["exact"] = _with_exact_sizes(
                    tvm, module, request, target, Path(folder), code)
            tell(request, "work", at="kernels are compiled")
            objects = code.files(target, Path(folder))
            tell(request, "work", at="TVM compiles the rest")
            executable = build(module, target)
        tell(request, "work", at="the library is linked")
        unaligned = link(executable, os.path.join(request["directory"], "model.so"), request,
                         objects, target)
    return dict(signature, target=text, requested=request["target"], kernels=kernels, tuning=None,
                unaligned_constants=unaligned, llvm_features=llvm_features(tvm, target))


def _read(tvm, request, target, folder, code):
    """(module, metadata.json's "kernels") of the network, read once or at several sizes."""
    if "readings" in request:
        return open_sizes.read(tvm, request, target, folder, code)
    return _on_kernels(tvm, request, target, folder, code)


def _on_kernels(tvm, request, target, folder, code):
    """(module, metadata.json's "kernels") of a network that is read once, on our kernels where it
    can be."""
    if "onnx_with_layers" in request:
        try:
            with recurrent.installed(wanted_isa(request, target)):
                module = read_onnx(tvm, dict(request, onnx=request["onnx_with_layers"]))
            return rewrite(module, target, request, code)
        except own_kernels.Unusable:
            pass  # Step by step it can be compiled nevertheless.
    is_repaired = "unrepaired" not in request
    module = read_onnx(tvm, request) if is_repaired else unrepaired.read(
        tvm, request, target, folder, code)
    try:
        if not is_repaired:
            return open_kernels.rewritten(module, target, request, folder, code)
        return rewrite(module, target, request, code)
    except own_kernels.Unusable as error:
        if request.get("kernels") == "ours":
            raise Refusal("kernels", str(error)) from error
        return module, {"method": "stock", "reason": str(error)}


def _file_of(one):
    return {key: one[key] for key in ("onnx", "onnx_with_layers") if key in one}


def _with_exact_sizes(tvm, module, request, target, folder, code):
    """`module` with functions for some sizes beside its main function, and what "kernels" says of
    each."""
    made, kernels = [], []
    of_all = {key: value for key, value in request.items() if key not in _OF_OPEN_SIZES}
    for one in request["exact"]:
        tell(request, "work", at="the network is read for " + one["name"])
        exact, report = _on_kernels(tvm, dict(of_all, **_file_of(one), shapes=one["shapes"]),
                                    target, folder, code)
        made.append((one["name"], exact))
        kernels.append(dict(report, function=one["name"], sizes=one["sizes"]))
    return exact_sizes.beside(tvm, module, made), kernels


def compile_many(tvm, request):
    """compile_model for each of request["requests"]: many small models start TVM once."""
    return {"results": [result_or_error(compile_model, tvm, one) for one in request["requests"]]}


def build(module, target):
    """TVM's default pipeline, with equal expressions computed once."""
    from tvm import relax

    try:
        module = relax.transform.EliminateCommonSubexpr()(module)
        return relax.build(module, target)
    except Exception as error:
        raise Refusal("model", last_line(error)) from error


def link(executable, path, request, objects, target):
    """Writes the library with the request's compiler.  Gives why constants are not aligned in it,
    or None where they are."""
    from tvm.runtime import _ffi_api

    unaligned = []

    def pack(module, is_system, prefix, folder):
        made = os.path.join(folder, "constants.o")
        blob = _ffi_api.ModulePackImportsToTensor(module).numpy().tobytes()
        try:
            aligned_constants.write_object(blob, made, request.get("cc") or "g++", folder)
        except (aligned_constants.UnknownForm, OSError, subprocess.CalledProcessError) as error:
            said = getattr(error, "stderr", None) or str(error)
            unaligned.append(said.strip().splitlines()[0])
            # By itself TVM takes this machine for the target where no function is left to it.
            packed = _ffi_api.ModulePackImportsToLLVM(module, is_system, str(target), prefix)
            packed.write_to_file(made)
        return made

    options = {"cc": request["cc"]} if request.get("cc") else {}
    # Debug sections and local symbols are of no use on a board; the exported names stay.
    options["options"] = ["-Wl,--strip-all"]
    if objects:
        options["addons"] = objects
    options["fpack_imports"] = pack
    try:
        executable.export_library(path, **options)
    except (RuntimeError, OSError, ValueError) as error:
        raise Refusal("link", str(error).strip()) from error
    return unaligned[0] if unaligned else None


def describe(tvm, function):
    """{"inputs", "outputs"} of a function: [name or None, shape, dtype], -1 for what is open."""
    from tvm import relax

    def tensor(name, kind):
        if not isinstance(kind, relax.TensorType):
            raise Refusal("model", "its %s is no tensor" % (name or "output"))
        if kind.ndim < 0:
            raise Refusal("model", "its %s may have any number of axes" % (name or "output"))
        extents = getattr(kind.shape, "values", None)
        if extents is None and kind.ndim != 0:
            extents = [None] * kind.ndim
        return [name, [int(e.value) if isinstance(e, tvm.tirx.IntImm) else -1
                       for e in extents or ()], str(kind.dtype)]

    def tensors(kind):
        fields = getattr(kind, "fields", None)
        if fields is None:
            return [tensor(None, kind)]
        return [one for field in fields for one in tensors(field)]

    # The function's own type forgets all extents of a result where one depends on values.
    result = getattr(function.body, "body", function.body)
    return {"inputs": [tensor(str(p.name), p.ty) for p in function.params],
            "outputs": tensors(result.ty)}


def _make_target(tvm, text):
    """The target of a string such as "llvm -mcpu=skylake -mattr=+avx2,+fma", which TVM does not
    read any more itself, or of JSON."""
    try:
        if text.lstrip().startswith("{"):
            return tvm.target.Target(text)
        kind, *options = shlex.split(text)
        attributes = {"kind": kind}
        for option in options:
            name, equals, value = option.lstrip("-").partition("=")
            if not option.startswith("-") or not equals:
                raise Refusal("target", "'%s' is not of the form -NAME=VALUE" % option)
            attributes[name] = value.split(",") if name in _LIST_OPTIONS else value
        return tvm.target.Target(attributes)
    except Refusal:
        raise
    except Exception as error:
        raise Refusal("target", last_line(error)) from error
