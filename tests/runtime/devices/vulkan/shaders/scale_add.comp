#version 450
// sum[i] = a[i] + factor * b[i]; scalars are push constants of eight bytes each.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer A { float a[]; };
layout(set = 0, binding = 1) readonly buffer B { float b[]; };
layout(set = 0, binding = 2) buffer Sum { float sum[]; };
layout(push_constant) uniform Scalars {
  layout(offset = 0) float factor;
  layout(offset = 8) int n;
};
void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i < n) sum[i] = a[i] + factor * b[i];
}
