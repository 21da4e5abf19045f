// A stand-in for a compiled model: functions as TVM's code generator makes them, float32 of 4
// elements.
#include <dlpack/dlpack.h>
#include <stdint.h>

typedef union {
  int64_t v_int64;
  double v_float64;
  void* v_handle;
} Value;

// The runtime writes the addresses of its callbacks here.
void (*__TVMAPISetLastError)(const char*) = 0;

static float* data_of(Value* args, int i) { return ((DLTensor*)args[i].v_handle)->data; }

int fused_add(Value* args, int* codes, int n, Value* ret, int* ret_code, void* resource) {
  (void)codes, (void)ret, (void)ret_code, (void)resource;
  if (n != 3) return -1;
  for (int i = 0; i < 4; ++i) data_of(args, 2)[i] = data_of(args, 0)[i] + data_of(args, 1)[i];
  return 0;
}

// Two outputs: the input doubled, and its negative.
int fused_both(Value* args, int* codes, int n, Value* ret, int* ret_code, void* resource) {
  (void)codes, (void)ret, (void)ret_code, (void)resource;
  if (n != 3) return -1;
  for (int i = 0; i < 4; ++i) {
    float x = data_of(args, 0)[i];
    data_of(args, 1)[i] = 2 * x;
    data_of(args, 2)[i] = -x;
  }
  return 0;
}

// Writes the number of dimensions that it sees.
int fused_ndim(Value* args, int* codes, int n, Value* ret, int* ret_code, void* resource) {
  (void)codes, (void)n, (void)ret, (void)ret_code, (void)resource;
  DLTensor* in = args[0].v_handle;
  for (int i = 0; i < 4; ++i) data_of(args, 1)[i] = (float)in->ndim;
  return 0;
}

static int64_t size_of(Value* args, int i) {
  int64_t size = 1;
  DLTensor* tensor = args[i].v_handle;
  for (int d = 0; d < tensor->ndim; ++d) size *= tensor->shape[d];
  return size;
}

// As TVM's, for tensors that lie behind each other in the result.
int fused_concatenate(Value* args, int* codes, int n, Value* ret, int* ret_code, void* resource) {
  (void)codes, (void)ret, (void)ret_code, (void)resource;
  float* out = data_of(args, n - 1);
  for (int i = 0; i < n - 1; ++i) {
    const float* in = data_of(args, i);
    for (int64_t k = 0; k < size_of(args, i); ++k) *out++ = in[k];
  }
  return 0;
}

// Not what its name says: the second input comes first.
int fused_concatenate_1(Value* args, int* codes, int n, Value* ret, int* ret_code, void* resource) {
  Value swapped[3] = {args[1], args[0], args[2]};
  return fused_concatenate(swapped, codes, n, ret, ret_code, resource);
}

int fused_fail(Value* args, int* codes, int n, Value* ret, int* ret_code, void* resource) {
  (void)args, (void)codes, (void)n, (void)ret, (void)ret_code, (void)resource;
  __TVMAPISetLastError("Assert fail: this function always fails");
  return -1;
}
