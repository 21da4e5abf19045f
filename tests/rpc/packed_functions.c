/* Functions with TVM's calling convention (<run_model/packed_function.h>) for tests of remote
 * calls. */
#include <dlpack/dlpack.h>
#include <stddef.h>
#include <string.h>

#include "tests/runtime/libraries/packed.h"

enum { kInt = 0, kFloat = 2, kModule = 9, kString = 11, kBool = 15 };

typedef struct {
  const char* data;
  size_t size;
} ByteArray;

__attribute__((weak)) void* __tvm_module_ctx = 0;
__attribute__((weak)) SetError __TVMAPISetLastError = 0;

#define UNUSED (void)args, (void)codes, (void)count, (void)result, (void)result_code, (void)resource

/* The type codes of its arguments as one number, most significant first, in base 16. */
PACKED(codes_of) {
  UNUSED;
  result->v_int64 = 0;
  for (int i = 0; i < count; ++i) result->v_int64 = result->v_int64 * 16 + codes[i];
  *result_code = kInt;
  return 0;
}

/* x + y of an int and a float. */
PACKED(add_numbers) {
  UNUSED;
  result->v_float64 = (double)args[0].v_int64 + args[1].v_float64;
  *result_code = kFloat;
  return 0;
}

/* The length of a text plus that of bytes. */
PACKED(lengths) {
  UNUSED;
  result->v_int64 = (int64_t)strlen((const char*)args[0].v_handle) +
                    (int64_t)((ByteArray*)args[1].v_handle)->size;
  *result_code = kInt;
  return 0;
}

/* b = a + 1 of float tensors, each from its byte offset on; returns the offsets' sum. */
PACKED(add_one) {
  UNUSED;
  const DLTensor* a = (const DLTensor*)args[0].v_handle;
  const DLTensor* b = (const DLTensor*)args[1].v_handle;
  const float* from = (const float*)((const char*)a->data + a->byte_offset);
  float* to = (float*)((char*)b->data + b->byte_offset);
  for (int64_t i = 0; i < a->shape[0]; ++i) to[i] = from[i] + 1;
  result->v_int64 = (int64_t)(a->byte_offset + b->byte_offset);
  *result_code = kInt;
  return 0;
}

/* Whether an int is above zero, as TVM 0.18 and later compile it. */
PACKED(is_positive) {
  UNUSED;
  result->v_int64 = args[0].v_int64 > 0;
  *result_code = kBool;
  return 0;
}

PACKED(text) {
  UNUSED;
  result->v_handle = (void*)"from the library";
  *result_code = kString;
  return 0;
}

PACKED(fails) {
  UNUSED;
  __TVMAPISetLastError("the reason");
  return -1;
}

/* A result that only TVM's own runtime can make. */
PACKED(returns_module) {
  UNUSED;
  result->v_handle = result;
  *result_code = kModule;
  return 0;
}
