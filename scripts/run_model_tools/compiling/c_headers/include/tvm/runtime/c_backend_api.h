/* What the C code that TVM's compiler writes needs of the header of this name: the functions that
 * the program which loads the library supplies. */
#ifndef TVM_RUNTIME_C_BACKEND_API_H_
#define TVM_RUNTIME_C_BACKEND_API_H_

#include "tvm/runtime/c_runtime_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int (*TVMBackendPackedCFunc)(TVMValue* args, int* type_codes, int num_args,
                                     TVMValue* result, int* result_type_code,
                                     void* resource_handle);

TVM_DLL void* TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t bytes,
                                       int type_code_hint, int type_bits_hint);
TVM_DLL int TVMBackendFreeWorkspace(int device_type, int device_id, void* data);
TVM_DLL int TVMBackendGetFuncFromEnv(void* module, const char* name, TVMFunctionHandle* function);

#ifdef __cplusplus
}
#endif

#endif
