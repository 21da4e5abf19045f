"""C text for functions that Relax calls: the values of tvm-ffi's C ABI, a sentence when they fail,
and the functions of the runtime that loads them."""

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
"""

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
"""
