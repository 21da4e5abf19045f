/* A model that refers to the runtime's functions by name, as TVM's C code generator makes it. */
#include "packed.h"

int TVMBackendParallelLaunch(Lambda task, void* data, int num_task);
int TVMBackendParallelBarrier(int task_id, ParallelEnv* env);
void* TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t bytes, int code, int bits);
int TVMBackendFreeWorkspace(int device_type, int device_id, void* data);
int TVMBackendGetFuncFromEnv(void* module, const char* name, void** function);
int TVMFuncCall(void* function, Value* args, int* codes, int count, Value* result,
                int* result_code);
int TVMBackendRunOnce(void** handle, int (*function)(void*), void* data, int bytes);
int TVMBackendRegisterSystemLibSymbol(const char* name, void* address);
int TVMBackendRegisterEnvCAPI(const char* name, void* address);
void TVMAPISetLastError(const char* message);
const char* TVMGetLastError(void);

/* Halves as integers: LLVM up to 14. Compilers for 32-bit Arm never pass them in VFP registers. */
#ifdef __arm__
#define HELPER __attribute__((pcs("aapcs")))
#else
#define HELPER
#endif
HELPER float __gnu_h2f_ieee(uint16_t half);
HELPER uint16_t __gnu_f2h_ieee(float value);
HELPER uint16_t __truncdfhf2(double value);

void* __tvm_module_ctx = 0;

static int add_index(int task_id, ParallelEnv* env, void* data) {
  int code = TVMBackendParallelBarrier(task_id, env);
  ((int32_t*)data)[task_id] += task_id;
  return code;
}

/* args: int32 sums[], number of tasks */
PACKED(fused_parallel) {
  return TVMBackendParallelLaunch(add_index, args[0].v_handle, (int)args[1].v_int64);
}

/* args: a half in an integer; gives the double of it, as a half in an integer. */
PACKED(fused_double_half) {
  float value = __gnu_h2f_ieee((uint16_t)args[0].v_int64);
  result[0].v_int64 = __gnu_f2h_ieee(value + value);
  result_code[0] = 0;
  return 0;
}

PACKED(fused_round_double) {
  result[0].v_int64 = __truncdfhf2(args[0].v_float64);
  result_code[0] = 0;
  return 0;
}

static int increment(void* data) {
  *(int*)data += 1;
  return 0;
}

/* Gives how often the function ran of the two times that it was asked for: 1. */
PACKED(fused_rest) {
  void* handle = 0;
  int runs = 0;
  if (TVMBackendRunOnce(&handle, increment, &runs, sizeof(int)) != 0 ||
      TVMBackendRunOnce(&handle, increment, &runs, sizeof(int)) != 0 ||
      TVMBackendRegisterSystemLibSymbol("fused_rest", (void*)&runs) != 0 ||
      TVMBackendRegisterEnvCAPI("PyErr_CheckSignals", (void*)&runs) != 0) {
    return -1;
  }
  void* workspace = TVMBackendAllocWorkspace(1, 0, 64, 2, 32);
  if (workspace == 0 || TVMBackendFreeWorkspace(1, 0, workspace) != 0) return -1;
  void* function = 0;
  if (TVMBackendGetFuncFromEnv(__tvm_module_ctx, "fused_missing", &function) == 0) return -1;
  TVMAPISetLastError("set and read");
  if (TVMGetLastError()[0] != 's') return -1;
  if (TVMBackendGetFuncFromEnv(__tvm_module_ctx, "fused_round_double", &function) != 0) return -1;
  Value one;
  one.v_float64 = 1.0;
  int code = 2;
  if (TVMFuncCall(function, &one, &code, 1, result, result_code) != 0) return -1;
  if (result[0].v_int64 != 0x3c00) return -1;
  result[0].v_int64 = runs;
  return 0;
}
