"""What TVM 0.18's pass SimplifyExpr does for plain modules, in one walk and exactly.

The pass infers the types of the whole network anew for each of its 24 rules, as often as one of
them finds something: a third of what compiling a transformer takes.  Some of its rules change
results, and are stricter here:

    casts         one that loses something is kept: int8 -> uint8 -> float32, int32 -> float32 ->
                  int32, and what cuts off the fractions of a clipped float
    constants     are put together where nothing is lost between them: x + 1.5 * 2**23 - 1.5 * 2**23
                  is how programs round
    clips         of floats are kept, since infinities may reach them

Left out are those for a*x*x + b*x*y + c*y*y, which takes one number of a, b and c for all of them;
for argmax, argmin and argsort of bytes instead of what they stand for, whose scales may differ; and
what networks do not have by the time that this runs.
"""

import re

import numpy as np

from run_model_tools.inside_tvm.plain_graphs import is_plain, mapped

_ERROR = 2.0 ** -14
"""What putting constants of a sum together may lose of a result of the size of 1."""

_RESHAPES = ("reshape", "contrib_reverse_reshape")
_TRANSPOSES = ("transpose", "layout_transform")
_NEUTRAL = {"add": 0, "subtract": 0, "multiply": 1, "divide": 1}
_BITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
"""Of the significands: whole numbers of so many bits are exact."""


def simplify_expr(tvm, item):
    """`item`, SimplifyExpr or its part that follows AlterOpLayout, as a function of a module."""
    relay = tvm.relay
    alone = tvm.transform.Sequential([item])
    is_whole = str(item.info.name) == "SimplifyExpr"

    def run(mod):
        if not is_plain(tvm, mod):
            return alone(mod)
        mod = relay.transform.InferType()(mod)
        return mapped(relay, mod, _Rules(relay, is_whole).simplified)

    return run


class _Rules:
    """Each is given a call with its type, and gives what takes the call's place or None."""

    def __init__(self, relay, is_whole):
        self._relay = relay
        self._dtypes = {}
        """Of what takes the place of typed nodes and has no type of its own yet."""
        self._rules = {**dict.fromkeys(_RESHAPES, [self._reshape]), "cast": [self._cast],
                       "clip": [self._clip], **{name: [self._neutral] for name in _NEUTRAL}}
        if is_whole:
            self._rules.update(dict.fromkeys(_TRANSPOSES, [self._transpose]))
            self._rules.update({f"{name}_like": [self._like] for name in (
                "zeros", "ones", "full", "reshape", "broadcast_to", "cast")})
            self._rules["add"] += [self._twice, self._one_constant]
            self._rules["multiply"] += [self._product_before_sum, self._one_constant]
            self._rules["subtract"].append(self._sum)
            self._rules["divide"].append(self._rsqrt)

    def simplified(self, call, args):
        """For plain_graphs.mapped: what a typed call of these args becomes, None if it stays."""
        changed = [(was, now) for was, now in zip(call.args, args) if not was.same_as(now)]
        self._dtypes.update((now, self._dtype(was)) for was, now in changed)
        new = call if not changed else self._relay.Call(call.op, args, call.attrs, call.type_args,
                                                        call.span)
        made = self._applied(new, call.checked_type)
        return None if made.same_as(call) else made

    def _applied(self, node, kind):
        """What the rules leave of a node whose operands they have been applied to."""
        while self._is(node, *self._rules):
            rules = self._rules[node.op.name]
            made = next(filter(None, (rule(node, kind) for rule in rules)), None)
            if made is None:
                break
            node = made
            self._dtypes[node] = str(kind.dtype)
        return node

    def _dtype(self, node):
        return self._dtypes.get(node) or str(getattr(node.checked_type, "dtype", ""))

    def _is(self, node, *names):
        return isinstance(node, self._relay.Call) and node.op.name in names

    def _call(self, made, like):
        """A call that a function of Relay made, with the name of the node that it stands for."""
        return self._relay.Call(made.op, made.args, made.attrs, made.type_args, like.span)

    def _like(self, call, kind):
        name, (first, second) = call.op.name[:-len("_like")], [*call.args, None][:2]
        made = {"zeros": lambda: self._relay.zeros(kind.shape, kind.dtype),
                "ones": lambda: self._relay.ones(kind.shape, kind.dtype),
                "full": lambda: self._relay.full(second, kind.shape, kind.dtype),
                "reshape": lambda: self._relay.reshape(first, kind.shape),
                "broadcast_to": lambda: self._relay.broadcast_to(first, kind.shape),
                "cast": lambda: self._relay.cast(first, kind.dtype)}[name]()
        return self._call(made, call)

    def _reshape(self, call, kind):
        inner = call.args[0]
        shape = [int(d) for d in kind.shape]
        # An extent 0 would be the operand's.
        if not self._is(inner, *_RESHAPES) or 0 in shape:
            return None
        return self._call(self._relay.reshape(inner.args[0], shape), call)

    def _transpose(self, call, kind):
        relay, inner, rank = self._relay, call.args[0], len(kind.shape)
        axes, layouts = self._axes(call, rank), self._layouts(call)
        if axes == list(range(rank)) or layouts and layouts[0] == layouts[1]:
            return inner
        if not self._is(inner, *_TRANSPOSES):
            return None
        inner_axes, inner_layouts = self._axes(inner, rank), self._layouts(inner)
        x = inner.args[0]
        if axes and inner_axes:
            return self._call(relay.transpose(x, [inner_axes[axis] for axis in axes]), call)
        if layouts and inner_layouts and layouts[0] == inner_layouts[1]:
            source, target = inner_layouts[0], layouts[1]
        elif layouts and not inner_layouts and layouts[0].isalpha():
            source, target = layouts
            axes = self._axes(inner, len(source))
            source = "".join(source[axes.index(axis)] for axis in range(len(axes)))
        elif inner_layouts and not layouts and inner_layouts[1].isalpha():
            source, target = inner_layouts[0], "".join(inner_layouts[1][axis] for axis in axes)
        else:
            return None
        return x if source == target else self._call(
            relay.layout_transform(x, source, target), call)

    def _layouts(self, call):
        if call.op.name == "transpose":
            return None
        return str(call.attrs.src_layout), str(call.attrs.dst_layout)

    def _axes(self, call, rank):
        """Of a transpose, and of a layout transform that is one, else None."""
        if call.op.name == "transpose":
            axes = call.attrs.axes
            return [int(a) % rank for a in axes] if axes else list(reversed(range(rank)))
        source, target = self._layouts(call)
        if sorted(source) == sorted(target) and source.isalpha():
            return [source.index(letter) for letter in target]
        return None

    def _cast(self, call, kind):
        inner = call.args[0]
        via, target = self._dtype(inner), str(kind.dtype)
        if via == target:
            return inner
        if not self._is(inner, "cast"):
            return None
        x = inner.args[0]
        source = self._dtype(x)
        if _is_exact(source, via) or (self._is(x, "clip") and _is_whole(source)
                                      and _holds(via, x.attrs)):
            return self._call(self._relay.cast(x, target), call)
        return None

    def _clip(self, call, kind):
        least, most = _range(str(kind.dtype))
        if call.attrs.a_min <= least and call.attrs.a_max >= most and not self._is(
                call.args[0], "qnn.requantize", "qnn.add"):
            return call.args[0]
        return None

    def _neutral(self, call, kind):
        both = call.op.name in ("add", "multiply")
        for x, c in [call.args, list(reversed(call.args))][:1 + both]:
            if isinstance(c, self._relay.Constant) and not c.data.shape and (
                    c.data.numpy() == _NEUTRAL[call.op.name]):
                return x
        return None

    def _twice(self, call, kind):
        x, y = call.args
        return self._call(self._relay.multiply(x, self._relay.const(2, str(kind.dtype))), call) \
            if x.same_as(y) else None

    def _rsqrt(self, call, kind):
        if not self._is(call.args[1], "sqrt"):
            return None
        root = self._call(self._relay.rsqrt(call.args[1].args[0]), call.args[1])
        self._dtypes[root] = str(kind.dtype)
        return self._call(self._relay.multiply(call.args[0], root), call)

    def _sum(self, call, kind):
        """x + -c for x - c where c is large: lowering takes (x + c) - c for x."""
        x, c = call.args
        if not isinstance(c, self._relay.Constant) or _is_small(c.data.numpy()):
            return None
        return self._call(self._relay.add(x, self._constant(-c.data.numpy())), call)

    def _product_before_sum(self, call, kind):
        """(x + a) * b, as x * b + a * b: what scales a convolution may go into its weights."""
        total, b = self._with_constant(call, "multiply")
        x, a = self._with_constant(total, "add")
        if a is None or not _is_small(a):
            return None
        constant = _together(np.multiply, a, b)
        if constant is None:
            return None
        product = self._call(self._relay.multiply(x, self._constant(b)), call)
        self._dtypes[product] = str(kind.dtype)
        return self._call(self._relay.add(self._applied(product, kind),
                                          self._constant(constant)), call)

    def _one_constant(self, call, kind):
        name = call.op.name
        inner, b = self._with_constant(call, name)
        x, a = self._with_constant(inner, name)
        if a is None or name == "add" and not (_is_small(a) and _is_small(b)):
            return None
        constant = _together(np.add if name == "add" else np.multiply, a, b)
        return None if constant is None else self._call(
            getattr(self._relay, name)(x, self._constant(constant)), call)

    def _with_constant(self, node, name):
        """(operand, array) of a sum or product of something and a constant, else (None, None)."""
        if self._is(node, name):
            for x, c in (node.args, list(reversed(node.args))):
                if isinstance(c, self._relay.Constant):
                    return x, c.data.numpy()
        return None, None

    def _constant(self, array):
        return self._relay.const(array, str(array.dtype))


def _is_small(array):
    """Whether a sum with a number of the size of 1 keeps enough of it."""
    return array.dtype.kind != "f" or bool(
        (np.abs(array) <= _ERROR / np.finfo(array.dtype).epsneg).all())


def _together(operation, a, b):
    """The constant of two in turn; None where it overflows or underflows and they alone do not."""
    if a.dtype.kind not in "iuf":
        return None
    with np.errstate(all="ignore"):
        result = np.asarray(operation(a, b))
    if result.dtype.kind == "f":
        usual = np.isfinite(result) & (np.abs(result) >= np.finfo(result.dtype).tiny)
        special = [(c == 0) | ~np.isfinite(c) for c in (a, b)]
        if not (usual | special[0] | special[1] | (operation is np.add) & (result == 0)).all():
            return None
    return result


def _kind(dtype):
    """(int, uint or float ..., bits) of a type of one lane."""
    if dtype == "bool":
        return "uint", 1
    name, bits = re.fullmatch(r"([a-z]+)(\d+)", dtype).groups()
    return name, int(bits)


def _is_whole(dtype):
    return _kind(dtype)[0] in ("int", "uint")


def _is_exact(source, target):
    """Whether `target` has every value of `source`."""
    (have, bits), (want, room) = _kind(source), _kind(target)
    if target in _BITS:
        return bits - (have == "int") <= _BITS[target] if _is_whole(source) else (
            source in _BITS and _BITS[source] <= _BITS[target] and bits <= room)
    if not (_is_whole(source) and _is_whole(target)):
        return False
    return bits <= room if have == want else have == "uint" and bits < room


def _range(dtype):
    """The least and the largest value of a type."""
    name, bits = _kind(dtype)
    if name == "uint":
        return 0, 2 ** bits - 1
    return (-2 ** (bits - 1), 2 ** (bits - 1) - 1) if name == "int" else (-np.inf, np.inf)


def _holds(dtype, clip):
    """Whether a type of whole numbers has all that a clip lets through."""
    least, most = _range(dtype)
    return _is_whole(dtype) and clip.a_min >= least and clip.a_max <= most
