"""Sizes, widths and counts that a network computes, for TVM's ONNX importer, which takes constants
there: each becomes a symbol that has its number when the network runs."""

from contextlib import contextmanager

from run_model_tools.inside_tvm.operators.onnx_converters import exchanged
from run_model_tools.inside_tvm.relax import same_extents


@contextmanager
def installed():
    """While it is open, TVM's importer takes such Resize, Pad and TopK."""
    from tvm import relax
    from tvm.relax.frontend.onnx import onnx_frontend

    class Resize(onnx_frontend.Resize):
        @classmethod
        def _impl_v18(cls, bb, inputs, attr, params):
            sizes = inputs[3] if len(inputs) > 3 else None
            if sizes is None or _is_constant(sizes):
                return super()._impl_v18(bb, inputs, attr, params)
            return _resized(bb, inputs[0], sizes, attr)

    class Pad(onnx_frontend.Pad):
        @classmethod
        def _lower_pad(cls, bb, inputs, attr, params, allowed_modes):
            axes = inputs[3] if len(inputs) > 3 else None
            mode = attr.get("mode", b"constant")
            if _is_constant(inputs[1]) or axes is not None or mode != b"constant":
                return super()._lower_pad(bb, inputs, attr, params, allowed_modes)
            value = inputs[2] if len(inputs) > 2 else None
            return _padded(bb, inputs[0], inputs[1],
                           0.0 if value is None else value.value.numpy().item())

    class TopK(onnx_frontend.TopK):
        @classmethod
        def _impl_v11(cls, bb, inputs, attr, params):
            if _is_constant(inputs[1]):
                return super()._impl_v11(bb, inputs, attr, params)
            return _best(bb, inputs[0], inputs[1], attr)

    class Reshape(onnx_frontend.Reshape):
        @classmethod
        def _impl_v13(cls, bb, inputs, attr, params):
            if _is_constant(inputs[1]) or isinstance(inputs[1], relax.ShapeExpr):
                return super()._impl_v13(bb, inputs, attr, params)
            return _reshaped(bb, *inputs, attr.get("allowzero", 0))

    class Squeeze(onnx_frontend.Squeeze):
        @classmethod
        def _squeeze(cls, bb, data, axis):
            if isinstance(axis, (tuple, list)) and not _is_constant(data):
                data = _of_one(bb, data, axis)
            return super()._squeeze(bb, data, axis)

    with exchanged(onnx_frontend, lambda known: {
            **known, "Resize": Resize, "Pad": Pad, "Reshape": Reshape, "Squeeze": Squeeze,
            "TopK": TopK}):
        yield


def _is_constant(value):
    from tvm import ir

    return isinstance(value, ir.GenericConst)


def extents(bb, computed, name):
    """The numbers of a shape, or symbols for those of a computed list."""
    from tvm import relax, tirx

    if isinstance(computed, relax.ShapeExpr):
        return list(computed.values)
    computed = bb.normalize(computed)
    count = int(computed.ty.shape.values[0])
    symbols = [tirx.Var("%s_%d" % (name, i), "int64") for i in range(count)]
    shape = bb.emit(relax.op.tensor_to_shape(computed))
    bb.match_cast(shape, relax.ShapeType(symbols))
    return symbols


def _resized(bb, x, sizes, attr):
    from tvm import relax

    def text(name, default):
        return attr.get(name, default).decode("ascii")

    x, mode = bb.normalize(x), text("mode", b"nearest")
    if x.ty.ndim != 4 or attr.get("axes") or attr.get("antialias") or \
            text("keep_aspect_ratio_policy", b"stretch") != "stretch":
        raise ValueError("Resize to a computed size is only known of pictures, all axes of which "
                         "have a size, without antialiasing")
    return relax.op.image.resize2d(
        x, size=relax.ShapeExpr(extents(bb, sizes, "size")[2:]), layout="NCHW",
        method="nearest_neighbor" if mode == "nearest" else mode,
        coordinate_transformation_mode=text("coordinate_transformation_mode", b"half_pixel"),
        rounding_method=text("nearest_mode", b"round_prefer_floor"),
        cubic_alpha=attr.get("cubic_coeff_a", -0.75),
        cubic_exclude=attr.get("exclude_outside", 0),
        extrapolation_value=attr.get("extrapolation_value", 0.0))


def _reshaped(bb, x, shape, keeps_zeros):
    """A 0 of the list is the extent that was, -1 what the others leave."""
    from tvm import relax

    x, shape = bb.normalize(x), bb.normalize(shape)
    if isinstance(x, relax.ShapeExpr):
        x = bb.emit(relax.op.shape_to_tensor(x))
    count, one = int(shape.ty.shape.values[0]), relax.const(1, "int64")
    before = bb.emit(relax.op.shape_to_tensor(relax.ShapeExpr(x.ty.shape.values)))
    if not keeps_zeros:
        # Behind the last extent a 0 can only be one.
        known = [relax.ShapeExpr(list(x.ty.shape.values)[:count] + [0] * (count - x.ty.ndim))]
        known = bb.emit(relax.op.shape_to_tensor(known[0]))
        shape = bb.emit(relax.op.where(relax.op.equal(shape, relax.const(0, "int64")), known,
                                       shape))
    is_left = relax.op.less(shape, relax.const(0, "int64"))
    others = relax.op.prod(relax.op.where(is_left, one, shape))
    left = relax.op.floor_divide(relax.op.prod(before), relax.op.maximum(others, one))
    shape = bb.emit(relax.op.where(is_left, left, shape))
    return relax.op.reshape(x, relax.ShapeExpr(extents(bb, shape, "extent")))


def _of_one(bb, x, axes):
    """`x` with extents of 1 along axes of which the importer does not see that they are."""
    from tvm import relax, tirx

    x = bb.normalize(x)
    values = list(getattr(getattr(x.ty, "shape", None), "values", None) or ())
    shape = [tirx.IntImm("int64", 1) if at in [axis % len(values) for axis in axes] and not
             isinstance(extent, tirx.IntImm) else extent for at, extent in enumerate(values)]
    if all(a is b for a, b in zip(shape, values)):
        return x
    return bb.emit(same_extents.of(x, relax.TensorType(shape, x.ty.dtype)))


def _padded(bb, x, widths, value):
    from tvm import topi

    x = bb.normalize(x)
    numbers = extents(bb, widths, "width")
    rank = len(numbers) // 2

    def pad(data):
        return topi.nn.pad(data, numbers[:rank], numbers[rank:], value)

    return bb.emit_te(pad, x)


def _best(bb, x, count, attr):
    """All in order, and as many of them as there are to be."""
    import numpy as np
    from tvm import relax, tirx

    x = bb.normalize(x)
    axis = attr.get("axis", -1) % x.ty.ndim
    if attr.get("sorted", 1) != 1:
        raise ValueError("TopK is only known sorted")
    found = bb.emit(relax.op.topk(x, -1, axis, "both", bool(attr.get("largest", 1)), "int64"))
    if isinstance(count, relax.ShapeExpr):
        count = bb.emit(relax.op.shape_to_tensor(count))
    shape = list(x.ty.shape.values)
    wanted = tirx.Var("best", "int64")

    def numbers(values):
        return relax.const(np.array(values), "int64")

    ends = bb.emit(relax.op.concat([
        bb.emit(relax.op.shape_to_tensor(relax.ShapeExpr(shape[:axis]))) if axis else numbers([]),
        bb.emit(relax.op.reshape(count, [1])),
        bb.emit(relax.op.shape_to_tensor(relax.ShapeExpr(shape[axis + 1:])))
        if axis + 1 < len(shape) else numbers([])], 0)) if len(shape) > 1 else count
    left = []
    for i in range(2):
        some = bb.emit(relax.op.dynamic_strided_slice(
            bb.emit(relax.TupleGetItem(found, i)), numbers([0] * len(shape)), ends,
            numbers([1] * len(shape))))
        kind = relax.TensorType([*shape[:axis], wanted, *shape[axis + 1:]],
                                x.ty.dtype if i == 0 else "int64")
        left.append(bb.match_cast(some, kind))
    return relax.Tuple(left)
