/* A small compiled model that checks its arguments as the code of TVM's compiler does, so that a
 * damaged graph that still is a graph gets an error from it and not a wild access. */
#include <dlpack/dlpack.h>
#include <stdint.h>

typedef union {
  int64_t v_int64;
  double v_float64;
  void* v_handle;
} Value;

enum { kTensorHandle = 7, kElements = 4 };

/* The runtime writes the address of its callback here. */
__attribute__((visibility("default"))) void (*__TVMAPISetLastError)(const char*) = 0;

static int fail(const char* reason) {
  if (__TVMAPISetLastError) __TVMAPISetLastError(reason);
  return -1;
}

static float* floats(Value* args, int* codes, int i) {
  if (codes[i] != kTensorHandle) return 0;
  const DLTensor* tensor = args[i].v_handle;
  int ok = tensor->ndim == 1 && tensor->shape[0] == kElements && tensor->dtype.code == kDLFloat &&
           tensor->dtype.bits == 32 && tensor->dtype.lanes == 1 &&
           tensor->device.device_type == kDLCPU && tensor->byte_offset == 0 &&
           (tensor->strides == 0 || tensor->strides[0] == 1);
  return ok ? tensor->data : 0;
}

#define FUNCTION __attribute__((visibility("default"))) int32_t

FUNCTION tvmgen_default_fused_multiply(Value* args, int* codes, int n, Value* result,
                                       int* result_code, void* resource) {
  (void)result, (void)result_code, (void)resource;
  if (n != 3) return fail("Assert fail: num_args == 3");
  const float *a = floats(args, codes, 0), *b = floats(args, codes, 1);
  float* out = floats(args, codes, 2);
  if (!a || !b || !out) return fail("Assert fail: an argument is not float32 [4]");
  for (int i = 0; i < kElements; ++i) out[i] = a[i] * b[i];
  return 0;
}

FUNCTION tvmgen_default_fused_add(Value* args, int* codes, int n, Value* result, int* result_code,
                                  void* resource) {
  (void)result, (void)result_code, (void)resource;
  if (n != 3) return fail("Assert fail: num_args == 3");
  const float *a = floats(args, codes, 0), *b = floats(args, codes, 1);
  float* out = floats(args, codes, 2);
  if (!a || !b || !out) return fail("Assert fail: an argument is not float32 [4]");
  for (int i = 0; i < kElements; ++i) out[i] = a[i] + b[i];
  return 0;
}
