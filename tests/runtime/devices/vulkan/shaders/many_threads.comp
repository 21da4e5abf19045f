#version 450
// Groups of 65536 threads, more than any device has.
layout(local_size_x = 1024, local_size_y = 64) in;
layout(set = 0, binding = 0) buffer X { float x[]; };
void main() { x[gl_LocalInvocationID.x] = 1; }
