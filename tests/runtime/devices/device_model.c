// A stand-in for a model that TVM compiled for OpenCL, or where it is asked for CUDA or Vulkan:
// host functions as its code generator makes them, for float32 tensors of 4 elements, and kernels
// in the form in which it packs them.
#include <dlpack/dlpack.h>
#include <stdint.h>

typedef union {
  int64_t v_int64;
  double v_float64;
  void* v_handle;
} Value;

// The runtime writes its own addresses here.
void* __tvm_module_ctx = 0;
int (*__TVMBackendGetFuncFromEnv)(void*, const char*, void**) = 0;
int (*__TVMFuncCall)(void*, Value*, int*, int, Value*, int*) = 0;
void* (*__TVMBackendAllocWorkspace)(int, int, uint64_t, int, int) = 0;
int (*__TVMBackendFreeWorkspace)(int, int, void*) = 0;

static DLTensor* tensor(Value* args, int i) { return args[i].v_handle; }
static Value handle(void* memory) { return (Value){.v_handle = memory}; }
static Value integer(int64_t number) { return (Value){.v_int64 = number}; }

static int call(const char* name, Value* args, int* codes, int n) {
  void* function = 0;
  if (__TVMBackendGetFuncFromEnv(__tvm_module_ctx, name, &function) != 0) return -1;
  Value result;
  int code;
  return __TVMFuncCall(function, args, codes, n, &result, &code);
}

static int set_device(const DLTensor* of) {
  Value args[] = {integer(of->device.device_type), integer(of->device.device_id)};
  int codes[] = {0, 0};
  return call("__tvm_set_device", args, codes, 2);
}

static int add(void* out, void* a, void* b, int64_t threads) {
  Value args[] = {handle(out), handle(a), handle(b), integer(4 / threads), integer(threads)};
  int codes[] = {3, 3, 3, 0, 0};
  return call("add_kernel", args, codes, 5);
}

static int scale(void* out, void* in, double factor) {
  // Tags repeat, as those of convolutions do.
  Value args[] = {handle(out), handle(in), {.v_float64 = factor}, integer(4), integer(2),
                  integer(2),  integer(2)};
  int codes[] = {3, 3, 2, 0, 0, 0, 0};
  return call("scale_kernel", args, codes, 7);
}

#define FUNCTION(name)                                                                  \
  int name(Value* args, int* codes, int n, Value* ret, int* ret_code, void* resource) { \
    (void)codes, (void)n, (void)ret, (void)ret_code, (void)resource;

FUNCTION(fused_add)
if (set_device(tensor(args, 2)) != 0) return -1;
return add(tensor(args, 2)->data, tensor(args, 0)->data, tensor(args, 1)->data, 2);
}

// x + 3 x, the latter in workspace.
FUNCTION(fused_four_times)
DLTensor* out = tensor(args, 1);
if (set_device(out) != 0) return -1;
void* thrice =
    __TVMBackendAllocWorkspace(out->device.device_type, out->device.device_id, 16, 2, 32);
if (thrice == 0 || (uintptr_t)thrice % 64 != 0) return -1;
if (scale(thrice, tensor(args, 0)->data, 3) != 0) return -1;
if (add(out->data, tensor(args, 0)->data, thrice, 1) != 0) return -1;
return __TVMBackendFreeWorkspace(out->device.device_type, out->device.device_id, thrice);
}

// On the CPU.
FUNCTION(fused_negate)
if (tensor(args, 0)->device.device_type != 1 || tensor(args, 1)->device.device_type != 1) return -1;
for (int i = 0; i < 4; ++i) {
  ((float*)tensor(args, 1)->data)[i] = -((float*)tensor(args, 0)->data)[i];
}
return 0;
}

FUNCTION(fused_group_too_large)
if (set_device(tensor(args, 1)) != 0) return -1;
Value values[] = {args[0], args[0], args[0], integer(1), integer(1 << 24)};
for (int i = 0; i < 3; ++i) values[i] = handle(tensor(args, i == 2)->data);
int types[] = {3, 3, 3, 0, 0};
return call("add_kernel", values, types, 5);
}

FUNCTION(fused_argument_missing)
Value values[] = {handle(tensor(args, 1)->data), handle(tensor(args, 0)->data), integer(4),
                  integer(1)};
int types[] = {3, 3, 0, 0};
return call("add_kernel", values, types, 4);
}

FUNCTION(fused_number_too_large)
Value values[] = {handle(tensor(args, 1)->data),
                  handle(tensor(args, 0)->data),
                  {.v_float64 = 1},
                  integer(INT64_C(1) << 40),
                  integer(2),
                  integer(2),
                  integer(2)};
int types[] = {3, 3, 2, 0, 0, 0, 0};
return call("scale_kernel", values, types, 7);
}

FUNCTION(fused_unknown_kernel)
return call("no_kernel", args, codes, 2);
}

#ifdef BROKEN
#define STATEMENT "  out[get_global_id(0)] = undeclared;\n"
#else
#define STATEMENT "  out[get_global_id(0)] = a[get_global_id(0)] + b[get_global_id(0)];\n"
#endif

#if defined(FOR_CUDA)
#define KEY "cuda"
#define FORMAT "ptx"
// What these do is said by the tests, to the driver's stand-in.
#define SOURCE                                                                              \
  ".version 8.4\n.target sm_80\n.address_size 64\n"                                         \
  ".visible .entry add_kernel(\n.param .u64 out,\n.param .u64 a,\n.param .u64 b)\n{ret;}\n" \
  ".visible .entry scale_kernel(\n.param .u64 out,\n.param .u64 in,\n.param .f32 factor,\n" \
  ".param .u32 count)\n{ret;}\n"
#elif defined(FOR_VULKAN)
#define KEY "vulkan"
#define FORMAT "vulkan"
static const uint32_t add_words[] = {
#include "add_kernel.inc"
};
#else
#define KEY "opencl"
#define FORMAT "cl"
#define SOURCE                                                                              \
  "// Function: add_kernel\n"                                                               \
  "__kernel void add_kernel(__global float* restrict out, __global float* restrict a,\n"    \
  "                         __global float* restrict b) {\n" STATEMENT "}\n"                \
  "// Function: scale_kernel\n"                                                             \
  "__kernel void scale_kernel(__global float* restrict out, __global float* restrict in,\n" \
  "                           float factor, int count) {\n"                                 \
  "  int i = get_group_id(0) * get_local_size(0) + get_local_id(0);\n"                      \
  "  if (i < count) out[i] = in[i] * factor;\n"                                             \
  "}\n"
#endif

// dmlc's stream format: a text is its length and its bytes, a list its length and its items.
#define TEXT(name, text)           \
  struct __attribute__((packed)) { \
    uint64_t bytes;                \
    char data[sizeof(text) - 1];   \
  } name
#define IS(text) {sizeof(text) - 1, text}

struct __attribute__((packed)) Type {
  uint8_t code, bits;
  uint16_t lanes;
};

struct __attribute__((packed)) Content {
  uint64_t modules;
  TEXT(lib, "_lib");
  TEXT(key, KEY);
  TEXT(format, FORMAT);
  uint64_t kernels;
  TEXT(add_name, "add_kernel");
  uint64_t add_no_name, add_num_types;
  struct Type add_types[3];
  uint64_t add_num_tags;
  TEXT(add_tag_0, "blockIdx.x");
  TEXT(add_tag_1, "threadIdx.x");
#ifndef FOR_VULKAN
  TEXT(scale_name, "scale_kernel");
  uint64_t scale_no_name, scale_num_types;
  struct Type scale_types[4];
  uint64_t scale_num_tags;
  TEXT(scale_tag_0, "blockIdx.x");
  TEXT(scale_tag_1, "threadIdx.x");
  TEXT(scale_tag_2, "threadIdx.x");
#else
  uint64_t shaders;
  TEXT(shader_name, "add_kernel");
  uint32_t flags;
  uint64_t num_words;
  uint32_t words[sizeof(add_words) / 4];
#endif
#ifdef SOURCE
  TEXT(source, SOURCE);
#endif
  TEXT(tree, "_import_tree");
  uint64_t num_rows, rows[3], num_children, children[1];
};

#define HANDLE {3, 64, 1}

__attribute__((visibility("default"))) const struct __attribute__((packed)) {
  uint64_t bytes;
  struct Content content;
} __tvm_dev_mblob = {
    sizeof(struct Content),
    {
        3,
        IS("_lib"),
        IS(KEY),
        IS(FORMAT),
#ifdef FOR_VULKAN
        1,
#else
        2,
#endif
        IS("add_kernel"),
        0,
        3,
        {HANDLE, HANDLE, HANDLE},
        2,
        IS("blockIdx.x"),
        IS("threadIdx.x"),
#ifndef FOR_VULKAN
        IS("scale_kernel"),
        0,
        4,
        {HANDLE, HANDLE, {2, 32, 1}, {0, 32, 1}},
        3,
        IS("blockIdx.x"),
        IS("threadIdx.x"),
        IS("threadIdx.x"),
        IS(SOURCE),
#else
        1,
        IS("add_kernel"),
        0,
        sizeof(add_words) / 4,
        {
#include "add_kernel.inc"
        },
#endif
        IS("_import_tree"),
        3,
        {0, 1, 1},
        1,
        {1},
    },
};
