"""The part that runs inside TVM, in a process of its own: `tvm_worker.py REQUEST.json`.

It may be any interpreter with TVM 0.8 to 0.19 (Python 3.7 on), so nothing here uses the other
modules or newer Python.  What it has to say goes to the file that the request names:
{"error": {...}} or the result of the action.
"""

import json
import os
import sys
import traceback
from contextlib import contextmanager

# LLVM's name of a feature -> the name in /proc/cpuinfo.  What an x86 host lacks of its model's
# features (virtual machines hide some) must not be used by the code generator.
X86_FEATURES = {
    "sse4.1": "sse4_1", "sse4.2": "sse4_2", "sse4a": "sse4a", "popcnt": "popcnt", "lzcnt": "abm",
    "avx": "avx", "avx2": "avx2", "fma": "fma", "fma4": "fma4", "xop": "xop", "f16c": "f16c",
    "bmi": "bmi1", "bmi2": "bmi2", "adx": "adx", "movbe": "movbe", "aes": "aes",
    "pclmul": "pclmulqdq", "sha": "sha_ni", "gfni": "gfni", "vaes": "vaes",
    "vpclmulqdq": "vpclmulqdq", "avxvnni": "avx_vnni", "avx512f": "avx512f", "avx512cd": "avx512cd",
    "avx512bw": "avx512bw", "avx512dq": "avx512dq", "avx512vl": "avx512vl",
    "avx512ifma": "avx512ifma", "avx512vbmi": "avx512vbmi", "avx512vbmi2": "avx512_vbmi2",
    "avx512vnni": "avx512_vnni", "avx512bitalg": "avx512_bitalg",
    "avx512vpopcntdq": "avx512_vpopcntdq", "avx512bf16": "avx512_bf16",
    "avx512fp16": "avx512_fp16", "amx-tile": "amx_tile", "amx-int8": "amx_int8",
    "amx-bf16": "amx_bf16",
}

# The x86-64 psABI's levels, by the flags in /proc/cpuinfo that each adds.
X86_LEVELS = [
    ("x86-64-v2", {"sse4_2", "popcnt", "ssse3", "cx16"}),
    ("x86-64-v3", {"avx2", "fma", "bmi1", "bmi2", "f16c", "movbe", "abm"}),
    ("x86-64-v4", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}),
]


@contextmanager
def quiet_stderr():
    """TVM's C++ side logs harmless complaints about targets nobody asked for when imported."""
    sys.stderr.flush()
    saved = os.dup(2)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(saved, 2)
        os.close(saved)
        os.close(null)


def cpu_flags():
    """The flags (x86) or Features (arm) of the first CPU in /proc/cpuinfo."""
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith(("flags", "Features")):
                return set(line.split(":", 1)[1].split())
    return set()


def x86_level(flags):
    """The highest x86-64 level of which all flags are there."""
    name, needed = "x86-64", set()
    for level, adds in X86_LEVELS:
        needed |= adds
        if needed <= flags:
            name = level
    return name


def native_target(tvm):
    """The target string of this machine, as LLVM sees its CPU."""
    machine = os.uname().machine
    codegen = tvm.target.codegen
    cpu = ""
    if hasattr(codegen, "llvm_get_system_cpu"):
        cpu = str(codegen.llvm_get_system_cpu())
    if machine == "x86_64":
        flags = cpu_flags()
        # An old LLVM calls a new CPU "generic" or "x86-64", which would leave AVX out.
        if cpu in ("", "generic", "x86-64"):
            return "llvm -mcpu=" + x86_level(flags)
        # Older releases cannot say what a CPU's model has; then these are named to be safe.
        features = ["avx", "avx2", "fma", "f16c", "bmi", "bmi2", "avx512f", "avx512bw",
                    "avx512cd", "avx512dq", "avx512vl", "avx512vnni", "avx512bf16"]
        if hasattr(codegen, "llvm_get_cpu_features"):
            features = [str(f) for f in codegen.llvm_get_cpu_features(
                tvm.target.Target("llvm -mcpu=" + cpu))]
        missing = ["-" + f for f in sorted(features)
                   if f in X86_FEATURES and X86_FEATURES[f] not in flags]
        return "llvm -mcpu=" + cpu + (" -mattr=" + ",".join(missing) if missing else "")
    if machine == "aarch64":
        attributes = "+neon" + (",+dotprod" if "asimddp" in cpu_flags() else "")
        return "llvm -device=arm_cpu -mtriple=aarch64-linux-gnu -mattr=" + attributes
    return "llvm" + (" -mcpu=" + cpu if cpu else "")


def llvm_features(tvm, target):
    """What LLVM may use of the target's CPU; None where it makes no code or TVM does not tell."""
    ask = getattr(tvm.target.codegen, "llvm_get_cpu_features", None)
    if ask is None or target.kind.name != "llvm":
        return None
    return sorted(str(feature) for feature in ask(target))


class Refusal(Exception):
    """Something that the user can change; `kind` tells the caller what."""

    def __init__(self, kind, message):
        Exception.__init__(self, message)
        self.kind = kind


@contextmanager
def tuning(tvm, path):
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


def compile_model(tvm, request):
    """ONNX -> model.so, model.json and model.params (TVM's own writing of it) in `directory`.

    For the target c, model.c takes the place of model.so.  `forms` are those of forms.py.  `fast`
    (default true) is for a test, which compares with what TVM makes by itself.
    """
    import faster_folding
    import onnx
    import own_kernels
    import pad_channels
    from tvm import relay

    target_text = request["target"]
    if target_text == "native":
        target_text = native_target(tvm)
    try:
        target = tvm.target.Target(target_text)
    except Exception as error:
        raise Refusal("target", str(error).strip().splitlines()[-1])

    is_c = target.kind.name == "c"
    try:
        rewritten = own_kernels.rewrite(
            tvm, lambda: read_onnx(onnx.load(request["onnx"]), request), target, request)
        kernels = dict(rewritten.report, method="ours")
    except own_kernels.Unusable as error:
        if request.get("kernels") == "ours":
            raise Refusal("kernels", str(error))
        rewritten, kernels = None, {"method": "stock", "reason": str(error)}
    tuned = None
    if rewritten is not None:
        factory, linked = build_forms(tvm, rewritten.module, {}, target, request, {},
                                      faster_folding.build)
    else:
        model = onnx.load(request["onnx"])
        records = request.get("tuning")
        if records and records["files"] and not records["explicit"]:
            # Committed records are of networks that were changed in this way; a file that the user
            # names is of the network as it is.
            pad_channels.pad_channels(
                model, pad_channels.lanes_of(target, llvm_features(tvm, target)))
        mod = read_onnx(model, request)
        if request.get("fast", True):
            factory, linked, tuned = build_tuned(tvm, mod, {}, target, request)
        else:
            factory, linked = build_forms(tvm, mod, {}, target, request, {}, plain_build)

    directory = request["directory"]
    if is_c:
        write_c_source(factory, directory)
    else:
        export(factory.get_lib(), os.path.join(directory, "model.so"), request,
               whole=rewritten is not None)
        if request.get("single_file"):
            export(factory, os.path.join(directory, "model_single.so"), request)
    with open(os.path.join(directory, "model.json"), "w") as file:
        file.write(own_kernels.annotate(rewritten, factory.get_graph_json()))
    save = getattr(tvm.runtime, "save_param_dict", None) or relay.save_param_dict
    with open(os.path.join(directory, "model.params"), "wb") as file:
        file.write(save(factory.get_params()))
    write_forms(factory, linked, request)
    return {"target": str(target), "requested": target_text, "tuning": tuned, "kernels": kernels,
            "llvm_features": llvm_features(tvm, target)}


def read_onnx(model, request):
    """The Relay module of an onnx.ModelProto, all weights in it as constants."""
    from tvm import relay

    try:
        return relay.frontend.from_onnx(
            model, {k: tuple(v) for k, v in request["shapes"].items()}, freeze_params=True)[0]
    except Exception as error:
        raise Refusal("model", str(error).strip().splitlines()[-1])


def compile_many(tvm, request):
    """compile_model for each of request["requests"]: many small models start TVM once."""
    results = []
    for one in request["requests"]:
        try:
            results.append(compile_model(tvm, one))
        except Exception as error:
            results.append({"error": str(error).strip().splitlines()[-1]})
    return {"results": results}


def build_tuned(tvm, mod, params, target, request):
    """(factory, linked, report): builds with the request's records; report is None without any."""
    import faster_folding

    records = request.get("tuning")
    if not records or not records["files"]:
        return build_forms(tvm, mod, params, target, request, {}, faster_folding.build) + (None,)
    if not str(tvm.__version__).startswith(faster_folding.SUPPORTED_RELEASE):
        # Committed records are of that release; a file that the user names is applied as it is.
        if not records["explicit"]:
            built = build_forms(tvm, mod, params, target, request, {}, faster_folding.build)
            return built + (None,)
        entry = records["files"][0]
        with tuning(tvm, entry["path"]) as config:
            built = build_forms(tvm, mod, params, target, request, config, faster_folding.build)
        return built + ({"method": record_kind(entry["path"]), "files": [{"name": entry["name"]}]},)

    import tuning_application

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


def build_forms(tvm, mod, params, target, request, config, build, **options):
    """(factory, linked): the network, and again with its parameters linked in, where asked for."""
    from tvm import relay

    config = dict(config)
    if target.kind.name == "c":
        # Vectors of TVM's C code are types that C does not have; a C compiler makes its own of
        # the loops that are left in their place.
        config["tir.disable_vectorize"] = True
    with tvm.transform.PassContext(opt_level=request["opt_level"], config=config):
        factory = build(tvm, mod, target, params=params, **options)
        linked = None
        if "linked" in request.get("forms", ()):
            executor = relay.backend.Executor("graph", {"link-params": True})
            linked = build(tvm, mod, target, params=params, executor=executor, **options)
    return factory, linked


def plain_build(tvm, mod, target, **options):
    """What faster_folding.build stands in for."""
    from tvm import relay

    return relay.build(mod, target=target, **options)


def export(module, path, request, whole=False):
    """Links a library with the request's compiler.

    whole: a function that is missing in it is an error now, and not only on the board.
    """
    options = {"cc": request["cc"]} if request.get("cc") else {}
    # Debug sections and local symbols are of no use on a board; the exported names stay.
    options["options"] = ["-Wl,--strip-all"]
    if whole:
        options["options"].append("-Wl,-z,defs")
    try:
        module.export_library(path, **options)
    except (RuntimeError, OSError, ValueError) as error:
        raise Refusal("link", str(error).strip())


def write_c_source(factory, directory):
    """Writes model.c, all of the model's functions."""
    library = factory.get_lib()
    modules = [library] + list(library.imported_modules)
    others = [m.type_key for m in modules if m.type_key != "c"]
    if others or len(modules) != 1:
        raise Refusal("model", "its C code comes in %d pieces (%s), and one was expected" % (
            len(modules), ", ".join(m.type_key for m in modules)))
    with open(os.path.join(directory, "model.c"), "w") as file:
        file.write(library.get_source())


def write_forms(factory, linked, request):
    """Adds the forms that only TVM itself can make; request["form_paths"] says where."""
    def path_of(form, index=0):
        path = os.path.join(request["directory"], request["form_paths"][form][index])
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    wanted = request.get("forms", ())
    if "single" in wanted:
        export(factory, path_of("single"), request)
    if linked is not None:
        left = sorted(str(name) for name in linked.get_params())
        if left:
            raise Refusal("model", "parameters could not be linked: " + ", ".join(left))
        export(linked.get_lib(), path_of("linked"), request)
        with open(path_of("linked", 1), "w") as file:
            file.write(linked.get_graph_json())
    if "mlf" in wanted:
        from tvm.micro import export_model_library_format

        export_model_library_format(factory, path_of("mlf"))


def run_model(tvm, request):
    """Runs the files in `directory` in TVM's own executor: npz of inputs -> npz of outputs."""
    import numpy as np
    from tvm.contrib import graph_executor

    directory = request["directory"]
    with open(os.path.join(directory, "model.json")) as file:
        graph = file.read()
    with open(os.path.join(directory, "model.params"), "rb") as file:
        params = file.read()
    library = tvm.runtime.load_module(os.path.join(directory, "model.so"))
    module = graph_executor.create(graph, library, tvm.cpu(0))
    module.load_params(bytearray(params))
    with np.load(request["inputs"]) as inputs:
        for name in inputs.files:
            module.set_input(name, inputs[name])
    module.run()
    outputs = [module.get_output(i).numpy() for i in range(module.get_num_outputs())]
    np.savez(request["outputs"], *outputs)
    return {"outputs": len(outputs)}


def run_many(tvm, request):
    """run_model for each of request["requests"]."""
    return {"results": [run_model(tvm, one) for one in request["requests"]]}


def tuning_action(name):
    """An action of tuning_worker.py, which is imported when it is asked for."""
    def run(tvm, request):
        import tuning_worker

        return getattr(tuning_worker, name)(tvm, request)
    return run


ACTIONS = {"compile": compile_model, "compile_many": compile_many, "run": run_model,
           "run_many": run_many, "tuning_tasks": tuning_action("list_tasks"),
           "tune": tuning_action("tune"), "race": tuning_action("race"),
           "layers": tuning_action("list_layers"), "tune_kernels": tuning_action("tune_kernels")}


def main():
    with open(sys.argv[1]) as file:
        request = json.load(file)
    try:
        try:
            import faster_folding

            faster_folding.prepare_environment()
            with quiet_stderr():
                import tvm
                from tvm import relay  # noqa: F401 -- TVM 0.20 and later have none.
        except ImportError as error:
            raise Refusal("import", str(error))
        result = ACTIONS[request["action"]](tvm, request)
        result["tvm_version"] = str(tvm.__version__)
    except Refusal as refusal:
        result = {"error": {"kind": refusal.kind, "message": str(refusal)}}
    except Exception as error:
        text = str(error).strip() or type(error).__name__
        result = {"error": {"kind": "internal", "message": text.splitlines()[-1],
                            "trace": traceback.format_exc()}}
    with open(request["result"], "w") as file:
        json.dump(result, file)
    if request.get("events"):
        # Children that hold the pipe open as well must not keep the reader waiting.
        os.write(request["events"], b'{"event": "end"}\n')


if __name__ == "__main__":
    # One module, whether it is imported by others or started.
    sys.modules["tvm_worker"] = sys.modules["__main__"]
    main()
