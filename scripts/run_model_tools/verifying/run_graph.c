/* Runs a compiled network once for each set of inputs, on the machine or emulator that this is
 * built for, without TVM and without run_model: what executes an artifact before it is written.
 *
 *   run_graph LIBRARY PROGRAM PARAMS INPUTS OUTPUTS SECONDS
 *
 * PROGRAM is the graph as lines of numbers (graph_program.py); PARAMS is model.params; INPUTS and
 * OUTPUTS hold the tensors of all runs one after the other.  After SECONDS no further run begins.
 *
 * Memory that nothing has written yet holds ones in every bit, which are NaNs, so that code that
 * reads what it did not compute shows in the result. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "half_helpers.h"
#include "tvm/runtime/c_backend_api.h"

enum { kUnusable = 3, kFailed = 4, kMostDimensions = 16, kMostTasks = 4 };

static void* library;
static char last_error[2000];

static void end(int status, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
  exit(status);
}

static void* memory_of(size_t bytes) {
  void* memory = NULL;
  if (posix_memalign(&memory, 128, bytes ? bytes : 1)) end(kUnusable, "there is no memory");
  memset(memory, 0xff, bytes);
  return memory;
}

/* What compiled code calls. */

typedef struct {
  pthread_barrier_t* barrier;
  int32_t num_task;
} Environment;

typedef int (*ParallelTask)(int task, Environment* environment, void* data);

typedef struct {
  ParallelTask function;
  Environment* environment;
  void* data;
  int task, result;
} Share;

static void* run_share(void* argument) {
  Share* share = argument;
  share->result = share->function(share->task, share->environment, share->data);
  return NULL;
}

TVM_DLL void TVMAPISetLastError(const char* message) {
  snprintf(last_error, sizeof last_error, "%s", message != NULL ? message : "");
}

TVM_DLL int TVMBackendParallelLaunch(ParallelTask function, void* data, int tasks) {
  if (tasks <= 0) tasks = kMostTasks;
  pthread_barrier_t barrier;
  pthread_barrier_init(&barrier, NULL, (unsigned)tasks);
  Environment environment = {&barrier, tasks};
  Share* shares = calloc((size_t)tasks, sizeof *shares);
  pthread_t* threads = calloc((size_t)tasks, sizeof *threads);
  if (shares == NULL || threads == NULL) end(kUnusable, "there is no memory");
  for (int i = tasks - 1; i >= 0; --i) {
    shares[i] = (Share){function, &environment, data, i, 0};
    if (i == 0) {
      run_share(&shares[0]);
    } else if (pthread_create(&threads[i], NULL, run_share, &shares[i])) {
      end(kUnusable, "a thread could not be started");
    }
  }
  int result = shares[0].result;
  for (int i = 1; i < tasks; ++i) {
    pthread_join(threads[i], NULL);
    if (shares[i].result) result = shares[i].result;
  }
  pthread_barrier_destroy(&barrier);
  free(shares);
  free(threads);
  return result;
}

TVM_DLL int TVMBackendParallelBarrier(int task, Environment* environment) {
  (void)task;
  pthread_barrier_wait(environment->barrier);
  return 0;
}

TVM_DLL void* TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t bytes,
                                       int type_code, int type_bits) {
  (void)device_type, (void)device_id, (void)type_code, (void)type_bits;
  return memory_of((size_t)bytes);
}

TVM_DLL int TVMBackendFreeWorkspace(int device_type, int device_id, void* memory) {
  (void)device_type, (void)device_id;
  free(memory);
  return 0;
}

TVM_DLL int TVMBackendGetFuncFromEnv(void* module, const char* name, TVMFunctionHandle* function) {
  (void)module;
  *function = dlsym(library, name);
  if (*function != NULL) return 0;
  snprintf(last_error, sizeof last_error,
           "it calls the function '%s', which is part of TVM's own runtime and not of run_model",
           name);
  return -1;
}

TVM_DLL int TVMFuncCall(TVMFunctionHandle function, TVMValue* arguments, int* type_codes, int count,
                        TVMValue* result, int* result_type) {
  *result_type = kTVMNullptr;
  return ((TVMBackendPackedCFunc)function)(arguments, type_codes, count, result, result_type, NULL);
}

TVM_DLL const char* TVMGetLastError(void) { return last_error; }

TVM_DLL int TVMBackendRunOnce(void** handle, int (*function)(void*), void* data, int bytes) {
  (void)bytes;
  if (*handle != NULL) return 0;
  *handle = (void*)1;
  return function(data);
}

/* A library that LLVM made has variables for the addresses of these functions; one of C source is
 * linked to their names. */
static void fill_slots(void) {
  static const struct {
    const char* name;
    void* address;
  } slots[] = {
      {"__TVMBackendParallelLaunch", (void*)&TVMBackendParallelLaunch},
      {"__TVMBackendParallelBarrier", (void*)&TVMBackendParallelBarrier},
      {"__TVMBackendAllocWorkspace", (void*)&TVMBackendAllocWorkspace},
      {"__TVMBackendFreeWorkspace", (void*)&TVMBackendFreeWorkspace},
      {"__TVMBackendGetFuncFromEnv", (void*)&TVMBackendGetFuncFromEnv},
      {"__TVMBackendRunOnce", (void*)&TVMBackendRunOnce},
      {"__TVMFuncCall", (void*)&TVMFuncCall},
      {"__TVMAPISetLastError", (void*)&TVMAPISetLastError},
      {"__TVMGetLastError", (void*)&TVMGetLastError},
      {"__tvm_module_ctx", (void*)&library},
  };
  for (size_t i = 0; i < sizeof slots / sizeof *slots; ++i) {
    void** slot = dlsym(library, slots[i].name);
    if (slot != NULL) *slot = slots[i].address;
  }
}

/* The graph. */

typedef struct {
  int storage;
  size_t bytes;
  int64_t shape[kMostDimensions];
  DLTensor tensor;
} Entry;

typedef struct {
  TVMBackendPackedCFunc function;
  char name[512];
  int count, first_output;
  int* entries;
  TVMValue* values;
  int* codes;
} Call;

static long long number(FILE* file) {
  long long value;
  if (fscanf(file, "%lld", &value) != 1) end(kUnusable, "the program ends early");
  return value;
}

static void* table(size_t count, size_t size) {
  void* memory = calloc(count ? count : 1, size);
  if (memory == NULL) end(kUnusable, "there is no memory");
  return memory;
}

static int* numbers(FILE* file, int* count) {
  *count = (int)number(file);
  int* list = table((size_t)*count, sizeof *list);
  for (int i = 0; i < *count; ++i) list[i] = (int)number(file);
  return list;
}

static FILE* open_file(const char* path, const char* mode) {
  FILE* file = fopen(path, mode);
  if (file == NULL) end(kUnusable, "%s cannot be opened", path);
  return file;
}

static Entry* read_entries(FILE* file) {
  const int storages = (int)number(file);
  void** memory = table((size_t)storages, sizeof *memory);
  for (int i = 0; i < storages; ++i) memory[i] = memory_of((size_t)number(file));
  const int count = (int)number(file);
  Entry* entries = table((size_t)count, sizeof *entries);
  for (int i = 0; i < count; ++i) {
    Entry* entry = &entries[i];
    entry->storage = (int)number(file);
    entry->bytes = (size_t)number(file);
    DLTensor* tensor = &entry->tensor;
    tensor->data = memory[entry->storage];
    tensor->device.device_type = 1;
    tensor->dtype.code = (uint8_t)number(file);
    tensor->dtype.bits = (uint8_t)number(file);
    tensor->dtype.lanes = 1;
    tensor->ndim = (int32_t)number(file);
    if (tensor->ndim > kMostDimensions) end(kUnusable, "a tensor has %d axes", tensor->ndim);
    for (int axis = 0; axis < tensor->ndim; ++axis) entry->shape[axis] = number(file);
    tensor->shape = entry->shape;
  }
  free(memory);
  return entries;
}

static void read_parameters(FILE* file, const char* path, Entry* entries) {
  FILE* data = open_file(path, "rb");
  for (long long left = number(file); left > 0; --left) {
    const Entry* entry = &entries[number(file)];
    if (fseek(data, (long)number(file), SEEK_SET) ||
        fread(entry->tensor.data, 1, entry->bytes, data) != entry->bytes) {
      end(kUnusable, "%s ends early", path);
    }
  }
  fclose(data);
}

static Call* read_calls(FILE* file, Entry* entries, int* count) {
  *count = (int)number(file);
  Call* calls = table((size_t)*count, sizeof *calls);
  for (int i = 0; i < *count; ++i) {
    Call* call = &calls[i];
    if (fscanf(file, "%511s", call->name) != 1) end(kUnusable, "the program ends early");
    call->first_output = (int)number(file);
    call->entries = numbers(file, &call->count);
    call->values = table((size_t)call->count, sizeof *call->values);
    call->codes = table((size_t)call->count, sizeof *call->codes);
    for (int j = 0; j < call->count; ++j) {
      call->values[j].v_handle = &entries[call->entries[j]].tensor;
      call->codes[j] = kTVMDLTensorHandle;
    }
    *(void**)&call->function = dlsym(library, call->name);
    if (call->function == NULL) end(kFailed, "the library lacks the function '%s'", call->name);
  }
  return calls;
}

/* Marks what the call is to write, unless that lies where one of its inputs does. */
static void forget_outputs(const Call* call, Entry* entries) {
  for (int i = call->first_output; i < call->count; ++i) {
    const Entry* output = &entries[call->entries[i]];
    int shared = 0;
    for (int j = 0; j < call->first_output; ++j) {
      shared |= entries[call->entries[j]].storage == output->storage;
    }
    if (!shared) memset(output->tensor.data, 0xff, output->bytes);
  }
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(int argc, char** argv) {
  if (argc != 7) end(kUnusable, "usage: run_graph LIBRARY PROGRAM PARAMS INPUTS OUTPUTS SECONDS");
  library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) end(kUnusable, "%s", dlerror());
  fill_slots();
  FILE* program = open_file(argv[2], "r");
  Entry* entries = read_entries(program);
  read_parameters(program, argv[3], entries);
  int input_count, output_count, call_count;
  const int* inputs = numbers(program, &input_count);
  const int* outputs = numbers(program, &output_count);
  Call* calls = read_calls(program, entries, &call_count);
  const long long runs = number(program);
  FILE* given = open_file(argv[4], "rb");
  FILE* made = open_file(argv[5], "wb");
  const double last_start = now() + atof(argv[6]);
  for (long long run = 0; run < runs && (run == 0 || now() < last_start); ++run) {
    for (int i = 0; i < input_count; ++i) {
      const Entry* entry = &entries[inputs[i]];
      if (fread(entry->tensor.data, 1, entry->bytes, given) != entry->bytes) {
        end(kUnusable, "%s ends early", argv[4]);
      }
    }
    for (int i = 0; i < call_count; ++i) {
      Call* call = &calls[i];
      forget_outputs(call, entries);
      TVMValue result;
      int result_type = kTVMNullptr;
      if (call->function(call->values, call->codes, call->count, &result, &result_type, NULL)) {
        end(kFailed, "the function '%s' failed: %s", call->name, last_error);
      }
    }
    for (int i = 0; i < output_count; ++i) {
      const Entry* entry = &entries[outputs[i]];
      fwrite(entry->tensor.data, 1, entry->bytes, made);
    }
  }
  if (fclose(made)) end(kUnusable, "%s could not be written", argv[5]);
  return 0;
}
