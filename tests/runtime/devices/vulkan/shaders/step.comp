#version 450
// x[i] = 3 x[i] + 1, as integers: the order of launches shows in the result.
layout(local_size_x = 32) in;
layout(set = 0, binding = 0) buffer X { int x[]; };
void main() { x[gl_GlobalInvocationID.x] = 3 * x[gl_GlobalInvocationID.x] + 1; }
