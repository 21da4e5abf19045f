/* What the C code that TVM's compiler writes (target "c", releases up to 0.19) needs of the header
 * of this name: the types of a packed function's arguments.  Sizes and order are those of TVM's C
 * ABI and of DLPack's DLTensor; the program that loads the library agrees on them. */
#ifndef TVM_RUNTIME_C_RUNTIME_API_H_
#define TVM_RUNTIME_C_RUNTIME_API_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TVM_DLL __attribute__((visibility("default")))

typedef struct {
  int32_t device_type; /* 1: CPU */
  int32_t device_id;
} DLDevice;

typedef struct {
  uint8_t code; /* 0: signed, 1: unsigned, 2: floating point */
  uint8_t bits;
  uint16_t lanes;
} DLDataType;

typedef struct {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides; /* null: rows last and without gaps */
  uint64_t byte_offset;
} DLTensor;

typedef union {
  int64_t v_int64;
  double v_float64;
  void* v_handle;
  const char* v_str;
  DLDataType v_type;
  DLDevice v_device;
} TVMValue;

typedef void* TVMFunctionHandle;

enum {
  kTVMArgInt = 0,
  kTVMArgFloat = 2,
  kTVMOpaqueHandle = 3,
  kTVMNullptr = 4,
  kTVMDLTensorHandle = 7,
  kTVMNDArrayHandle = 13
};

TVM_DLL void TVMAPISetLastError(const char* message);
TVM_DLL int TVMFuncCall(TVMFunctionHandle function, TVMValue* args, int* type_codes, int num_args,
                        TVMValue* result, int* result_type_code);

#ifdef __cplusplus
}
#endif

#endif
