"""Functions of 16-bit numbers that LiteRT takes from tables: EXP, LOG and RSQRT.

A table has 513 entries, with straight lines between them.  Near 0, where the variances of a
LayerNorm are, these are far from the function, and networks were quantized with them.
"""

import numpy as np
from tvm import relay

PARTS = 512
"""Of the table, between which LiteRT interpolates."""
_LEAST, _MOST = -(1 << 15), (1 << 15) - 1


def lines(at, middle, behind):
    """(65536,) int32: what straight lines have between entries, from a function's values, in steps
    of the result, at the beginning, in the middle and behind the end of each part.

    An entry is half of what the line would be off by in its middle beside the function.
    """
    line = _rounded((behind + _rounded(at)) / 2)
    entries = np.append(_rounded(at) - _rounded((line - _rounded(middle)) / 2),
                        _rounded(behind[-1]))
    entries = np.clip(np.nan_to_num(entries, nan=_MOST), _LEAST, _MOST).astype(np.int32)
    each = (1 << 16) // PARTS
    offsets = np.arange(each, dtype=np.int32)
    between = entries[:-1, None] + ((np.diff(entries)[:, None] * offsets + each // 2) // each)
    return between.reshape(-1)


def _rounded(numbers):
    """To the nearest whole number, halves away from zero."""
    return np.trunc(numbers + np.copysign(numbers.dtype.type(0.5), numbers))


def _function(exact, values):
    """A converter; values(x, the least and the largest result) are the function's for LiteRT."""
    def convert(converter, op):
        index = int(op.Inputs(0))
        source, target = (converter.graph.tensors[int(i)] for i in (index, op.Outputs(0)))
        if not all(t.is_whole and t.dtype == "int16" for t in (source, target)):
            return exact(converter.value(index))
        step, scale = (np.float32(t.quantized.scales[0]) for t in (source, target))
        low, high = step * np.float32(_LEAST), step * np.float32(_MOST)
        least, most = scale * np.float32(_LEAST), scale * np.float32(_MOST)
        part = (high - low) / np.float32(PARTS)
        begin = low + np.arange(PARTS, dtype=np.float32) * part
        end = low + np.arange(1, PARTS + 1, dtype=np.float32) * part
        steps = np.float32(1 << 16) / (most - least)
        with np.errstate(all="ignore"):
            table = lines(*(values(x, least, most).astype(np.float32) * steps
                            for x in (begin, begin + part / np.float32(2), end)))
        places = relay.add(relay.cast(converter.output(index), "int32"), relay.const(-_LEAST))
        found = relay.take(relay.const(table.astype(np.int16)), places, mode="fast")
        return relay.multiply(relay.cast(found, "float32"), relay.const(scale))

    return convert


CONVERTERS = {
    "EXP": _function(relay.exp, lambda x, least, most: np.exp(x)),
    "LOG": _function(relay.log, lambda x, least, most: np.where(x > 0, np.log(x), least)),
    "RSQRT": _function(relay.rsqrt, lambda x, least, most: np.where(x > 0, 1 / np.sqrt(x), most))}
"""By operators' names, functions of the importer's converter and one operator."""
