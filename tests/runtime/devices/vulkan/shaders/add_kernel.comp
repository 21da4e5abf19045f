#version 450
// out[i] = a[i] + b[i], two threads a group, as device_model.c launches it.
layout(local_size_x = 2) in;
layout(set = 0, binding = 0) writeonly buffer Out { float result[]; };
layout(set = 0, binding = 1) readonly buffer A { float a[]; };
layout(set = 0, binding = 2) readonly buffer B { float b[]; };
void main() {
  const uint i = gl_GlobalInvocationID.x;
  result[i] = a[i] + b[i];
}
