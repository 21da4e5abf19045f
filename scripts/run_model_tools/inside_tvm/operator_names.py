"""What operator an expression of TVM's calls."""


def called_operator(expr):
    """As "nn.conv2d", "relax.add" or "tir.exp"; "" of what calls no operator, but a function or
    nothing at all."""
    return str(getattr(getattr(expr, "op", None), "name", ""))
