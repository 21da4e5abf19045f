"""Functions that GLSL lacks, or has with less of a promise than networks need.

GLSL's max and min may do anything with a NaN, % takes the divisor's sign, pow() wants a base above
0, round() may go either way at a half, tanh() overflows on some drivers, and Vulkan promises 2^-11
of sin() and cos() within half a turn, and nothing beyond; of inverse functions it promises 12 bits.
Unless a shader asks for more, which not every driver grants and some pay for with fused
multiplications, compilers may also take for granted that no number is a NaN or infinite: isnan(),
isinf() and comparisons tell nothing then, so these two are told by their bits.
"""

CALLS = {
    "exp": "exp", "exp2": "exp2", "log": "log", "log2": "log2", "sqrt": "sqrt",
    "rsqrt": "inversesqrt", "sin": "sin_", "cos": "cos_", "tan": "tan_", "asin": "asin_",
    "acos": "acos_", "atan": "atan_", "atan2": "atan", "sinh": "sinh", "cosh": "cosh",
    "asinh": "asinh", "acosh": "acosh", "atanh": "atanh", "floor": "floor", "ceil": "ceil",
    "trunc": "trunc", "nearbyint": "roundEven", "fabs": "abs", "isnan": "isnan_", "isinf": "isinf_",
    "popcount": "bitCount", "tanh": "tanh_", "pow": "pow_", "round": "round_", "erf": "erf_",
    "fmod": "fmod_", "exp10": "exp10_", "log10": "log10_", "log1p": "log1p_",
    "isfinite": "isfinite_", "sigmoid": "sigmoid_",
}
"""Operators of TIR with one type of float32 numbers, and what computes them."""

BITS = """\
bool isnan_(float x) { return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u; }
bool isinf_(float x) { return (floatBitsToUint(x) & 0x7fffffffu) == 0x7f800000u; }
"""
"""What others and kernels call: it stands before them."""

BITS_OF_DOUBLES = """\
bool isnan_(double x) {
  uvec2 half_ = unpackDouble2x32(x);
  uint high = half_.y & 0x7fffffffu;
  return high > 0x7ff00000u || (high == 0x7ff00000u && half_.x != 0u);
}
"""

HELPERS = {
    # Where exp() of it would overflow or what is added to 1 is lost, the result is 1.
    "tanh_": """\
float tanh_(float x) {
  float a = abs(x);
  if (a < 0.1) { float s = x * x; return x * (1.0 + s * (-0.33333334 + s * (0.13333334 + s *
      (-0.053968254 + s * 0.021869488)))); }
  float e = exp(-2.0 * min(a, 20.0));
  float t = (1.0 - e) / (1.0 + e);
  return isnan_(x) ? x : x < 0.0 ? -t : t;
}
""",
    "pow_": """\
float pow_(float x, float y) {
  if (y == 0.0 || x == 1.0) return 1.0;
  if (x > 0.0) return y == 1.0 ? x : y == 2.0 ? x * x : pow(x, y);
  float whole = floor(y);
  bool odd = whole == y && abs(y) < 16777216.0 && (int(y) & 1) != 0;
  if (x == 0.0) return y > 0.0 ? (odd ? x : 0.0) : (odd ? 1.0 / x : uintBitsToFloat(0x7f800000u));
  if (isnan_(x) || isnan_(y)) return x + y;
  float size = y == 1.0 ? -x : y == 2.0 ? x * x : pow(-x, y);
  return whole != y ? uintBitsToFloat(0x7fc00000u) : odd ? -size : size;
}
""",
    "round_": """\
float round_(float x) {
  float t = trunc(x);
  return abs(x - t) >= 0.5 ? t + sign(x) : t;
}
""",
    # Numerical Recipes' erfc (relative error 1.2e-7), and its series near 0.
    "erf_": """\
float erf_(float x) {
  float a = abs(x);
  if (a < 0.5) { float s = x * x; return 1.1283792 * x * (1.0 + s * (-0.33333334 + s * (0.1 + s *
      (-0.023809524 + s * (0.0046296297 + s * (-0.00075757574 + s * 0.00010683761)))))); }
  float t = 1.0 / (1.0 + 0.5 * a);
  float c = t * exp(-a * a - 1.26551223 + t * (1.00002368 + t * (0.37409196 + t * (0.09678418 +
      t * (-0.18628806 + t * (0.27886807 + t * (-1.13520398 + t * (1.48851587 + t *
      (-0.82215223 + t * 0.17087277)))))))));
  return isnan_(x) ? x : x < 0.0 ? c - 1.0 : 1.0 - c;
}
""",
    # Multiples of pi are taken away in three parts (Cephes' of pi / 4), of which the products with
    # so few turns are exact or nearly; SLEEF's polynomial of sin() between -pi / 2 and pi / 2.
    "sin_": """\
float sin_(float x) {
  if (abs(x) > 30000.0) return sin(x);
  float k = roundEven(x * 0.31830989);
  float r = x - k * 3.140625 - k * 0.00096750259 - k * 1.5099580e-7;
  float s = r * r;
  float y = r + r * s * (-0.16666660 + s * (0.0083330786 + s * (-0.00019810691 + s *
      2.6083160e-6)));
  return (int(k) & 1) != 0 ? -y : y;
}
""",
    "cos_": """\
float cos_(float x) {
  if (abs(x) > 30000.0) return cos(x);
  float k = 2.0 * roundEven(x * 0.31830989 - 0.5) + 1.0;
  float r = x - k * 1.5703125 - k * 0.00048375130 - k * 7.5497900e-8;
  float s = r * r;
  float y = r + r * s * (-0.16666660 + s * (0.0083330786 + s * (-0.00019810691 + s *
      2.6083160e-6)));
  return (int(k) & 2) != 0 ? y : -y;
}
""",
    "tan_": "float tan_(float x) { return sin_(x) / cos_(x); }\n",
    # As in kernels/c/vector_math.h: of x = tan(a), by a or what is a quarter or half a turn less.
    "atan_": """\
float atan_(float x) {
  float a = abs(x);
  bool large = a > 2.4142136, small = a <= 0.41421357;
  float z = (large ? -1.0 : small ? a : a - 1.0) / (large ? a : small ? 1.0 : a + 1.0);
  float s = z * z;
  float y = z + z * s * (-0.33333316 + s * (0.19998471 + s * (-0.14243533 + s * (0.10593813 + s *
      -0.060782198))));
  y = isinf_(x) ? 1.5707964 : y + (large ? 1.5707964 : small ? 0.0 : 0.78539819);
  return isnan_(x) ? x : x < 0.0 ? -y : y;
}
""",
    "asin_": """\
float asin_(float x) {
  if (isnan_(x) || abs(x) > 1.0) return uintBitsToFloat(0x7fc00000u);
  return 2.0 * atan_(x / (1.0 + sqrt((1.0 - x) * (1.0 + x))));
}
""",
    "acos_": """\
float acos_(float x) {
  return x > 0.5 && x <= 1.0 ? 2.0 * asin_(sqrt(0.5 - 0.5 * x)) : 1.5707964 - asin_(x);
}
""",
    # Of multiples of y by powers of two those that fit are taken away: each difference is exact.
    "fmod_": """\
float fmod_(float x, float y) {
  float a = abs(x), b = abs(y);
  if (isnan_(x) || isnan_(y) || isinf_(x) || b == 0.0) return uintBitsToFloat(0x7fc00000u);
  float m = b;
  int doubled = 0;
  for (; m <= 0.5 * a; m *= 2.0) ++doubled;
  for (; doubled >= 0; --doubled, m *= 0.5) {
    if (a >= m) a -= m;
  }
  return x < 0.0 ? -a : a;
}
""",
    "exp10_": "float exp10_(float x) { return exp2(3.3219281 * x); }\n",
    "log10_": "float log10_(float x) { return 0.30103 * log2(x); }\n",
    # The error of 1 + x is divided out.
    "log1p_": """\
float log1p_(float x) {
  precise float u = 1.0 + x;
  precise float d = u - 1.0;
  return d == 0.0 ? x : isinf_(u) ? u : log(u) * (x / d);
}
""",
    "isfinite_": "bool isfinite_(float x) { return !(isnan_(x) || isinf_(x)); }\n",
    "sigmoid_": "float sigmoid_(float x) { return 1.0 / (1.0 + exp(-x)); }\n",
}
