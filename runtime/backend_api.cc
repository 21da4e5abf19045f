#include "runtime/backend_api.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <string>
#include <unordered_set>

#include <run_model/module.h>
#include "base/text.h"
#include "runtime/devices/device_functions.h"
#include "runtime/float16.h"
#include "runtime/loading/model_library.h"
#include "runtime/relax/ffi_api.h"
#include "runtime/relax/functions/runtime_functions.h"
#include "runtime/threads/call_context.h"

namespace run_model {
namespace {

constexpr int kFailure = -1;

int fail(std::string message) noexcept {
  set_last_packed_error(std::move(message));
  return kFailure;
}

// The loops whose tasks have waited for each other. All tasks of such a loop run at the same time,
// so that there should be no more of them than threads.
class BarrierLoops {
 public:
  bool contains(FTVMParallelLambda task) {
    if (!any_.load(std::memory_order_relaxed)) return false;
    const std::lock_guard lock(mutex_);
    return tasks_.contains(task);
  }

  void add(FTVMParallelLambda task) {
    const std::lock_guard lock(mutex_);
    tasks_.insert(task);
    any_.store(true, std::memory_order_relaxed);
  }

  void clear() {
    const std::lock_guard lock(mutex_);
    tasks_.clear();
    any_.store(false, std::memory_order_relaxed);
  }

 private:
  std::atomic<bool> any_{false};
  std::mutex mutex_;
  std::unordered_set<FTVMParallelLambda> tasks_;
};

// Never destroyed: threads may compute until the program's end.
BarrierLoops& barrier_loops() {
  static auto* loops = new BarrierLoops;
  return *loops;
}

// One parallel loop, as ThreadPool's tasks see it.
struct ParallelLoop {
  FTVMParallelLambda task;
  void* data;
  std::mutex mutex;
  bool failed = false;
  std::string reason;  // of the first task that failed
  std::atomic<bool> has_barrier{false};
};

// What a task of ours hands on to the compiled one, which gets a pointer to the first member.
struct GroupEnv {
  TVMParallelGroupEnv env;
  ParallelLoop* loop;
};

int run_loop_task(int index, int count, ThreadPool::Group* group, void* data) {
  auto& loop = *static_cast<ParallelLoop*>(data);
  GroupEnv group_env{{group, count}, &loop};
  const int result = loop.task(index, &group_env.env, loop.data);
  if (result != 0) {
    // The reason was noted for this thread; the one that waits for the loop has to learn it.
    const std::lock_guard lock(loop.mutex);
    if (!loop.failed) {
      loop.failed = true;
      try {
        loop.reason = last_packed_error();
      } catch (const std::exception&) {
        // Without memory for the text the failure itself is still reported.
      }
    }
  }
  return result;
}

// Runs the loop and returns the first result that is not 0. Compiled loops are cut into as many
// tasks as they are told, which changes no result: it is for whoever calls them to say how many.
int run_loop(ParallelLoop& loop, int num_task) {
  ThreadPool& pool = current_thread_pool();
  const bool any_number = num_task <= 0 && !barrier_loops().contains(loop.task);
  const int count = any_number ? pool.loop_tasks() : num_task;
  const int result = pool.launch(run_loop_task, &loop, count);
  if (loop.has_barrier.load(std::memory_order_relaxed)) barrier_loops().add(loop.task);
  return result;
}

// A hint for the functions of TVM's registry that compiled models are known to call.
std::string missing_function_hint(const std::string& name) {
  if (name.starts_with("tvm.contrib.thrust")) {
    return "sorting operators (sort, argsort, topk) of the model have to be left to the caller";
  }
  if (name.starts_with("tvm.contrib.")) {
    return "compile without -libs=… in the target";
  }
  if (name.starts_with("__tvm_set_device")) {
    return "the library has no code for a GPU: take the one that belongs to the graph";
  }
  if (name.starts_with("device_api.")) {
    return "compile without the GPU's own kinds of memory (textures): target \"opencl\", without "
           "-device=adreno";
  }
  return "compile the model from operators that TVM generates code for";
}

}  // namespace
}  // namespace run_model

extern "C" {

int TVMBackendParallelLaunch(FTVMParallelLambda task, void* data, int num_task) {
  using namespace run_model;
  try {
    ParallelLoop loop{task, data, {}, false, {}, {}};
    const int result = run_loop(loop, num_task);
    if (result != 0) {
      set_last_packed_error(std::move(loop.reason));
    }
    return result;
  } catch (const std::exception& error) {
    return fail(std::string("a parallel loop cannot be run: ") + error.what());
  } catch (...) {
    return fail("a parallel loop cannot be run");
  }
}

int TVMBackendParallelBarrier(int /*task_id*/, TVMParallelGroupEnv* env) {
  using namespace run_model;
  reinterpret_cast<GroupEnv*>(env)->loop->has_barrier.store(true, std::memory_order_relaxed);
  return ThreadPool::barrier(static_cast<ThreadPool::Group*>(env->sync_handle)) ? 0 : kFailure;
}

void* TVMBackendAllocWorkspace(int device_type, int device_id, std::uint64_t bytes,
                               int /*type_code_hint*/, int /*type_bits_hint*/) {
  using namespace run_model;
  try {
    if (device_type != kDLCPU) {
      return allocate_device_workspace({static_cast<DLDeviceType>(device_type), device_id}, bytes);
    }
    void* data = Workspace::of_this_thread().allocate(bytes);
    if (data == nullptr) {
      fail("there is no memory for " + std::to_string(bytes) + " bytes of workspace");
    }
    return data;
  } catch (...) {
    return nullptr;
  }
}

int TVMBackendFreeWorkspace(int device_type, int device_id, void* data) {
  using namespace run_model;
  try {
    if (device_type != kDLCPU) {
      const DLDevice device{static_cast<DLDeviceType>(device_type), device_id};
      return free_device_workspace(device, data) ? 0 : kFailure;
    }
    if (!Workspace::of_this_thread().free(data)) {
      return fail("the model frees workspace that it did not allocate on this thread");
    }
    return 0;
  } catch (...) {
    return kFailure;
  }
}

int TVMBackendGetFuncFromEnv(void* module, const char* name, void** function) {
  using namespace run_model;
  try {
    if (module == nullptr) {
      return fail("a function asks for " + in_quotes(name) +
                  " before its library was connected to run_model");
    }
    const auto& library = *static_cast<const Module*>(module);
    const ModelLibrary* model = as_model_library(library);
    if (model != nullptr && model->speaks_ffi()) {
      // TVM 0.21 to 0.25 call it by this name, for a function object.
      *function = model->function_object(name);
      return 0;
    }
    PackedFunction found = library.find(name);
    DeviceFunctions* device = model != nullptr ? model->device_functions() : nullptr;
    if (found == nullptr && device != nullptr) {
      *function = device->find(name);
      if (*function != nullptr) return 0;
    }
    if (found == nullptr) found = find_packed_runtime_function(name);
    if (found == nullptr) {
      return fail("the model calls the function " + in_quotes(name) +
                  ", which is part of TVM's own runtime and not of run_model; " +
                  missing_function_hint(name));
    }
    *function = reinterpret_cast<void*>(found);
    return 0;
  } catch (const std::exception& error) {
    return fail(error.what());
  } catch (...) {
    return kFailure;
  }
}

int TVMFuncCall(void* function, run_model::PackedValue* args, int* type_codes, int num_args,
                run_model::PackedValue* result, int* result_type_code) {
  using namespace run_model;
  *result_type_code = kTypeNull;
  if (is_callable_handle(function)) return call_handle(function, args, type_codes, num_args);
  const auto packed = reinterpret_cast<PackedFunction>(function);
  return packed(args, type_codes, num_args, result, result_type_code, nullptr);
}

void TVMAPISetLastError(const char* message) {
  try {
    run_model::set_last_packed_error(message != nullptr ? message : "");
  } catch (...) {
    run_model::clear_last_packed_error();
  }
}

const char* TVMGetLastError(void) { return run_model::last_packed_error().c_str(); }

int TVMBackendRunOnce(void** handle, int (*function)(void*), void* data, int /*bytes*/) {
  if (*handle != nullptr) {
    return 0;
  }
  *handle = reinterpret_cast<void*>(1);
  return function(data);
}

int TVMBackendRegisterSystemLibSymbol(const char* /*name*/, void* /*address*/) { return 0; }

int TVMBackendRegisterEnvCAPI(const char* /*name*/, void* /*address*/) { return 0; }

}  // extern "C"

namespace run_model {
namespace {

#define RUN_MODEL_SYMBOL(function) {#function, reinterpret_cast<void*>(&function)}

const ExportedSymbol kSymbols[] = {
    RUN_MODEL_SYMBOL(TVMBackendParallelLaunch),
    RUN_MODEL_SYMBOL(TVMBackendParallelBarrier),
    RUN_MODEL_SYMBOL(TVMBackendAllocWorkspace),
    RUN_MODEL_SYMBOL(TVMBackendFreeWorkspace),
    RUN_MODEL_SYMBOL(TVMBackendGetFuncFromEnv),
    RUN_MODEL_SYMBOL(TVMBackendRunOnce),
    RUN_MODEL_SYMBOL(TVMBackendRegisterSystemLibSymbol),
    RUN_MODEL_SYMBOL(TVMBackendRegisterEnvCAPI),
    RUN_MODEL_SYMBOL(TVMFuncCall),
    RUN_MODEL_SYMBOL(TVMAPISetLastError),
    RUN_MODEL_SYMBOL(TVMGetLastError),
    RUN_MODEL_SYMBOL(TVMFFIErrorSetRaised),
    RUN_MODEL_SYMBOL(TVMFFIErrorSetRaisedFromCStr),
    RUN_MODEL_SYMBOL(TVMFFIErrorSetRaisedFromCStrParts),
    RUN_MODEL_SYMBOL(TVMFFIFunctionCall),
    RUN_MODEL_SYMBOL(TVMFFIEnvModLookupFromImports),
    RUN_MODEL_SYMBOL(TVMFFIHandleInitOnce),
    RUN_MODEL_SYMBOL(TVMFFIBacktrace),
    RUN_MODEL_SYMBOL(TVMFFIGetTypeInfo),
    RUN_MODEL_SYMBOL(TVMFFIEnvModRegisterSystemLibSymbol),
    RUN_MODEL_SYMBOL(TVMBackendAnyListSetPackedArg),
    RUN_MODEL_SYMBOL(TVMBackendAnyListResetItem),
    RUN_MODEL_SYMBOL(TVMBackendAnyListMoveFromPackedReturn),
    RUN_MODEL_SYMBOL(__gnu_h2f_ieee),
    RUN_MODEL_SYMBOL(__gnu_f2h_ieee),
    RUN_MODEL_SYMBOL(__truncdfhf2),
#ifdef RUN_MODEL_HALF_IN_FLOAT_REGISTER
    RUN_MODEL_SYMBOL(__extendhfsf2),
    RUN_MODEL_SYMBOL(__extendhfdf2),
    RUN_MODEL_SYMBOL(__truncsfhf2),
#endif
#if defined(__arm__)
    RUN_MODEL_SYMBOL(__aeabi_h2f),
    RUN_MODEL_SYMBOL(__aeabi_f2h),
    RUN_MODEL_SYMBOL(__aeabi_d2h),
#endif
};

#undef RUN_MODEL_SYMBOL

}  // namespace

std::span<const ExportedSymbol> exported_symbols() { return kSymbols; }

void forget_loops() { barrier_loops().clear(); }

}  // namespace run_model
