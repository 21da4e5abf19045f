"""Expressions of TIR -> text: the part of writer.Writer that computes."""

import math
import re

from run_model_tools.inside_tvm import called_operator

TYPES = {
    "bool": "bool", "float16": "float16_t", "float32": "float", "float64": "double",
    "int8": "int8_t", "uint8": "uint8_t", "int16": "int16_t", "uint16": "uint16_t",
    "int32": "int", "uint32": "uint", "int64": "int64_t", "uint64": "uint64_t"}
_COMPARISONS = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}
_ARITHMETIC = {"Add": "+", "Sub": "-", "Mul": "*"}
_BITS = {"bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^", "shift_left": "<<",
         "shift_right": ">>"}


class Unknown(Exception):
    """What of a kernel cannot be said."""


class Expressions:
    """What a Writer's statements are made of; it needs the Writer's names and buffers."""

    DOUBLE = "%s(%r)"
    CHOOSE_FLOAT = "a %s b ? a : b"
    """The larger or smaller of two floats; where b is a NaN, b."""

    def _scalar_type(self, kind):
        return self._type(re.sub(r"x\d+$", "", str(kind)))

    def _expression(self, node):
        return self._lane(node, 0)

    def _lane(self, node, lane):
        """The number of a vector; of a scalar, itself."""
        name = type(node).__name__
        sign = _ARITHMETIC.get(name) or _COMPARISONS.get(name)
        method = getattr(self, "_of_" + name, None)
        if method is None and sign is None:
            raise Unknown("the expression %s" % name)
        return method(node, lane) if method else "(%s %s %s)" % (
            self._lane(node.a, lane), sign, self._lane(node.b, lane))

    def _of_IntImm(self, node, lane):
        kind, value = str(node.dtype), int(node)
        if kind == "bool":
            return "true" if value else "false"
        if kind == "int32":
            return str(value) if value > -(1 << 31) else "(-2147483647 - 1)"
        if kind == "uint32":
            return "%du" % (value & 0xffffffff)
        if kind == "int64":
            self._types.add(kind)
            return "%dl" % value if value > -(1 << 63) else "(-9223372036854775807l - 1l)"
        return "%s(%d)" % (self._type(kind), value)

    def _of_FloatImm(self, node, lane):
        kind, value = str(node.dtype), float(node.value)
        if kind == "float64":
            name = self._type(kind)
            if not math.isfinite(value):
                return "%s(%s)" % (name, _not_finite(value))
            return self.DOUBLE % (name, value)
        self._type(kind)
        text = "%.9ef" % value if math.isfinite(value) else _not_finite(value)
        return text if kind == "float32" else "%s(%s)" % (TYPES[kind], text)

    def _of_Var(self, node, lane):
        if node not in self._names:
            raise Unknown("the variable %s that nothing declares" % node.name)
        return self._names[node]

    def _of_Let(self, node, lane):
        return self._lane(self._tir.stmt_functor.substitute(node.body, {node.var: node.value}),
                          lane)

    def _of_Ramp(self, node, lane):
        return "(%s + %s * %d)" % (self._expression(node.base), self._expression(node.stride),
                                   lane)

    def _of_Broadcast(self, node, lane):
        return self._expression(node.value)

    def _of_Shuffle(self, node, lane):
        place = node.indices[lane]
        if not isinstance(place, self._tir.IntImm):
            raise Unknown("a shuffle by a variable")
        place = int(place)
        for vector in node.vectors:
            lanes = self._tvm.DataType(vector.dtype).lanes
            if place < lanes:
                return self._lane(vector, place)
            place -= lanes
        raise Unknown("a shuffle beyond its vectors")

    def _of_Cast(self, node, lane):
        value = self._lane(node.value, lane)
        to = re.sub(r"x\d+$", "", str(node.dtype))
        of = re.sub(r"x\d+$", "", str(node.value.dtype))
        if to == of:
            return value
        if to == "bool":
            return "(%s != %s)" % (value, "%s(0)" % self._type(of))
        # GLSL has no way from a float to the small types but through int.
        if of.startswith("float") and to in ("int8", "uint8", "int16", "uint16"):
            value = "int(%s)" % value
        return "%s(%s)" % (self._type(to), value)

    def _of_And(self, node, lane):
        return "(%s && %s)" % (self._lane(node.a, lane), self._later(node.b, lane))

    def _of_Or(self, node, lane):
        return "(%s || %s)" % (self._lane(node.a, lane), self._later(node.b, lane))

    def _of_Not(self, node, lane):
        return "!%s" % self._lane(node.a, lane)

    def _later(self, node, lane):
        """What is not evaluated where it stands, or not once: nothing of it may be computed
        before."""
        self._guarded += 1
        try:
            return self._lane(node, lane)
        finally:
            self._guarded -= 1

    def _of_Div(self, node, lane):
        return "(%s / %s)" % (self._lane(node.a, lane), self._lane(node.b, lane))

    def _of_Mod(self, node, lane):
        if str(node.dtype).startswith("float"):
            return self._called("fmod", [node.a, node.b], lane)
        a, b = self._lane(node.a, lane), self._lane(node.b, lane)
        if str(node.dtype).startswith("uint") or self._not_negative(node.a, node.b):
            return "(%s %% %s)" % (a, b)
        kind = self._scalar_type(node.dtype)
        name = "remainder_" + kind
        self._own[name] = "%s %s(%s a, %s b) { return a - a / b * b; }" % (kind, name, kind, kind)
        return "%s(%s, %s)" % (name, a, b)

    def _not_negative(self, *values):
        if any(self._tvm.DataType(value.dtype).lanes != 1 for value in values):
            return False
        return all(int(self._analyzer.const_int_bound(value).min_value) >= 0 for value in values)

    def _of_Max(self, node, lane):
        return self._chosen(node, lane, ">")

    def _of_Min(self, node, lane):
        return self._chosen(node, lane, "<")

    def _chosen(self, node, lane, sign):
        """The second where they cannot be compared, which nan_arithmetic.py counts on."""
        kind = self._scalar_type(node.dtype)
        name = "%s_%s" % ("larger" if sign == ">" else "smaller", kind)
        form = self.CHOOSE_FLOAT if str(node.dtype).startswith("float") else "a %s b ? a : b"
        self._own[name] = "%s %s(%s a, %s b) { return %s; }" % (
            kind, name, kind, kind, form % sign)
        return "%s(%s, %s)" % (name, self._lane(node.a, lane), self._lane(node.b, lane))

    def _of_Select(self, node, lane):
        condition = self._lane(node.condition, lane)
        return "(%s ? %s : %s)" % (condition, self._later(node.true_value, lane),
                                   self._later(node.false_value, lane))

    def _of_BufferLoad(self, node, lane):
        buffer = self._buffer(node.buffer)
        if getattr(node, "predicate", None) is not None:
            raise Unknown("a masked load")
        if len(node.indices) != 1:
            raise Unknown("a buffer of %d axes" % len(node.indices))
        own = self._tvm.DataType(str(node.buffer.dtype)).lanes
        index = node.indices[0]
        if own == 1 and buffer.may_load_vectors and not self._guarded:
            lanes = self._vector_place(node)
            if lanes is not None:
                return "%s[%s / %d]%s" % (buffer.as_vectors(lanes), self._place_at(index.base, 0),
                                          lanes, "." + "xyzw"[lane])
        text = "%s[%s]" % (buffer.name, self._place(index, own, lane))
        if buffer.element == "bool" and buffer.scope == "global":
            return "(%s != int8_t(0))" % text
        if buffer.element == "int8" and str(node.dtype).startswith("bool"):
            return "(%s != int8_t(0))" % text
        return text

    def _of_Call(self, node, lane):
        name = called_operator(node).partition("tir.")[2] or "?"
        if name == "if_then_else":
            condition = self._lane(node.args[0], lane)
            return "(%s ? %s : %s)" % (condition, self._later(node.args[1], lane),
                                       self._later(node.args[2], lane))
        if name == "likely":
            return self._lane(node.args[0], lane)
        if name == "reinterpret":
            return self._reinterpreted(node, lane)
        if name in _BITS:
            return "(%s %s %s)" % (self._lane(node.args[0], lane), _BITS[name],
                                   self._lane(node.args[1], lane))
        if name == "bitwise_not":
            return "(~%s)" % self._lane(node.args[0], lane)
        if name == "large_uint_imm":
            low, high = (int(part) for part in node.args)
            return "%s(%dul)" % (self._type(str(node.dtype)), (high << 32) | low)
        if name in self.CALLS:
            return self._called(name, node.args, lane)
        # TVM's rules make "expf" and the like, and for CUDA "__expf", of which the exact one is
        # taken.
        if name == "call_pure_extern":
            function = str(node.args[0].value).lstrip("_")
            kind = str(node.dtype)
            function = function[:-1] if kind.startswith("float32") and function.endswith(
                "f") else function
            if function in self.CALLS:
                return self._called(function, node.args[1:], lane)
            raise Unknown("the function %s" % function)
        raise Unknown("the function %s" % (name or node.op))

    def _called(self, name, arguments, lane):
        function = self._helper(self.CALLS[name])
        kind = re.sub(r"x\d+$", "", str(arguments[0].dtype))
        values = [self._lane(argument, lane) for argument in arguments]
        if kind == "float32" or (kind in ("int32", "uint32") and name == "popcount"):
            return "%s(%s)" % (function, ", ".join(values))
        if kind == "float16":
            text = "%s(%s)" % (function, ", ".join("float(%s)" % value for value in values))
            return text if name.startswith("is") else "float16_t(%s)" % text
        if kind == "float64" and name in ("floor", "ceil", "trunc", "sqrt", "fabs", "isnan"):
            return "%s(%s)" % (function, ", ".join(values))
        raise Unknown("the function %s of %s" % (name, kind))

    def _reinterpreted(self, node, lane):
        value = self._lane(node.args[0], lane)
        to, of = (re.sub(r"x\d+$", "", str(kind)) for kind in (node.dtype, node.args[0].dtype))
        if to == of:
            return value
        known = {("float32", "int32"): "intBitsToFloat", ("float32", "uint32"): "uintBitsToFloat",
                 ("int32", "float32"): "floatBitsToInt", ("uint32", "float32"): "floatBitsToUint",
                 ("int32", "uint32"): "int", ("uint32", "int32"): "uint"}
        if (to, of) not in known:
            raise Unknown("bits of %s taken for %s" % (of, to))
        self._type(to)
        return "%s(%s)" % (known[to, of], value)


def _not_finite(value):
    """A NaN or infinity as a float32."""
    return "uintBitsToFloat(0x%s00000u)" % (
        "7fc" if math.isnan(value) else "7f8" if value > 0 else "ff8")
