"""A trained network -> the files of an artifact: the actions "compile" and "compile_many"."""

import json
import tempfile
from contextlib import contextmanager, nullcontext
from pathlib import Path

from run_model_tools.inside_tvm import (
    Refusal,
    argument_checks,
    bounded_code,
    faster_folding,
    faster_import,
    is_supported,
    node_names,
    operators,
    own_kernels,
    pad_channels,
    result_or_error,
    tell,
)
from run_model_tools.inside_tvm.cpu import host_plan_target, llvm_features, native_target
from run_model_tools.inside_tvm.devices import (
    filters_last,
    generators,
    global_poolings,
    many_tensors,
    placement,
    schedules,
)
from run_model_tools.inside_tvm.devices import kernels as device_kernels
from run_model_tools.inside_tvm.devices.placement import Placement
from run_model_tools.inside_tvm.export import (
    complete_c,
    export,
    names_apart,
    write_c_source,
    write_forms,
)
from run_model_tools.inside_tvm.operators import quantized_lstm
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
        raise Refusal("target", str(error).strip().splitlines()[-1]) from error


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


def reading_once(tvm, request):
    """A function that gives the Relay module of the network, whose weights are constants in it.

    Its argument is the number of lanes that an ONNX file's channels are made multiples of
    (pad_channels), 0 by default.  Importing takes a good part of the time, so what was imported is
    given again where another time would make the same of it.  `names` of the function are those of
    an ONNX file's nodes.
    """
    from tvm import IRModule

    plain, names = {}, set()

    def kept(make):
        if "main" not in plain:
            plain["main"] = make()["main"]
        return IRModule.from_expr(plain["main"])

    def read(lanes=0):
        if "tflite" in request:
            from run_model_tools.inside_tvm.tflite.importer import read_tflite

            return kept(lambda: read_tflite(request["tflite"], request["shapes"]))
        import onnx

        model = onnx.load(request["onnx"])
        names.update(node.name for node in model.graph.node)
        padded = pad_channels.pad_channels(model, lanes)
        # Of recurrent layers another thing is made while our kernels' converters are installed.
        recurrent = ("LSTM", "GRU", quantized_lstm.NAME)
        if padded or any(node.op_type in recurrent for node in model.graph.node):
            return read_onnx(model, request)
        return kept(lambda: read_onnx(model, request))

    read.names = names
    return read


def read_onnx(model, request):
    """The Relay module of an onnx.ModelProto, all weights in it as constants."""
    import tvm
    from tvm import relay

    shapes = {k: tuple(v) for k, v in request["shapes"].items()}
    importer = faster_import.linear_importer(tvm) if request.get("fast", True) else nullcontext()
    try:
        with importer, operators.imported(tvm):
            return relay.frontend.from_onnx(model, shapes, freeze_params=True)[0]
    except Exception as error:
        message = (str(error).strip() or type(error).__name__).splitlines()[-1]
        raise Refusal("model", node_at_work(error) + message) from error


def node_at_work(error):
    """Which node the importer had in hand when it raised the error, as the start of a sentence."""
    trace, found = error.__traceback__, ""
    while trace is not None:
        node = trace.tb_frame.f_locals.get("node")
        if trace.tb_frame.f_code.co_name == "_construct_nodes" and node is not None:
            found = "at node '%s' (%s): " % (node.name, node.op_type)
        trace = trace.tb_next
    return found


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
