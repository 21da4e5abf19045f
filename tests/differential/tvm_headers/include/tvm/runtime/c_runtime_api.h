/* What the C code that TVM's "c" target emits expects of TVM's headers of these two names: our own
 * declarations of that part of the C ABI, because the packaged compiler has no headers. */
#pragma once

#include <dlpack/dlpack.h>
#include <stddef.h>
#include <stdint.h>

#define TVM_DLL __attribute__((visibility("default")))

typedef union {
  int64_t v_int64;
  double v_float64;
  void* v_handle;
  const char* v_str;
  DLDataType v_type;
  DLDevice v_device;
} TVMValue;

#ifdef __cplusplus
extern "C"
#endif
    void
    TVMAPISetLastError(const char* message);
