"""Sums of elements of planes at computed places: what sampling pictures at a grid, and deformable
convolutions, are but for the places and weights, which all channels share."""

from run_model_tools.inside_tvm.operators import own_operators

_OPERATOR = "weighted_samples"
_TOGETHER, _TAPS = 4, 4
"""Channels, and elements of each sum, whose places and weights fit registers."""
_PLACES = 512
"""Whose sums stay in the nearest cache."""


@own_operators.once
def install(tvm):
    """Makes the operator known in this process."""
    from tvm import relay

    def type_of(arguments, attributes):
        planes, places, _ = arguments
        return relay.TensorType((*planes.shape[:2], places.shape[2]), planes.dtype)

    own_operators.register(
        tvm, _OPERATOR, "Sums of elements at computed places.", ("planes", "places", "weights"),
        type_of, lambda attributes, inputs: _by_loops(tvm, *inputs),
        elsewhere=lambda attributes, inputs: _by_element(tvm, *inputs))


def converters(known):
    """Of the nodes that sampling is repaired to."""
    import tvm

    def convert(inputs, attributes, parameters):
        return own_operators.called(tvm, _OPERATOR, [inputs[i] for i in range(3)])

    return {"WeightedSamples": convert}


def _inside(tvm, places, elements):
    """The places; where one is no number, the cast to a whole one gave any."""
    tir = tvm.tir
    return tvm.te.compute(places.shape, lambda *at: tir.max(tir.min(
        places(*at), tir.const(int(elements) - 1, "int32")), tir.const(0, "int32")), "inside")


def _by_element(tvm, planes, places, weights):
    """[batch, channels, places], of planes [batch, channels, elements] and places and weights
    [batch, taps, places]."""
    batch, channels, elements = planes.shape
    _, taps, count = (int(extent) for extent in places.shape)
    places = _inside(tvm, places, elements)

    def element(n, c, p):
        terms = [weights[n, t, p] * planes[n, c, places[n, t, p]].astype("float32")
                 for t in range(taps)]
        return sum(terms[1:], terms[0]).astype(planes.dtype)

    return tvm.te.compute((batch, channels, count), element, name=_OPERATOR, tag="injective")


def _by_loops(tvm, planes, places, weights):
    """The same, of some channels at once, for which places and weights are loaded once."""
    tir, te = tvm.tir, tvm.te
    batch, channels, elements = (int(extent) for extent in planes.shape)
    _, taps, count = (int(extent) for extent in places.shape)
    together = next(n for n in range(min(_TOGETHER, channels), 0, -1) if channels % n == 0)

    def loops(ins, outs):
        ib = tir.ir_builder.create()
        source, at, shares, out = map(ib.buffer_ptr, [*ins, *outs])
        with ib.for_range(0, batch * channels // together, "group", kind="parallel") as group:
            first = ib.let("first", tir.indexdiv(group, channels // together) * (taps * count))
            with ib.for_range(0, -(-count // _PLACES), "block") as block:
                end = tir.min(tir.const(_PLACES, "int32"), count - block * _PLACES)
                for begin in range(0, taps, _TAPS):
                    with ib.for_range(0, end, "within") as within:
                        place = block * _PLACES + within
                        found = [(ib.let("where", at[first + tap * count + place]),
                                  ib.let("share", shares[first + tap * count + place]))
                                 for tap in range(begin, min(begin + _TAPS, taps))]
                        for channel in range(together):
                            plane = group * together + channel
                            terms = [share * source[plane * elements + where].astype("float32")
                                     for where, share in found]
                            so_far = [out[plane * count + place].astype("float32")
                                      ] if begin else []
                            total = sum([*so_far, *terms[1:]], terms[0])
                            out[plane * count + place] = total.astype(planes.dtype)
        return ib.get()

    out = tir.decl_buffer((batch, channels, count), planes.dtype, "samples")
    return te.extern([out.shape], [planes, _inside(tvm, places, elements), weights], loops,
                     out_buffers=[out], dtype=planes.dtype, name=_OPERATOR, tag=_OPERATOR)
