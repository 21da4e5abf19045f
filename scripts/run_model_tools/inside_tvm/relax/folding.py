"""Nodes of constants in an ONNX file that TVM's importer gets as it is."""

_SMALL = 2 ** 16
"""Numbers of an array, at most."""
_BY_CHANCE = {"Bernoulli", "Dropout", "Multinomial", "RandomNormalLike", "RandomUniformLike"}
_PLAIN = {1, 2, 3, 4, 6, 7, 8}
"""Types of attributes (onnx.AttributeProto) that are no graphs."""


def folded(node, known, opset):
    """The constants that a node makes of constants; None where it has others, or makes large ones.
    Of sizes that the network fixes itself the importer computes some with the picture otherwise."""
    import numpy as np
    from onnx.reference import ReferenceEvaluator
    from tvm import relax

    if node.op_type in _BY_CHANCE or not node.input or node.domain not in ("", "ai.onnx"):
        return None
    arrays = {name: _numbers_of(known.get(name)) for name in node.input if name}
    if any(array is None or array.size > _SMALL for array in arrays.values()) or not all(
            attribute.type in _PLAIN for attribute in node.attribute):
        return None
    try:
        made = ReferenceEvaluator(node, opsets={"": opset}).run(None, arrays)
    except Exception:  # It has its own kinds of what it cannot do.
        return None
    if not all(isinstance(array, (np.ndarray, np.generic)) and array.size <= _SMALL
               for array in made):
        return None
    return {name: relax.const(array, str(array.dtype))
            for name, array in zip(node.output, made) if name}


def _numbers_of(value):
    """The array of a constant or of a shape without symbols."""
    import numpy as np
    from tvm import ir, relax, tirx

    if isinstance(value, ir.GenericConst):
        return value.value.numpy()
    if isinstance(value, (tirx.IntImm, tirx.FloatImm)):
        return np.array(value.value, str(value.ty))
    if isinstance(value, relax.ShapeExpr) and all(
            isinstance(extent, tirx.IntImm) for extent in value.values):
        return np.array([int(extent) for extent in value.values], np.int64)
    return None
