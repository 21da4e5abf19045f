#version 450
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
// Scalars of 64 bits, and 32-bit ones between them.
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Y { int64_t y[]; };
layout(push_constant) uniform Scalars {
  layout(offset = 0) int64_t a;
  layout(offset = 8) int b;
  layout(offset = 16) double c;
  layout(offset = 24) uint d;
};
void main() {
  y[0] = a;
  y[1] = b;
  y[2] = int64_t(c);
  y[3] = d;
}
