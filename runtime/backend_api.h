// The C functions that compiled models call: TVM's backend interface of releases 0.6 … 0.20,
// and what those since 0.21 still call (the rest of theirs is in relax/ffi_api.h).
// Names, signatures and meaning read from TVM's c_backend_api.h and c_runtime_api.h (v0.18.0).
//
// A model gets at them in two ways: most have a pointer variable for each, which Module fills in
// when it loads them; libraries made by TVM's C code generator or with a dynamic lookup refer to
// them by name, and the dynamic loader binds that to the running program, which has to export them
// (see exported_symbols). None of them lets an exception out: on failure they return -1 or null,
// and last_packed_error() has the reason.
#pragma once

#include <cstdint>
#include <span>

#include <run_model/packed_function.h>

#define RUN_MODEL_EXPORT __attribute__((visibility("default")))

extern "C" {

// What a task of a parallel loop is told about its group.
struct TVMParallelGroupEnv {
  void* sync_handle;
  std::int32_t num_task;
};
typedef int (*FTVMParallelLambda)(int task_id, TVMParallelGroupEnv* env, void* data);

// Runs num_task tasks on the calling thread's pool (call_context.h); 0 means as many as suit the
// machine at the time (ThreadPool::loop_tasks), for a loop with barriers as many as the pool has
// threads. Fails with the first failure of a task.
RUN_MODEL_EXPORT int TVMBackendParallelLaunch(FTVMParallelLambda task, void* data, int num_task);
RUN_MODEL_EXPORT int TVMBackendParallelBarrier(int task_id, TVMParallelGroupEnv* env);

// Scratch memory of the calling thread, aligned to kTensorAlignment, or of a device.
RUN_MODEL_EXPORT void* TVMBackendAllocWorkspace(int device_type, int device_id, std::uint64_t bytes,
                                                int type_code_hint, int type_bits_hint);
RUN_MODEL_EXPORT int TVMBackendFreeWorkspace(int device_type, int device_id, void* data);

// The function `name` of the library whose __tvm_module_ctx is `module`, its kernel of that name
// for a GPU, or one of relax/functions/runtime_functions.h (sorting). TVM's own runtime has a
// registry of more (BLAS …), which this one has not.
RUN_MODEL_EXPORT int TVMBackendGetFuncFromEnv(void* module, const char* name, void** function);

// Calls what TVMBackendGetFuncFromEnv gave.
RUN_MODEL_EXPORT int TVMFuncCall(void* function, run_model::PackedValue* args, int* type_codes,
                                 int num_args, run_model::PackedValue* result,
                                 int* result_type_code);

RUN_MODEL_EXPORT void TVMAPISetLastError(const char* message);
RUN_MODEL_EXPORT const char* TVMGetLastError(void);

// Calls function(data) unless *handle says that it was done before.
RUN_MODEL_EXPORT int TVMBackendRunOnce(void** handle, int (*function)(void*), void* data,
                                       int bytes);

// Accepted without effect: a library's functions are found by their names, and there is no
// scripting language around whose functions it could use.
RUN_MODEL_EXPORT int TVMBackendRegisterSystemLibSymbol(const char* name, void* address);
RUN_MODEL_EXPORT int TVMBackendRegisterEnvCAPI(const char* name, void* address);

}  // extern "C"

namespace run_model {

// A function that a program exports to the libraries that it loads.
struct ExportedSymbol {
  const char* name;
  void* address;
};

// All of the above, of float16.h and of relax/ffi_api.h. runtime/CMakeLists.txt has the same names,
// for the linker options that put them into a program's dynamic symbol table.
std::span<const ExportedSymbol> exported_symbols();

// To be called before a library goes, in whose place another one may come to lie: what was learnt
// of its loops is learnt anew.
void forget_loops();

}  // namespace run_model
