"""C text for functions that Relax calls: the values of tvm-ffi's C ABI, a sentence when they fail,
and the functions of the runtime that loads them.  TVM's own machine breaks down where a function
fails without a sentence."""

VALUES = """\
typedef struct { int type; unsigned more; union { long long number; void *pointer; }; } Any;
typedef struct {
  char *data; int device[2]; int ndim; unsigned char code, bits; unsigned short lanes;
  long long *shape, *strides; unsigned long long byte_offset;
} Tensor;
enum { NONE = 0, TENSOR_POINTER = 7, TENSOR_OBJECT = 70, OBJECT_HEAD = 24 };
#define EXPORTED __attribute__((visibility("default"))) int

static inline Tensor *tensor(const Any *value) {
  if (value->type == TENSOR_POINTER) return value->pointer;
  if (value->type == TENSOR_OBJECT) return (Tensor *)((char *)value->pointer + OBJECT_HEAD);
  return 0;
}

static inline char *data(const Tensor *tensor) { return tensor->data + tensor->byte_offset; }

static inline long long bytes(const Tensor *tensor) {
  long long size = tensor->bits / 8;
  for (int i = 0; i < tensor->ndim; ++i) size *= tensor->shape[i];
  return size;
}
"""

FAIL = """\
__attribute__((weak)) void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message);

static inline int fail(const char *message) {
  if (TVMFFIErrorSetRaisedFromCStr) TVMFFIErrorSetRaisedFromCStr("ValueError", message);
  return -1;
}

static inline int refuse(void) {
  return fail("a kernel was given tensors of other types or extents than it is for");
}
"""
"""To follow VALUES."""

RUNTIME = """\
typedef struct { void *sync; int tasks; } Group;
typedef int (*Task)(int, Group *, void *);
/* The runtime puts the addresses of its functions here when it has loaded the library. */
#define SLOT __attribute__((weak, visibility("default")))
SLOT int (*__TVMBackendParallelLaunch)(Task, void *, int);
SLOT void *(*__TVMBackendAllocWorkspace)(int, int, unsigned long long, int, int);
SLOT int (*__TVMBackendFreeWorkspace)(int, int, void *);
enum { CPU = 1, FLOAT = 2 };
static inline void *get(unsigned long long bytes) {
  return __TVMBackendAllocWorkspace(CPU, 0, bytes, FLOAT, 32);
}
static inline void give(void *memory) { __TVMBackendFreeWorkspace(CPU, 0, memory); }
static inline int no_memory(void) {
  return fail("there is not enough memory for what a kernel keeps while it runs");
}

/* The tasks of this thread, first and end. */
static inline void share(int id, const Group *group, long tasks, long *first, long *end) {
  const long each = (tasks + group->tasks - 1) / group->tasks;
  *first = id * each < tasks ? id * each : tasks;
  *end = *first + each < tasks ? *first + each : tasks;
}

/* Tasks fail for nothing but memory; what they say themselves stays on their own threads. */
static inline int launch(Task task, void *of) {
  return __TVMBackendParallelLaunch(task, of, 0) ? no_memory() : 0;
}
"""
"""To follow FAIL."""
