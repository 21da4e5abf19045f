/* The C interface of compiled functions, as TVM's code generators use it. */
#ifndef TESTS_RUNTIME_LIBRARIES_PACKED_H_
#define TESTS_RUNTIME_LIBRARIES_PACKED_H_

#include <stdint.h>

typedef union {
  int64_t v_int64;
  double v_float64;
  void* v_handle;
} Value;

typedef struct {
  void* sync_handle;
  int32_t num_task;
} ParallelEnv;

typedef int (*Lambda)(int task_id, ParallelEnv* env, void* data);
typedef int (*Launch)(Lambda task, void* data, int num_task);
typedef int (*Barrier)(int task_id, ParallelEnv* env);
typedef void* (*Alloc)(int device_type, int device_id, uint64_t bytes, int code, int bits);
typedef int (*Free)(int device_type, int device_id, void* data);
typedef int (*GetFunction)(void* module, const char* name, void** function);
typedef int (*Call)(void* function, Value* args, int* codes, int count, Value* result,
                    int* result_code);
typedef void (*SetError)(const char* message);

#define PACKED(name) \
  int name(Value* args, int* codes, int count, Value* result, int* result_code, void* resource)

#endif
