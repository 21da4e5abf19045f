#version 450
// y[i] = sum of c_k x[i]^k; its 20 scalars take more than the 128 bytes that push constants have
// everywhere, so that they are in a uniform buffer behind the other buffers.
layout(local_size_x = 16, local_size_y = 2) in;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { float y[]; };
layout(set = 0, binding = 2, std140) uniform Scalars {
  layout(offset = 0) int n;
  layout(offset = 8) float c0;
  layout(offset = 16) float c1;
  layout(offset = 24) float c2;
  layout(offset = 144) float c17;
  layout(offset = 152) float c18;
};
void main() {
  const uint i = 32 * gl_WorkGroupID.x + 16 * gl_LocalInvocationID.y + gl_LocalInvocationID.x;
  if (i >= n) return;
  const float t = x[i];
  y[i] = c0 + t * (c1 + t * (c2 + t * (c17 + t * c18)));
}
