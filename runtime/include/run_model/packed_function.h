// The calling convention of compiled functions: TVM's C ABI of releases 0.7 … 0.20.
// Facts read from TVM's c_runtime_api.h and c_backend_api.h (v0.18.0).
#pragma once

#include <dlpack/dlpack.h>

#include <cstdint>

namespace run_model {

// One argument or return value. Which member is valid is told by a TypeCode beside it.
union PackedValue {
  std::int64_t v_int64;
  double v_float64;
  void* v_handle;
  const char* v_str;
  DLDataType v_type;
  DLDevice v_device;
};

enum TypeCode : int {
  kTypeInt = 0,
  kTypeUInt = 1,
  kTypeFloat = 2,
  kTypeOpaqueHandle = 3,
  kTypeNull = 4,
  kTypeDataType = 5,
  kTypeDevice = 6,
  kTypeTensorHandle = 7,  // v_handle is a DLTensor*
  kTypeObjectHandle = 8,
  kTypeModuleHandle = 9,
  kTypePackedFunctionHandle = 10,
  kTypeString = 11,
  kTypeBytes = 12,
  kTypeNDArrayHandle = 13,
  kTypeBool = 15,  // in v_int64; since TVM 0.18
};

// Returns 0 on success; otherwise the reason is what last_packed_error() gives on this thread.
// `resource` is unused by CPU code. Functions of TVM 0.6 take only the first three arguments, which
// the C calling conventions of every supported CPU allow.
using PackedFunction = int (*)(PackedValue* args, int* type_codes, int num_args,
                               PackedValue* result, int* result_type_code, void* resource);

}  // namespace run_model
