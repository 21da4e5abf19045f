// Functions in the calling convention of TVM's compiled code that do what no model should.
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Of c_runtime_api.h and dlpack.h (v0.18.0).
typedef struct {
  int32_t type;
  int32_t id;
} Device;

typedef struct {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} DataType;

typedef struct {
  void* data;
  Device device;
  int32_t ndim;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
} Tensor;

typedef struct {
  const char* data;
  size_t size;
} ByteArray;

typedef union {
  int64_t v_int64;
  double v_float64;
  void* v_handle;
  const char* v_str;
  Device v_device;
} Value;

enum {
  kInt = 0,
  kFloat = 2,
  kNull = 4,
  kDevice = 6,
  kTensor = 7,
  kText = 11,
  kBytes = 12,
  kBool = 15
};

// The runtime that loads the library has this, as TVM's does.
extern void TVMAPISetLastError(const char* message);

#define FUNCTION(name) \
  int name(Value* args, int* codes, int count, Value* result, int* result_code, void* self)

#define UNUSED() ((void)args, (void)codes, (void)count, (void)result, (void)result_code, (void)self)

// Writes what its arguments are, as text, into the last, a tensor of uint8.
FUNCTION(describe) {
  UNUSED();
  const Tensor* last = args[count - 1].v_handle;
  char* text = (char*)last->data + last->byte_offset;
  char* const end = text + last->shape[0];
  memset(text, 0, (size_t)last->shape[0]);
  for (int i = 0; i < count - 1; ++i) {
    const size_t room = (size_t)(end - text);
    const Value value = args[i];
    if (codes[i] == kInt) {
      text += snprintf(text, room, "int %lld;", (long long)value.v_int64);
    } else if (codes[i] == kBool) {
      // TVM 0.18 tells bools from integers, which earlier releases do not.
      text += snprintf(text, room, "int %d;", value.v_int64 != 0);
    } else if (codes[i] == kFloat) {
      text += snprintf(text, room, "float %.17g;", value.v_float64);
    } else if (codes[i] == kNull) {
      text += snprintf(text, room, "null;");
    } else if (codes[i] == kDevice) {
      text += snprintf(text, room, "device %d %d;", value.v_device.type, value.v_device.id);
    } else if (codes[i] == kText) {
      text += snprintf(text, room, "text %s;", value.v_str);
    } else if (codes[i] == kBytes) {
      const ByteArray* bytes = value.v_handle;
      text += snprintf(text, room, "bytes");
      for (size_t b = 0; b < bytes->size; ++b) {
        text += snprintf(text, (size_t)(end - text), " %d", (uint8_t)bytes->data[b]);
      }
      text += snprintf(text, (size_t)(end - text), ";");
    } else if (codes[i] == kTensor) {
      const Tensor* tensor = value.v_handle;
      text += snprintf(text, room, "tensor %d %d %d", tensor->dtype.code, tensor->dtype.bits,
                       tensor->dtype.lanes);
      for (int d = 0; d < tensor->ndim; ++d) {
        text += snprintf(text, (size_t)(end - text), " %lld", (long long)tensor->shape[d]);
      }
      text += snprintf(text, (size_t)(end - text), ";");
    } else {
      text += snprintf(text, room, "code %d;", codes[i]);
    }
  }
  return 0;
}

FUNCTION(give_int) {
  UNUSED();
  result->v_int64 = INT64_MIN;
  *result_code = kInt;
  return 0;
}

FUNCTION(give_float) {
  UNUSED();
  result->v_float64 = -0.1;
  *result_code = kFloat;
  return 0;
}

FUNCTION(give_bool) {
  UNUSED();
  result->v_int64 = 1;
  *result_code = kBool;
  return 0;
}

FUNCTION(fail) {
  UNUSED();
  TVMAPISetLastError("the stove is cold");
  return -1;
}

FUNCTION(segfault) {
  UNUSED();
  *(volatile int*)8 = 1;
  return 0;
}

FUNCTION(illegal_instruction) {
  UNUSED();
  __builtin_trap();
}

FUNCTION(abort_here) {
  UNUSED();
  abort();
}

FUNCTION(exit_here) {
  UNUSED();
  exit(3);
}

FUNCTION(loop) {
  UNUSED();
  for (volatile int go_on = 1; go_on;) {
  }
  return 0;
}

FUNCTION(sleep_long) {
  UNUSED();
  // Signals may end one sleep.
  for (;;) sleep(1000);
}

// Blocks what asks a process to end, and loops.
FUNCTION(loop_stubbornly) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, NULL);
  return loop(args, codes, count, result, result_code, self);
}

FUNCTION(leave_a_child) {
  UNUSED();
  const pid_t child = fork();
  if (child == 0) {
    for (;;) sleep(1000);
  }
  return child > 0 ? 0 : -1;
}

// Touches what it allocates, in steps that a watcher has a chance to see.
FUNCTION(eat_memory) {
  UNUSED();
  const size_t step = (size_t)4 << 20;
  for (int i = 0; i < 1024; ++i) {
    char* memory = malloc(step);
    if (memory == NULL) {
      TVMAPISetLastError("malloc gave nothing");
      return -1;
    }
    memset(memory, 1, step);
    usleep(2000);
  }
  return 0;
}

FUNCTION(overflow_stack) {
  volatile char frame[4096];
  frame[0] = (char)count;
  const int below = overflow_stack(args, codes, count, result, result_code, self);
  return below + frame[0];
}
