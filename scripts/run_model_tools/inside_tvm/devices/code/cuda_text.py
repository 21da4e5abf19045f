"""Kernels of TIR -> CUDA C++, as NVRTC compiles it without any header."""

from run_model_tools.inside_tvm.devices.code import writer

_SAME = ("exp", "exp2", "exp10", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "sin", "cos",
         "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
         "floor", "ceil", "trunc", "nearbyint", "fabs", "pow", "round", "erf", "fmod")
_CALLS = dict({name: name + "f" for name in _SAME}, isnan="isnan_", isinf="isinf_",
              isfinite="isfinite_", popcount="__popc", sigmoid="sigmoid_")
_HELPERS = {
    "isnan_": "bool isnan_(float x) { return x != x; }",
    "isinf_": "bool isinf_(float x) { return fabsf(x) == __uint_as_float(0x7f800000u); }",
    "isfinite_": "bool isfinite_(float x) { return fabsf(x) < __uint_as_float(0x7f800000u); }",
    "sigmoid_": "float sigmoid_(float x) { return 1.0f / (1.0f + expf(-x)); }",
}

PRELUDE = """\
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef unsigned int uint;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#define gl_WorkGroupID blockIdx
#define gl_LocalInvocationID threadIdx
#define barrier() __syncthreads()
#define memoryBarrierBuffer() __threadfence_block()
#define intBitsToFloat __int_as_float
#define uintBitsToFloat __uint_as_float
#define floatBitsToInt __float_as_int
#define floatBitsToUint __float_as_uint
#define VECTOR2(name, type) struct __align__(8) name { type x, y; \\
  name(type a, type b) : x(a), y(b) {} };
#define VECTOR4(name, type) struct __align__(16) name { type x, y, z, w; \\
  name(type a, type b, type c, type d) : x(a), y(b), z(c), w(d) {} };
VECTOR2(vec2, float) VECTOR2(ivec2, int) VECTOR2(uvec2, uint)
VECTOR4(vec4, float) VECTOR4(ivec4, int) VECTOR4(uvec4, uint)
struct float16_t {
  uint16_t bits;
  float16_t() = default;
  explicit float16_t(float x) { asm("{cvt.rn.f16.f32 %0, %1;}" : "=h"(bits) : "f"(x)); }
  operator float() const { float x; asm("{cvt.f32.f16 %0, %1;}" : "=f"(x) : "h"(bits)); return x; }
};
"""
"""What GLSL has under these names; numbers of 16 bits are computed with as float32."""


class Kernel:
    """The text of one kernel, without PRELUDE, and the types of its arguments."""

    def __init__(self, text, argument_types):
        self.text = text
        self.argument_types = argument_types


def kernel_of(tvm, function, name):
    """The Kernel of a lowered function.  Raises writer.Unknown."""
    return _Cuda(tvm, function).kernel(name)


class _Cuda(writer.Writer):
    CALLS, HELPERS, UNROLL = _CALLS, _HELPERS, '_Pragma("unroll") '

    def kernel(self, name):
        arguments, buffers, scalars = self._arguments()
        self._survey(self._function.body)
        self._statement(self._function.body)
        threads = 1
        for axis in "xyz":
            threads *= self._extents.get("threadIdx." + axis, 1)
        parameters = ["%s%s* __restrict__ %s" % (
            "" if buffer.stored else "const ", buffer.stored_type(), buffer.name)
            for buffer in buffers]
        parameters += ["%s %s" % (kind, self._scalar_name(i)) for i, kind in enumerate(scalars)]
        # The helpers are the kernel's own: all kernels are compiled as one program.
        text = ["namespace in_%s {" % name, *(_HELPERS[one] for one in self._helpers),
                *self._own.values()]
        text.append('extern "C" __global__ void __launch_bounds__(%d) %s(%s) {' % (
            threads, name, ", ".join(parameters)))
        for buffer in buffers:
            text += ["  const %s* __restrict__ %s = (const %s*)%s;" % (
                kind, alias, kind, buffer.name) for alias, kind in buffer.vectors()]
        text += ["  " + line.replace("shared ", "__shared__ ", 1) for line in self._shared]
        return Kernel("\n".join([*text, *self._lines, "}", "}", ""]), arguments)
