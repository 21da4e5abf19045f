"""A trained network -> the files of an artifact: the actions "compile" and "compile_many"."""

import tempfile
from pathlib import Path

from run_model_tools.errors import last_line
from run_model_tools.inside_tvm import (
    Refusal,
    faster_folding,
    operators,
    own_kernels,
    pad_channels,
    result_or_error,
    tell,
)
from run_model_tools.inside_tvm.building import build_forms, build_tuned, plain_build
from run_model_tools.inside_tvm.cpu import host_plan_target, llvm_features, native_target
from run_model_tools.inside_tvm.devices import (
    filters_last,
    global_poolings,
    many_tensors,
    placement,
)
from run_model_tools.inside_tvm.devices import kernels as device_kernels
from run_model_tools.inside_tvm.devices.code import generators
from run_model_tools.inside_tvm.devices.placement import Placement
from run_model_tools.inside_tvm.export import (
    complete_c,
    export,
    names_apart,
    write_c_source,
    write_forms,
)
from run_model_tools.inside_tvm.importing import reading_once
from run_model_tools.params_file import Tensor, plain


def compile_model(tvm, request):
    """A trained network -> model.so, model.json and model.params (TVM's own writing of it) in
    `directory`.

    For the target c, model.c takes the place of model.so.  `forms` are those of forms.py.  `fast`
    (default true) is for a test, which compares with what TVM makes by itself, and `keep_text` for
    one that wants CUDA's kernels as kernels.cu.
    """
    # What the library is linked of has to be there until then.
    with tempfile.TemporaryDirectory(prefix="run_model-") as folder:
        return _compile(tvm, request, Path(folder))


def _compile(tvm, request, folder):
    target, requested = _target(tvm, request)
    operators.install(tvm)
    request["placement"] = Placement()
    if target.kind.name == "c":
        complete_c(tvm)
    if target.kind.name in generators.WRITERS:
        request["made"] = generators.install(tvm, target.kind.name, request.get("libraries"),
                                             request["placement"])
    tell(request, "work", at="the network is read")
    read, tuned = reading_once(tvm, request), None
    try:
        rewritten = own_kernels.rewrite(tvm, read, target, request)
        kernels = dict(rewritten.report, method="ours")
    except own_kernels.Unusable as error:
        if request.get("kernels") == "ours":
            raise Refusal("kernels", str(error)) from error
        rewritten, kernels = None, {"method": "stock", "reason": str(error)}
    if rewritten is not None:
        with own_kernels.apart(rewritten, target, request, folder):
            factory, linked = build_forms(tvm, rewritten.module, {}, target, request, {},
                                          faster_folding.build)
    else:
        mod = _for_schedules(tvm, read, target, request)
        factory, linked, tuned = placement.rounds(
            request["placement"], lambda: build_stock(tvm, mod, target, request))
    if request.get("row_layers"):
        kernels.update(request["row_layers"].report)
    tell(request, "work", at="the library is linked")
    _write(factory, target, request, rewritten, read.names)
    write_forms(factory, linked, request)
    return {"target": str(target), "requested": requested, "tuning": tuned, "kernels": kernels,
            "plain_schedules": request["plain_schedules"], "device": request.get("device_needs"),
            "llvm_features": llvm_features(tvm, target.host or target)}


def _target(tvm, request):
    """TVM's target, and as it was asked for."""
    text, host = request["target"], request.get("host")
    if text == "native":
        lanes = request.get("host_lanes")
        text = host_plan_target(tvm, lanes) if lanes else native_target(tvm)
    try:
        return (tvm.target.Target(text, host) if host else tvm.target.Target(text)), text
    except Exception as error:
        raise Refusal("target", last_line(error)) from error


def _for_schedules(tvm, read, target, request):
    """The network's module for TVM's own schedules."""
    from run_model_tools.kernels.relay import quantization

    records, lanes = request.get("tuning"), 0
    if records and records["files"] and not records["explicit"]:
        # Committed records are of networks that were changed in this way; a file that the user
        # names is of the network as it is.
        lanes = pad_channels.lanes_of(target, llvm_features(tvm, target))
    return quantization.spell_out(read(lanes), own_kernels.takes_rows(tvm, target, request))


def _write(factory, target, request, rewritten, names):
    """The artifact's files but for its other forms; `names` of the network's nodes."""
    directory = Path(request["directory"])
    if target.kind.name == "c":
        write_c_source(factory, str(directory))
    else:
        export(factory.get_lib(), str(directory / "model.so"), request,
               whole=rewritten is not None)
        if request.get("single_file"):
            export(factory, str(directory / "model_single.so"), request)
    if request.get("keep_text"):
        (directory / "kernels.cu").write_text(request["made"].text)
    graph, params = names_apart(factory, request)
    graph = request["node_names"].annotate(graph, names)
    (directory / "model.json").write_text(
        own_kernels.annotate(rewritten or request.get("row_layers"), graph))
    with open(directory / "model.params", "wb") as file:
        # TVM's own function makes the whole file in memory, twice.
        file.writelines(plain(list(params), lambda name: Tensor.of(params[name].numpy())))


def build_stock(tvm, mod, target, request):
    """(factory, linked, report) with TVM's own kernels."""
    if target.kind.name in device_kernels.KINDS:
        mod = for_device(tvm, mod, target, request)
    if request.get("fast", True):
        return build_tuned(tvm, mod, {}, target, request)
    return build_forms(tvm, mod, {}, target, request, {}, plain_build) + (None,)


def for_device(tvm, mod, target, request):
    """The module in a form that is for the target's GPU."""
    from run_model_tools.kernels.relay.nodes import PREFIX

    placed, is_tuned = request["placement"], bool((request.get("tuning") or {}).get("files"))
    takes_rows = own_kernels.takes_rows(tvm, target, request) and not placed.drop(PREFIX)
    mod = many_tensors.with_few_buffers(global_poolings.as_reductions(mod))
    if takes_rows:
        with tvm.transform.PassContext(opt_level=request["opt_level"]):
            mod = faster_folding.simplify(tvm, mod, target)
    # The CPU has no code for filters that are last, and records are of TVM's own layouts.
    if not placed.found and not is_tuned:
        mod = filters_last.with_filters_last(tvm, mod)
    request["row_layers"] = None
    if takes_rows:
        from run_model_tools.inside_tvm.devices import row_layers

        request["row_layers"] = made = row_layers.with_row_layers(
            tvm, mod, with_products=not is_tuned)
        mod = made.module if made else mod
    if placed.found:
        mod = placement.annotated(tvm, mod, placed, tvm.device(target.kind.name))
    return mod


def compile_many(tvm, request):
    """compile_model for each of request["requests"]: many small models start TVM once."""
    return {"results": [result_or_error(compile_model, tvm, one) for one in request["requests"]]}
