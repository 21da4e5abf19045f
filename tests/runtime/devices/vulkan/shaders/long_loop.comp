#version 450
// Takes a while. llvmpipe silently ends a thread's loops after 65535 rounds in all, so that there are
// fewer, by as many threads as are wanted.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer X { uint x[]; };
layout(push_constant) uniform Scalars { layout(offset = 0) uint n; };
void main() {
  uint state = x[gl_GlobalInvocationID.x];
  for (uint i = 0; i < n; ++i) state = state * 1664525u + (state >> 7) + 1;
  x[gl_GlobalInvocationID.x] = state;
}
