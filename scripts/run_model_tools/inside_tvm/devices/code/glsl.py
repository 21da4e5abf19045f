"""Kernels of TIR -> compute shaders in GLSL, with the interface of TVM's own Vulkan modules:
buffers are bindings 0, 1 ... of set 0, scalars push constants of 8 bytes each."""

import re

from run_model_tools.inside_tvm.devices.code import writer
from run_model_tools.inside_tvm.devices.code.expressions import Unknown
from run_model_tools.inside_tvm.devices.code.glsl_functions import (
    BITS,
    BITS_OF_DOUBLES,
    CALLS,
    HELPERS,
)

_FEATURES = {
    "float16": ("shaderFloat16", "storageBuffer16BitAccess"), "float64": ("shaderFloat64",),
    "int8": ("shaderInt8", "storageBuffer8BitAccess"),
    "uint8": ("shaderInt8", "storageBuffer8BitAccess"),
    "int16": ("shaderInt16", "storageBuffer16BitAccess"),
    "uint16": ("shaderInt16", "storageBuffer16BitAccess"),
    "int64": ("shaderInt64",), "uint64": ("shaderInt64",)}
_EXTENSIONS = {"float16": "float16", "int8": "int8", "uint8": "int8", "int16": "int16",
               "uint16": "int16", "int64": "int64", "uint64": "int64", "float64": "float64"}
_STORAGE = {"float16": "16bit", "int16": "16bit", "uint16": "16bit", "int8": "8bit",
            "uint8": "8bit", "bool": "8bit"}
_MOST_PUSHED = 16
"""Of 8 bytes each: every device takes 128."""


class Shader:
    """The text of one kernel, and what it needs of a device: `features` by Vulkan's names."""

    def __init__(self, text, features, argument_types):
        self.text = text
        self.features = features
        self.argument_types = argument_types


def shader_of(tvm, function):
    """The Shader of a lowered kernel.  Raises Unknown."""
    return _Glsl(tvm, function).shader()


class _Glsl(writer.Writer):
    CALLS, HELPERS, UNROLL = CALLS, HELPERS, "[[unroll]] "
    DOUBLE = "%s(%rlf)"
    CHOOSE_FLOAT = "isnan_(b) || !(a %s b) ? b : a"
    PLACE = "int(%s)"  # no device has buffers of more numbers than an int counts

    def _scalar_name(self, index):
        return "pushed.s%d" % index

    def _of_Add(self, node, lane):
        """A number so large that a sum with it has no fractions rounds it, and goes away again:
        compilers must not add it to the one that takes it away."""
        tir = self._tir
        numbers = [one.value if isinstance(one, tir.Broadcast) else one for one in (node.a, node.b)]
        sides = tuple(self._lane(one, lane) for one in (node.a, node.b))
        if not any(isinstance(one, tir.FloatImm) and one.dtype == "float32"
                   and abs(one.value) >= 1 << 22 for one in numbers):
            return "(%s + %s)" % sides
        self._own["exact_sum"] = (
            "float exact_sum(float a, float b) { precise float sum = a + b; return sum; }")
        return "exact_sum(%s, %s)" % sides

    def shader(self):
        arguments, globals_, pushed = self._arguments()
        if len(pushed) > _MOST_PUSHED:
            raise Unknown("%d scalar arguments, and %d fit into push constants" % (
                len(pushed), _MOST_PUSHED))
        self._survey(self._function.body)
        self._statement(self._function.body)
        text = ["#version 450", *self._extensions()]
        text += ["layout(local_size_x = %d, local_size_y = %d, local_size_z = %d) in;" % tuple(
            self._extents.get("threadIdx." + axis, 1) for axis in "xyz")]
        for binding, buffer in enumerate(globals_):
            text += _declarations(buffer, binding)
        if pushed:
            text.append("layout(push_constant) uniform Pushed { %s } pushed;" % " ".join(
                "layout(offset = %d) %s s%d;" % (8 * i, kind, i) for i, kind in enumerate(pushed)))
        code = [*self._helper_texts(), *self._own.values(),
                "void main() {", *self._lines, "}", ""]
        text += [*self._shared, *self._tests_of_bits(code), *code]
        features = sorted({f for kind in self._types for f in _FEATURES.get(kind, ())}
                          | ({"storageBuffer8BitAccess", "shaderInt8"}
                             if any(b.element == "bool" for b in globals_) else set()))
        return Shader("\n".join(text), features, arguments)

    def _helper_texts(self):
        """Of the helpers and those that they call, which stand before them."""
        texts = []
        for name in reversed(HELPERS):
            if name in self._helpers or any(
                    re.search(r"\b%s\(" % name, text) for text in texts):
                texts.insert(0, HELPERS[name].rstrip())
        return texts

    def _tests_of_bits(self, code):
        if not any(call in line for line in code for call in ("isnan_(", "isinf_(")):
            return []
        return [BITS, *([BITS_OF_DOUBLES] if "float64" in self._types else [])]

    def _extensions(self):
        words = ["GL_EXT_control_flow_attributes"]
        kinds = {_EXTENSIONS[kind] for kind in self._types if kind in _EXTENSIONS}
        if any(b.element == "bool" for b in self._buffers.values()):
            kinds.add("int8")
        words += ["GL_EXT_shader_explicit_arithmetic_types_" + kind for kind in sorted(kinds)]
        words += ["GL_EXT_shader_%s_storage" % kind for kind in sorted(
            {_STORAGE[b.element] for b in self._buffers.values() if b.element in _STORAGE})]
        return ["#extension %s : require" % word for word in words]


def _declarations(buffer, binding):
    """A block for numbers, and one for vectors of each length that is loaded: the same memory,
    which is only read then."""
    form = "layout(std430, set = 0, binding = %d) %sbuffer %s { %s %s[]; };"
    word = "" if buffer.stored else "readonly "
    return [form % (binding, word, "B" + name, kind, name)
            for name, kind in [(buffer.name, buffer.stored_type()), *buffer.vectors()]]
