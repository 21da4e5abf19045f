/* Functions under the calling convention of TVM 0.22 and later, as a compiled library has them: for
 * values of every kind, and for what goes wrong. */
#include <dlpack/dlpack.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct {
  int32_t type;
  int32_t padding;
  union {
    int64_t integer;
    double real;
    void* pointer;
    DLDataType dtype;
    DLDevice device;
  };
} Any;

typedef struct {
  const char* data;
  size_t size;
} ByteArray;

#define EXPORT __attribute__((visibility("default")))

EXPORT void (*__TVMFFIErrorSetRaisedFromCStr)(const char* kind, const char* message);

/* Writes what it was given into the last argument, a tensor of bytes. */
EXPORT int __tvm_ffi_describe(void* self, const Any* args, int32_t count, Any* result) {
  (void)self;
  (void)result;
  const DLTensor* out = args[count - 1].pointer;
  char* text = out->data;
  char* const end = text + out->shape[0];
  for (int32_t i = 0; i + 1 < count; ++i) {
    const Any* arg = &args[i];
    const DLTensor* tensor = arg->pointer;
    const ByteArray* bytes = arg->pointer;
    const size_t room = (size_t)(end - text);
    int written = 0;
    switch (arg->type) {
      case 0:
        written = snprintf(text, room, "none;");
        break;
      case 1:
      case 2:
        written = snprintf(text, room, "%s %lld;", arg->type == 1 ? "int" : "bool",
                           (long long)arg->integer);
        break;
      case 3:
        written = snprintf(text, room, "float %.17g;", arg->real);
        break;
      case 5:
        written = snprintf(text, room, "dtype %d %d %d;", arg->dtype.code, arg->dtype.bits,
                           arg->dtype.lanes);
        break;
      case 6:
        written =
            snprintf(text, room, "device %d %d;", arg->device.device_type, arg->device.device_id);
        break;
      case 7:
        written = snprintf(text, room, "tensor %d %d %d %lld %lld;", tensor->dtype.code,
                           tensor->dtype.bits, tensor->ndim, (long long)tensor->shape[0],
                           (long long)tensor->strides[0]);
        break;
      case 8:
        written = snprintf(text, room, "text %s;", (const char*)arg->pointer);
        break;
      case 9:
        written = snprintf(text, room, "bytes %d;", (int)bytes->size);
        break;
      default:
        return -1;
    }
    text += written;
  }
  return 0;
}

EXPORT int __tvm_ffi_give_float(void* self, const Any* args, int32_t count, Any* result) {
  (void)self;
  (void)args;
  result->type = 3;
  result->real = -0.1 * count;
  return 0;
}

EXPORT int __tvm_ffi_fail(void* self, const Any* args, int32_t count, Any* result) {
  (void)self;
  (void)args;
  (void)count;
  (void)result;
  __TVMFFIErrorSetRaisedFromCStr("ValueError", "the stove is cold");
  return -1;
}

EXPORT int __tvm_ffi_crash(void* self, const Any* args, int32_t count, Any* result) {
  (void)self;
  (void)args;
  (void)count;
  (void)result;
  *(volatile int*)(uintptr_t)count = 1;
  return 0;
}

EXPORT int __tvm_ffi_loop(void* self, const Any* args, int32_t count, Any* result) {
  (void)self;
  (void)args;
  (void)result;
  for (volatile int32_t i = count; i >= count;) {
  }
  return 0;
}
