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

// What C++ functions call that were linked to a model (nn.ExternModule) and compiled with tvm-ffi's
// headers. `error` stays the caller's; there are no backtraces; types are those that values of this
// runtime have.
RUN_MODEL_EXPORT void TVMFFIErrorSetRaised(void* error);
RUN_MODEL_EXPORT const run_model::FfiBytes* TVMFFIBacktrace(const char* file, int line,
                                                            const char* function, int across);
RUN_MODEL_EXPORT const run_model::FfiTypeInfo* TVMFFIGetTypeInfo(std::int32_t type);

// Libraries that LLVM compiled without optimization call it when they are loaded, whatever they
// are. Does nothing, since the functions are found by their names.
RUN_MODEL_EXPORT int TVMFFIEnvModRegisterSystemLibSymbol(const char* name, void* symbol);

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
