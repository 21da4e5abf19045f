"""Relay -> what a library is linked of, with the tuning records that were asked for."""

import json
from contextlib import contextmanager

from run_model_tools.inside_tvm import (
    Refusal,
    argument_checks,
    bounded_code,
    faster_folding,
    is_supported,
    node_names,
    tell,
)
from run_model_tools.inside_tvm.cpu import llvm_features
from run_model_tools.inside_tvm.devices import kernels as device_kernels
from run_model_tools.inside_tvm.devices import schedules


def build_tuned(tvm, mod, params, target, request):
    """(factory, linked, report): builds with the request's records; report is None without any."""
    records = request.get("tuning")
    if not records or not records["files"]:
        return build_forms(tvm, mod, params, target, request, {}, faster_folding.build) + (None,)
    if not is_supported(tvm):
        # Committed records are of that release; a file that the user names is applied as it is.
        if not records["explicit"]:
            built = build_forms(tvm, mod, params, target, request, {}, faster_folding.build)
            return built + (None,)
        entry = records["files"][0]
        with tuning(entry["path"]) as config:
            built = build_forms(tvm, mod, params, target, request, config, faster_folding.build)
        return built + ({"method": record_kind(entry["path"]), "files": [{"name": entry["name"]}]},)

    from run_model_tools.inside_tvm.tuning import application as tuning_application

    application = tuning_application.Application(
        tvm, target, records, lambda t: llvm_features(tvm, t))
    kind = application.kind_for_all()
    if kind is None:
        try:
            built = build_forms(tvm, mod, params, target, request, {}, faster_folding.build,
                                tuning=application.by_layer)
            return built + (application.report,)
        except tuning_application.AnotherMethod as another:
            kind = another.kind
    mod = convert_layout(tvm, mod, application.layout(kind))
    with application.whole(kind) as config:
        built = build_forms(tvm, mod, params, target, request, config, faster_folding.build)
    return built + (application.report,)


def convert_layout(tvm, mod, layout):
    """The module with its convolutions in another layout ("NHWC"), or as it is for None."""
    from tvm import relay

    if layout is None:
        return mod
    wanted = {"nn.conv2d": [layout, "default"]}
    with tvm.transform.PassContext(opt_level=3):
        return tvm.transform.Sequential([
            relay.transform.InferType(), relay.transform.ConvertLayout(wanted)])(mod)


@contextmanager
def tuning(path):
    """Applies a file of tuning records: AutoTVM's or the auto-scheduler's, told by its lines.

    Gives the extra PassContext options.
    """
    if not path:
        yield {}
        return
    kind = record_kind(path)
    if kind == "autotvm":
        from tvm import autotvm
        with autotvm.apply_history_best(path):
            yield {}
    else:
        from tvm import auto_scheduler
        with auto_scheduler.ApplyHistoryBest(path):
            yield {"relay.backend.use_auto_scheduler": True}


def record_kind(path):
    """"autotvm" or "auto_scheduler", by the first record of a file; both write one a line."""
    with open(path) as file:
        line = next((line for line in file if line.strip() and not line.startswith("#")), "")
    try:
        first = json.loads(line)
    except ValueError:
        first = None
    if isinstance(first, dict) and "input" in first and "config" in first:
        return "autotvm"
    if isinstance(first, dict) and "i" in first and "r" in first:
        return "auto_scheduler"
    raise Refusal("records", "its first line is no record of AutoTVM or of the auto-scheduler")


def build_forms(tvm, mod, params, target, request, config, build, **options):
    """(factory, linked): the network, and again with its parameters linked in, where asked for."""
    from tvm import relay

    config = dict(config)
    if target.kind.name == "c":
        # Vectors of TVM's C code are types that C does not have; a C compiler makes its own of
        # the loops that are left in their place.
        config["tir.disable_vectorize"] = True
    request["plain_schedules"] = notes = []
    if request["placement"].found:
        # What nobody says is on the GPU.
        config["relay.fallback_device_type"] = target.get_target_device_type()
        options["targets"] = [target.host, target]
    recorder = request["node_names"] = node_names.Recorder(tvm)
    with tvm.transform.PassContext(opt_level=request["opt_level"], config=config,
                                   instruments=recorder.instruments), \
            argument_checks.shared(tvm, target.host or target), \
            device_kernels.seen(tvm, target) as needs, \
            schedules.bounded(tvm, target, notes, request["placement"]), \
            bounded_code.bounded_code(tvm, notes, lambda layer: tell(request, "work", at=layer)):
        factory = build(tvm, mod, target, params=params, **options)
        linked = None
        if "linked" in request.get("forms", ()):
            executor = relay.backend.Executor("graph", {"link-params": True})
            linked = build(tvm, mod, target, params=params, executor=executor, **options)
            # The layers are the same once more.
            del notes[len(notes) // 2:]
    request["device_needs"] = needs and needs.describe()
    if needs and request["placement"].found:
        if not needs.kernels:
            raise Refusal("generator", "nothing of it can be computed on a GPU: %s" % "; ".join(
                "%s: %s" % (one["operator"], one["because"])
                for one in request["placement"].describe()))
        request["device_needs"]["on_cpu"] = request["placement"].describe()
    if needs and target.kind.name == "vulkan":
        request["device_needs"]["features"] = request["made"].features
    return factory, linked


def plain_build(tvm, mod, target, targets=None, **options):
    """What faster_folding.build stands in for."""
    from tvm import relay

    return relay.build(mod, target=targets or target, **options)
