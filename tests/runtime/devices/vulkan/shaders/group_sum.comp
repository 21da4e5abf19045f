#version 450
// totals[group] = sum of the group's 128 numbers, by way of shared memory.
layout(local_size_x = 128) in;
layout(set = 0, binding = 0) readonly buffer X { int x[]; };
layout(set = 0, binding = 1) buffer Totals { int totals[]; };
shared int partial[128];
void main() {
  const uint t = gl_LocalInvocationID.x;
  partial[t] = x[gl_GlobalInvocationID.x];
  for (uint half_size = 64; half_size > 0; half_size /= 2) {
    barrier();
    if (t < half_size) partial[t] += partial[t + half_size];
  }
  if (t == 0) totals[gl_WorkGroupID.x] = partial[0];
}
