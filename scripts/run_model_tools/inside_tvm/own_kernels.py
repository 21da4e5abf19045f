"""Whether a network is compiled with the project's own kernels (run_model_tools.kernels)."""

from contextlib import contextmanager, nullcontext

from run_model_tools.inside_tvm import faster_folding, is_supported, tell
from run_model_tools.inside_tvm.cpu import native_target
from run_model_tools.inside_tvm.devices.kernels import KINDS
from run_model_tools.inside_tvm.operators import recurrent_operators


class Unusable(Exception):
    """Why the kernels cannot or shall not be used for a network or a target."""


def rewrite(tvm, read, target, request):
    """A rewriting.Rewritten of the module that read() gives, for the target.  Raises Unusable.

    request["kernels"]: "ours" (wherever it is possible), "auto" (where it pays) or "stock".
    """
    wanted = request.get("kernels", "stock")
    records = request.get("tuning")
    if wanted == "stock":
        raise Unusable("not asked for")
    if not is_supported(tvm):
        raise Unusable("they need TVM 0.18 and this is %s" % tvm.__version__)
    if target.kind.name in KINDS:
        raise Unusable("on GPUs only rows and matrices have some of ours")
    if target.kind.name != "llvm":
        raise Unusable("our own are for CPUs and the target is %s" % target.kind.name)
    if wanted == "auto" and records and records["explicit"]:
        raise Unusable("tuning records were named, which are of TVM's schedules")
    if wanted == "auto" and request["opt_level"] < 3:
        raise Unusable("the optimisation level is below 3")
    from run_model_tools.kernels.convolutions import winograd_bytes
    from run_model_tools.kernels.relay import quantization, reading, rewriting

    isa = usable_isa(target)
    with nullcontext() if isa is None else recurrent_operators.installed(isa):
        module = read()
    with tvm.transform.PassContext(opt_level=request["opt_level"]):
        mod = simplify(tvm, quantization.mark(module), target)
        try:
            if request.get("precision", "float32") == "int8":
                return _rewrite_in_8_bits(tvm, mod, target, request)
            with winograd_bytes.goal(request.get("optimize_for", winograd_bytes.SPEED)):
                elsewhere = bool(request.get("host_lanes"))
                if request.get("precision", "float32") == "float16":
                    from run_model_tools.kernels.half import rewriting as half_rewriting

                    return half_rewriting.rewrite(mod, target, elsewhere)
                if request.get("precision", "float32") == "bfloat16":
                    return rewriting.rewrite_in_bfloat16(mod, target, elsewhere)
                return rewriting.rewrite(mod, target)
        except reading.NotForUs as error:
            raise Unusable(str(error)) from error


def takes_rows(tvm, target, request):
    """Whether rows and matrices get kernels of ours on the target's GPU (devices/row_layers.py)."""
    return (target.kind.name in KINDS and request.get("kernels", "stock") != "stock"
            and request["opt_level"] >= 3 and is_supported(tvm))


def usable_isa(target):
    """The target's instruction set, None if it is none of ours.  Raises Unusable where there is no
    compiler of the kernels."""
    from run_model_tools.kernels.c_compiler import CompileError, find_clang
    from run_model_tools.kernels.isa import isa_of

    try:
        find_clang()
    except CompileError as error:
        raise Unusable(str(error)) from error
    return isa_of(target)


def simplify(tvm, mod, target):
    """The module as the kernels' planner wants it (kernels/relay/reading.py), in a PassContext."""
    from tvm import relay

    from run_model_tools.kernels.relay import canonical, parallel_convolutions

    mod = faster_folding.simplify(tvm, mod, target, {"FoldScaleAxis": canonical.keep_scales})
    mod = canonical.with_plain_prelu(faster_folding.fold_with_numpy(relay, mod))
    mod = canonical.of_one_row(relay.transform.FoldExplicitPadding()(mod))
    return parallel_convolutions.with_sums_merged(mod)


def _rewrite_in_8_bits(tvm, mod, target, request):
    import numpy as np

    from run_model_tools.kernels.int8.from_float32 import rewriting as int8_rewriting
    from run_model_tools.kernels.int8.from_float32.calibration import Host
    from run_model_tools.kernels.int8.from_float32.fallback import Demand

    with np.load(request["calibration"]["views"]) as file:
        views = {name: file[name] for name in file.files}
    with np.load(request["calibration"]["pictures"]) as file:
        pictures = file["pictures"]
    # TVM's own code runs a few times only, which LLVM's best would not pay for.
    host = Host(tvm.target.Target(native_target(tvm) + " -opt-level=1"),
                lambda module, target: faster_folding.build(tvm, module, target),
                lambda what: tell(request, "work", at=what))
    asked = request["calibration"]
    return int8_rewriting.rewrite(mod, target, int8_rewriting.Request(
        views, pictures, Demand(asked["agreement"], asked["error"]), asked["least"], host,
        asked["stated"], asked.get("kept")))


@contextmanager
def apart(rewritten, target, request, folder):
    """Within, the network is built without the kernels' code.  That lies in object files in
    `folder`, which request["objects"] names to who links libraries: LLVM compiles layers side by
    side, and those that it knows not at all."""
    from run_model_tools.kernels.relay import operators

    if "mlf" in request.get("forms", ()):
        # One module has everything there.
        yield
        return
    tell(request, "work", at="kernels are compiled")
    request["objects"] = operators.objects_of(rewritten.layers.values(), target, folder)
    with operators.code_is_elsewhere():
        yield


def annotate(rewritten, graph):
    """The graph's JSON, with what is known of our layers in it; unchanged without any."""
    if rewritten is None:
        return graph
    from run_model_tools.kernels.relay import rewriting

    return rewriting.annotate(graph, rewritten.layers)
