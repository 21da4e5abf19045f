/* A model that reaches the runtime through pointer variables, as TVM's LLVM code generator makes
 * it. */
#include "packed.h"

__attribute__((weak)) void* __tvm_module_ctx = 0;
__attribute__((weak)) Launch __TVMBackendParallelLaunch = 0;
__attribute__((weak)) Barrier __TVMBackendParallelBarrier = 0;
__attribute__((weak)) Alloc __TVMBackendAllocWorkspace = 0;
__attribute__((weak)) Free __TVMBackendFreeWorkspace = 0;
__attribute__((weak)) GetFunction __TVMBackendGetFuncFromEnv = 0;
__attribute__((weak)) Call __TVMFuncCall = 0;
__attribute__((weak)) SetError __TVMAPISetLastError = 0;

const char __tvm_main__[] = "fused_add_one";

/* The result is the argument and one. */
PACKED(fused_add_one) {
  result[0].v_int64 = args[0].v_int64 + 1;
  result_code[0] = 0;
  return 0;
}

PACKED(fused_fail) {
  __TVMAPISetLastError("Assert fail: the shape is wrong");
  return -1;
}

typedef struct {
  int32_t* counts; /* how often each task ran */
  int32_t tasks;
} Counts;

static int count_task(int task_id, ParallelEnv* env, void* data) {
  Counts* counts = (Counts*)data;
  counts->counts[task_id] += 1;
  if (task_id == 0) counts->tasks = env->num_task;
  return 0;
}

/* args: int32 counts[], number of tasks; gives the number of tasks that ran. */
PACKED(fused_parallel) {
  Counts counts = {(int32_t*)args[0].v_handle, 0};
  int code = __TVMBackendParallelLaunch(count_task, &counts, (int)args[1].v_int64);
  result[0].v_int64 = counts.tasks;
  result_code[0] = 0;
  return code;
}

static int fail_in_task(int task_id, ParallelEnv* env, void* data) {
  if (task_id == env->num_task - 1) {
    __TVMAPISetLastError("the last task failed");
    return -1;
  }
  return 0;
}

PACKED(fused_parallel_fail) { return __TVMBackendParallelLaunch(fail_in_task, 0, 0); }

typedef struct {
  int32_t written[64];
  int32_t sums[64];
} Phases;

/* Every task reads, after the barrier, what all of them wrote before it. */
static int two_phases(int task_id, ParallelEnv* env, void* data) {
  Phases* phases = (Phases*)data;
  phases->written[task_id] = task_id + 1;
  int code = __TVMBackendParallelBarrier(task_id, env);
  if (code != 0) return code;
  int32_t sum = 0;
  for (int i = 0; i < env->num_task; ++i) sum += phases->written[i];
  phases->sums[task_id] = sum;
  return 0;
}

/* args: number of tasks (at most 64); gives 1 when every task saw the sum of all. */
PACKED(fused_barrier) {
  Phases phases = {{0}, {0}};
  int tasks = (int)args[0].v_int64;
  int code = __TVMBackendParallelLaunch(two_phases, &phases, tasks);
  result_code[0] = 0;
  result[0].v_int64 = 1;
  for (int i = 0; i < tasks; ++i) {
    if (phases.sums[i] != tasks * (tasks + 1) / 2) result[0].v_int64 = 0;
  }
  return code;
}

/* args: bytes, device type; gives the address of the workspace, already freed. */
PACKED(fused_workspace) {
  int device = (int)args[1].v_int64;
  char* data = (char*)__TVMBackendAllocWorkspace(device, 0, (uint64_t)args[0].v_int64, 2, 32);
  if (data == 0) return -1;
  data[0] = 1;
  data[args[0].v_int64 - 1] = 2;
  result[0].v_handle = data;
  result_code[0] = 3;
  return __TVMBackendFreeWorkspace(device, 0, data);
}

/* args: a function's name, its integer argument; calls it by way of the runtime. */
PACKED(fused_call_by_name) {
  void* function = 0;
  if (__TVMBackendGetFuncFromEnv(__tvm_module_ctx, (const char*)args[0].v_handle, &function) != 0) {
    return -1;
  }
  return __TVMFuncCall(function, args + 1, codes + 1, count - 1, result, result_code);
}

/* Not meant for others, as the helpers that compilers add. */
int __hidden_helper(void) { return 1; }
