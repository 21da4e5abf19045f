"""Relax's operators on single numbers and on rows, as nodes of programs for rows of any length
(run_model_tools.kernels.programs.program)."""

from types import SimpleNamespace

from run_model_tools.inside_tvm import called_operator

EACH, ALONG, REDUCED = "each", "along", "reduced"
"""What becomes of a row: a number of each number by itself, of each number and the whole row, or
one number."""

_OF_RELAX = {"nn.leakyrelu": "nn.leaky_relu"}
_REDUCTIONS = {"sum": "sum", "mean": "sum", "max": "max", "min": "min", "variance": "sum"}
"""By Relax's name: what a row becomes first."""


class Operator:
    """What a call does to rows."""

    def __init__(self, kind, arguments, append, reductions=0, axes=1):
        self.kind = kind
        self.arguments = arguments
        """Tensors; of all kinds but EACH the first one has the rows."""
        self.append = append
        """(program, nodes of the arguments): the node of the result, or None."""
        self.reductions = reductions
        """How often all of a row has to be seen before the result is known."""
        self.axes = axes
        """How many of the last axes are a row."""


def operator_of(call):
    """The Operator of a call of Relax's, None of what is none for float32 rows."""
    from run_model_tools.kernels.programs.operators import ONE_BY_ONE

    name = called_operator(call).removeprefix("relax.")
    name = _OF_RELAX.get(name, name)
    if not name or not is_float32(call):
        return None
    tensors = [a for a in call.args if hasattr(getattr(a, "ty", None), "dtype")
               and hasattr(a.ty, "ndim")]
    if not tensors or not all(map(is_float32, tensors)):
        return None
    if name in ONE_BY_ONE and name != "copy":
        return _each(name, call, tensors)
    along = {"nn.softmax": _softmax, "nn.log_softmax": _softmax, "nn.layer_norm": _layer_norm}
    if name in along:
        return along[name](call, tensors)
    return _reduction(name, call, tensors) if name in _REDUCTIONS else None


def extents_of(expr):
    """The extents of a tensor, None if it is no such, or has any number of axes."""
    kind = getattr(expr, "ty", None)
    if not hasattr(kind, "ndim"):
        return None
    if kind.ndim == 0:
        return []
    values = getattr(getattr(kind, "shape", None), "values", None)
    return None if values is None else list(values)


def is_float32(expr):
    """Whether it is a tensor of such numbers, with known expressions for extents."""
    return extents_of(expr) is not None and str(expr.ty.dtype) == "float32"


def _each(name, call, tensors):
    from run_model_tools.kernels.programs.operators import one_by_one

    attrs = SimpleNamespace()
    if name == "clip":
        low, high = (getattr(bound, "value", None) for bound in call.args[1:])
        if low is None or high is None:
            return None
        attrs = SimpleNamespace(a_min=float(low), a_max=float(high))
    elif name == "nn.leaky_relu":
        attrs = SimpleNamespace(alpha=float(call.attrs.alpha))

    def append(program, nodes):
        return len(program.nodes) - 1 if one_by_one(program, name, nodes, attrs) else None
    return Operator(EACH, tensors, append)


def _last(axes, expr):
    """Whether the axes are the last one."""
    count = len(extents_of(expr))
    return count > 0 and [int(a) % count for a in axes] == [count - 1]


def _softmax(call, tensors):
    from run_model_tools.kernels.programs.operators import softmax

    if not _last([call.attrs.axis], tensors[0]):
        return None
    is_log = str(call.op.name) == "relax.nn.log_softmax"
    return Operator(ALONG, tensors, lambda program, nodes: softmax(program, nodes[0], is_log), 2)


def _mean_of(program):
    return lambda total: program.add("divide", total, program.add("columns"))


def _layer_norm(call, tensors):
    from run_model_tools.kernels.programs.operators import layer_norm

    attrs = call.attrs
    if not _last(attrs.axes, tensors[0]):
        return None

    def append(program, nodes):
        return layer_norm(program, nodes[0], float(attrs.epsilon),
                          nodes[1] if bool(attrs.scale) else None,
                          nodes[2] if bool(attrs.center) else None, _mean_of(program))
    return Operator(ALONG, tensors, append, 2)


def _reduction(name, call, tensors):
    rank = len(extents_of(tensors[0]))
    axes = range(rank) if call.attrs.axis is None else call.attrs.axis
    axes = sorted({int(axis) % rank for axis in axes}) if rank else []
    if not axes or axes != list(range(rank - len(axes), rank)):
        return None

    def append(program, nodes):
        total = program.add(_REDUCTIONS[name], nodes[0])
        if name == "variance":
            apart = program.add("subtract", nodes[0], _mean_of(program)(total))
            total = program.add("sum", program.add("multiply", apart, apart))
        return _mean_of(program)(total) if name in ("mean", "variance") else total
    return Operator(REDUCED, tensors, append, 2 if name == "variance" else 1, len(axes))
