"""Makes TVM 0.18 compile three to four times as fast, to the same bytes.

Most of the time of relay.build goes into constant folding: each operation on weights (a batch
normalisation has a dozen, a convolution three) is lowered, compiled by LLVM and run by itself.
Here those whose result NumPy gives bit for bit are evaluated by NumPy, and what is left compiles
every distinct tiny module once.  Other releases are left as they are.
"""

import os
import re
from collections import defaultdict
from contextlib import ExitStack
from functools import lru_cache

from run_model_tools.inside_tvm import bounded_fusion, is_supported
from run_model_tools.inside_tvm.devices import many_tensors
from run_model_tools.inside_tvm.devices.kernels import KINDS
from run_model_tools.inside_tvm.operators.own_operators import once
from run_model_tools.inside_tvm.plain_graphs import is_plain, mapped, without_fence

# Operators on whole numbers, and on flags, that NumPy has under the same names.
_OF_NUMBERS = ("add", "subtract", "multiply", "maximum", "minimum", "less", "less_equal", "greater",
               "greater_equal", "equal", "not_equal")
_OF_FLAGS = ("logical_and", "logical_or", "equal", "not_equal")

_LEAST_DIVISOR = 1e-30


def prepare_environment():
    """To be called before tvm is imported.

    TVM tries conversions by catching its own exceptions, and each of those looks up the names of a
    stack trace in libtvm.so's and libLLVM.so's symbols: a tenth of the time.
    """
    os.environ.setdefault("DMLC_LOG_STACK_TRACE_DEPTH", "0")


def build(tvm, mod, target, tuning=None, targets=None, **options):
    """relay.build(mod, target=target, **options) under the current PassContext, faster.

    Every constant has to be in `mod` itself (from_onnx with freeze_params=True).  `tuning`, where
    given, is called with the simplified module before its layouts are chosen, and gives a context
    for the rest of the way; releases other than 0.18 do not call it.  `targets` are
    those of a network on several devices, with `target` for what has no device of its own.
    """
    from tvm import autotvm, relay

    if not is_supported(tvm):
        return relay.build(mod, target=targets or target, **options)
    remember(tvm)
    # Altering layouts leaves notes for the lowering in this context, so one has to span both, and
    # relay.build opens its own where none is.
    if isinstance(autotvm.DispatchContext.current, autotvm.FallbackContext):
        with autotvm.tophub.context([target]):
            return _build_in_two_steps(tvm, relay, mod, target, tuning, targets, options)
    return _build_in_two_steps(tvm, relay, mod, target, tuning, targets, options)


def simplify(tvm, mod, target, around=None):
    """The module as relay.build has it right before it chooses layouts, with types.

    `around`: by the name of a pass, a function that runs it: (module, pass) -> module.
    """
    from tvm import relay

    remember(tvm)
    passes = _first_passes(tvm)
    names = [name for name, _ in passes]
    around = around or {}
    passes = [(name, _around(item, around.get(name)))
              for name, item in passes[:names.index("AlterOpLayout")]]
    return _run_passes(tvm, relay, mod, target, passes)


def _around(item, run):
    return item if run is None else lambda mod: run(mod, item)


def _first_passes(tvm):
    """(name, pass) of those that relay.build itself would run first, taken out of TVM."""
    from run_model_tools.inside_tvm import simplification

    passes = tvm.get_global_func("relay.backend.GetPassPrefixSeq")(True, False).passes
    return [(name, _fold_scales(tvm, item) if name == "FoldScaleAxis"
             else simplification.simplify_expr(tvm, item) if name.startswith("SimplifyExpr")
             else item)
            for name, item in ((str(item.info.name), item) for item in passes)]


def _fold_scales(tvm, sequence):
    """TVM's FoldScaleAxis, a sequence of passes that folds constants itself, with NumPy first.

    It makes (x + b / s) * s of x * s + b, to bring s into the weights that follow: NaN where a
    trained network's normalisation has a channel of 0.  What s multiplies is not looked through
    there; it still goes into weights before it.
    """
    from tvm import relay

    def fenced(call, args):
        if getattr(call.op, "name", None) != "multiply" or not any(
                _may_not_divide(relay, a) for a in call.args):
            return None
        return relay.annotation.stop_fusion(
            relay.Call(call.op, args, call.attrs, call.type_args, call.span))

    def run(mod):
        if is_plain(tvm, mod):
            mod = mapped(relay, mod, fenced)
        mod = in_turn(mod)
        return mapped(relay, mod, without_fence) if is_plain(tvm, mod) else mod

    def in_turn(mod):
        for part in sequence.passes:
            if str(part.info.name) == "FoldConstant":
                mod = fold_with_numpy(relay, mod)
            mod = tvm.transform.Sequential([part])(mod)
        return mod

    return run


def _may_not_divide(relay, operand):
    """Whether it is a constant with numbers by which others become infinite."""
    if not isinstance(operand, relay.Constant) or not operand.data.dtype.startswith("float"):
        return False
    return bool((abs(operand.data.numpy()) < _LEAST_DIVISOR).any())


def _run_passes(tvm, relay, mod, target, passes):
    is_quantized = any(name.startswith("qnn.") for name in relay.analysis.list_op_freqs(mod))
    # Passes of functions want types, which a sequence infers first, and leave types behind.
    has_types = False
    with target:
        for name, item in passes:
            if name == "FoldConstant":
                mod = fold_with_numpy(relay, mod)
            # It makes blocks of branches, and where there are none forgets what was made of what.
            if name == "ToBasicBlockNormalForm" and is_plain(tvm, mod):
                continue
            if name == "qnn.Legalize" and not is_quantized:
                continue
            if not isinstance(item, tvm.transform.Pass):
                mod, has_types = item(mod), False
            elif not has_types or not isinstance(item, relay.transform.FunctionPass):
                # In a sequence they look at the optimisation level.
                mod = tvm.transform.Sequential([item])(mod)
                has_types = isinstance(item, relay.transform.FunctionPass)
            elif _is_wanted(tvm, item.info):
                mod = item(mod)
    return mod


def _is_wanted(tvm, info):
    """Whether a sequence would run a pass."""
    context = tvm.transform.PassContext.current()
    name, listed = str(info.name), [str(name) for name in context.required_pass]
    return name not in [str(name) for name in context.disabled_pass] and (
        name in listed or context.opt_level >= info.opt_level)


def _build_in_two_steps(tvm, relay, mod, target, tuning, targets, options):
    # With the first passes done, relay.build is told to leave them out; folding and type
    # inference, which later passes need too, find nothing to do.
    passes = _first_passes(tvm)
    names = [name for name, _ in passes]
    with ExitStack() as stack:
        start = 0
        if tuning is not None:
            start = names.index("AlterOpLayout")
            mod = _run_passes(tvm, relay, mod, target, passes[:start])
            stack.enter_context(tuning(mod))
        mod = _run_passes(tvm, relay, mod, target, passes[start:])
        if is_plain(tvm, mod):
            mod = bounded_fusion.bounded(tvm, mod)
            if target.kind.name in KINDS:
                mod = many_tensors.with_shared_constants(mod)
        current = tvm.transform.PassContext.current()
        done = [n for n in names if n not in ("FoldConstant", "InferType")]
        with tvm.transform.PassContext(
                opt_level=current.opt_level, config=dict(current.config.items()),
                required_pass=list(current.required_pass), instruments=current.instruments,
                disabled_pass=[*current.disabled_pass, *done]):
            return relay.build(mod, target=targets or target, **options)


@once
def remember(tvm):
    """Lets TVM keep what it would find out, or compile, again and again."""
    from tvm.relay.backend import te_compiler

    _know_attributes()
    # It asks for constants of the library, and is called for every extent of a shape.
    te_compiler.libinfo = lru_cache(maxsize=None)(te_compiler.libinfo)
    _remember_built_modules(tvm)


def _know_attributes():
    """Lets hasattr() and getattr() with a default look into an object's own list of attributes.

    Asked for one that is not there, the library raises an error whose stack trace it looks up among
    all symbols: several milliseconds, for what TVM's schedules ask thousands of times.
    """
    from tvm.runtime import object as objects

    original, names_of = objects.Object.__getattr__, objects._ffi_node_api.NodeListAttrNames
    # (class, name) of what some object has had, which is asked for at once.
    known = set()

    def known_attribute(self, name):
        if (type(self), name) not in known and name not in ("handle", "type_key"):
            names = names_of(self)
            if not any(names(i) == name for i in range(names(-1))):
                raise AttributeError("%s has no attribute %s" % (type(self), name))
            known.add((type(self), name))
        return original(self, name)

    objects.Object.__getattr__ = known_attribute


def _remember_built_modules(tvm):
    """Lets the interpreter that folds constants compile equal modules once."""
    import tvm.driver

    known = defaultdict(list)

    def build_once(mod, target, target_host=None):
        target_host = None if target_host == "" else target_host
        key = (tvm.ir.structural_hash(mod), str(target), str(target_host))
        for source, built in known[key]:
            if tvm.ir.structural_equal(source, mod):
                return built
        built = tvm.driver.build(mod, target=target, target_host=target_host)
        known[key].append((mod, built))
        return built

    tvm.register_func("relay.backend.build", build_once, override=True)


def fold(tvm, mod):
    """FoldConstant of a module with types, outside a build."""
    from tvm import relay

    if is_supported(tvm):
        remember(tvm)
        mod = fold_with_numpy(relay, mod)
    return relay.transform.FoldConstant()(mod)


def fold_with_numpy(relay, mod):
    """Replaces calls on constants that NumPy evaluates exactly, in the function main.

    A module of another kind than a plain network (functions within, branches, references) comes
    back as it is: TVM's own folding follows in any case.
    """
    import tvm

    if not is_plain(tvm, mod):
        return mod

    def value_of(call, args):
        if not (args and isinstance(call.op, tvm.ir.Op)
                and all(isinstance(a, relay.Constant) for a in args)):
            return None
        value = evaluate(call.op.name, call.attrs, [a.data.numpy() for a in args])
        return None if value is None else relay.Constant(tvm.nd.array(value))

    return mapped(relay, mod, value_of)


def evaluate(name, attrs, args):
    """The operator's result as a NumPy array, None where it is not certain to be TVM's own.

    Moves of data are exact whatever the type; of arithmetic, what IEEE 754 rounds correctly.
    """
    import numpy as np

    if name == "expand_dims":
        axis = int(attrs.axis)
        axis += args[0].ndim + 1 if axis < 0 else 0
        shape = args[0].shape
        return args[0].reshape(shape[:axis] + (1,) * int(attrs.num_newaxis) + shape[axis:])
    if name == "squeeze":
        axis = None if attrs.axis is None else tuple(int(a) for a in attrs.axis)
        return np.squeeze(args[0], axis)
    if name == "transpose":
        axes = [int(a) for a in attrs.axes] if attrs.axes else None
        return np.ascontiguousarray(np.transpose(args[0], axes))
    if name == "layout_transform":
        return transform_layout(args[0], str(attrs.src_layout), str(attrs.dst_layout))
    if any(isinstance(a, list) for a in args):
        return _evaluate_list(name, attrs, args)
    if all(a.dtype.kind in "iub" for a in args):
        return _evaluate_whole_numbers(name, attrs, args)
    if any(a.dtype not in (np.float32, np.float64) for a in args):
        return None
    if len({a.dtype for a in args}) != 1:
        return None
    one = args[0].dtype.type(1)
    with np.errstate(all="ignore"):
        if name == "add":
            return np.asarray(args[0] + args[1])
        if name == "subtract":
            return np.asarray(args[0] - args[1])
        if name == "multiply":
            return np.asarray(args[0] * args[1])
        if name == "divide":
            return np.asarray(args[0] / args[1])
        if name == "negative":
            return np.asarray(-args[0])
        if name == "sqrt":
            return np.asarray(np.sqrt(args[0]))
        if name == "rsqrt":
            return np.asarray(one / np.sqrt(args[0]))
    return None


def _evaluate_list(name, attrs, args):
    """evaluate() for operators that take a tuple."""
    import numpy as np

    if name == "concatenate" and len(args) == 1:
        return np.concatenate(args[0], int(attrs.axis))
    if name == "stack" and len(args) == 1:
        return np.stack(args[0], int(attrs.axis))
    return None


def _evaluate_whole_numbers(name, attrs, args):
    """Of operators on shapes, mostly: sums and products wrap around as TVM's do."""
    import numpy as np

    if name == "cast":
        return args[0].astype(str(attrs.dtype)) if str(attrs.dtype) in (
            "int32", "int64", "float32", "float64") else None
    if name == "reshape" and all(int(d) >= -1 and int(d) != 0 for d in attrs.newshape):
        return args[0].reshape([int(d) for d in attrs.newshape])
    if name == "take" and attrs.axis is not None:
        axis, extent = int(attrs.axis), args[0].shape[int(attrs.axis)]
        inside = args[1].size and args[1].min() >= 0 and args[1].max() < extent
        return np.take(args[0], args[1], axis) if inside and not int(attrs.batch_dims) else None
    if name == "strided_slice":
        return _slice(attrs, args[0])
    if name == "clip" and args[0].dtype.kind != "b":
        # Bounds are numbers of 64 bits, which have those of shorter types.
        low, high = float(attrs.a_min), float(attrs.a_max)
        limits = np.iinfo(args[0].dtype)
        if low.is_integer() and high.is_integer() and args[0].itemsize < 8:
            return np.clip(args[0], max(int(low), limits.min), min(int(high), limits.max))
    if len(args) != 2 or args[0].dtype != args[1].dtype:
        return None
    functions = _OF_FLAGS if args[0].dtype.kind == "b" else _OF_NUMBERS
    if name not in functions or args[0].dtype.kind == "u" and name not in ("maximum", "minimum"):
        return None
    return np.asarray(getattr(np, name)(*args))


def _slice(attrs, array):
    """strided_slice by whole steps forwards, whose bounds TVM and NumPy clip alike."""
    import numpy as np

    begin, end = ([int(v) for v in bounds] for bounds in (attrs.begin, attrs.end))
    strides = [int(s) for s in attrs.strides or ()]
    if str(attrs.slice_mode) != "end" or any(s != 1 for s in strides) or len(begin) != len(end):
        return None
    axes = [int(a) for a in attrs.axes] if attrs.axes is not None else range(len(begin))
    places = [slice(None)] * array.ndim
    for axis, first, last in zip(axes, begin, end):
        places[axis] = slice(first, last)
    return np.ascontiguousarray(array[tuple(places)])


def transform_layout(array, source, target):
    """From one letter an axis ("OIHW") to a blocked layout ("OIHW4i8o"), None if it is another.

    A lower-case letter behind a number is the inner part, of that extent, of the axis.
    """
    import numpy as np

    parts = re.findall(r"(\d*)([A-Za-z])", target)
    factors = {letter.upper(): int(number) for number, letter in parts if number}
    outer = [letter for number, letter in parts if not number]
    inner = [letter for number, letter in parts if number]
    if (not source.isalpha() or not source.isupper() or len(source) != array.ndim
            or sorted(outer) != sorted(source) or len(factors) != len(inner)
            or "".join(n + letter for n, letter in parts) != target
            or not all(letter.islower() and letter.upper() in source for letter in inner)):
        return None
    shape, place = [], {}
    for letter, extent in zip(source, array.shape):
        factor = factors.get(letter, 1)
        if extent % factor:
            return None
        place[letter] = len(shape)
        shape.append(extent // factor)
        if letter in factors:
            place[letter.lower()] = len(shape)
            shape.append(factor)
    order = [place[letter] for _, letter in parts]
    return np.ascontiguousarray(array.reshape(shape).transpose(order))
