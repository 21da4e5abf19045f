#version 450
// Shares 1 MiB, more than any device has.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer X { float x[]; };
shared float all_of_it[256][1024];
void main() {
  all_of_it[gl_LocalInvocationID.x][0] = x[gl_LocalInvocationID.x];
  barrier();
  x[gl_LocalInvocationID.x] = all_of_it[63 - gl_LocalInvocationID.x][0];
}
