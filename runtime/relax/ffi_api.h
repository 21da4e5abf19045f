// The C functions that models compiled by TVM 0.21 and later call, beside those of backend_api.h.
// Names, signatures and meaning read from tvm-ffi's c_api.h and TVM's c_backend_api.h, 0.21 to
// 0.27.
//
// As there, a library has a pointer variable for each or refers to it by name, and on failure they
// return -1 and last_packed_error() has the reason.
#pragma once

#include <cstdint>

#include "runtime/backend_api.h"
#include "runtime/relax/ffi_abi.h"

extern "C" {

RUN_MODEL_EXPORT void TVMFFIErrorSetRaisedFromCStr(const char* kind, const char* message);
RUN_MODEL_EXPORT void TVMFFIErrorSetRaisedFromCStrParts(const char* kind, const char** parts,
                                                        std::int32_t num_parts);

RUN_MODEL_EXPORT int TVMFFIFunctionCall(void* function, run_model::FfiAny* args,
                                        std::int32_t num_args, run_model::FfiAny* result);

// A function object, which stays with the library, for the function `name`: of the library whose
// context `module` is, or of this runtime.
RUN_MODEL_EXPORT int TVMFFIEnvModLookupFromImports(void* module, const char* name, void** function);

// Has `init` give *handle a value, unless it has one.
RUN_MODEL_EXPORT int TVMFFIHandleInitOnce(void** handle, int (*init)(void** result));

// What functions that are compiled as a whole do with the machine's registers: hand one on as an
// argument, empty one, and fill one with a call's result.
RUN_MODEL_EXPORT int TVMBackendAnyListSetPackedArg(void* list, int index, run_model::FfiAny* args,
                                                   int arg_index);
RUN_MODEL_EXPORT int TVMBackendAnyListResetItem(void* list, int index);
RUN_MODEL_EXPORT int TVMBackendAnyListMoveFromPackedReturn(void* list, int index,
                                                           run_model::FfiAny* args, int ret_index);

}  // extern "C"
