/* Libraries that loading has to deal with, each with one property: what is compiled says the macro
   that CMakeLists.txt defines, the library's name. Larger ones have files of their own. */
#include "packed.h"

#if defined(CONSTANT_SLOT)
/* Where a variable is expected there is a constant. */
const void* const __TVMFuncCall = (void*)&__TVMFuncCall;
PACKED(fused_add) { return 0; }

#elif defined(NEW_SLOT)
/* Has a variable for a function that no release up to 0.20 knows. */
void* __TVMBackendTeleport = 0;
PACKED(fused_add) { return 0; }

#elif defined(CUDA)
/* Has code for an NVIDIA GPU, in a form that no driver takes. */
struct __attribute__((packed)) Blob {
  uint64_t bytes;
  uint64_t modules;
  uint64_t key_length;
  char key[4];
  uint64_t form_length;
  char form[2];
  uint64_t kernels;
  uint64_t code_length;
  char code[4];
};
const struct Blob __tvm_dev_mblob = {sizeof(struct Blob) - 8, 1, 4, "cuda", 2, "cu", 0, 4, "code"};
PACKED(tvmgen_default_fused_add) { return 0; }

#elif defined(EMPTY)
/* No functions: what remains of a model that only passes its inputs on. */
static const int kNothing __attribute__((used)) = 0;

#elif defined(OTHER)
/* Has nothing to do with TVM. */
int compress(int level) { return level; }

#elif defined(MISSING_FUNCTION)
/* Calls functions of a library that it is not linked with. */
void cblas_sgemm(void);
void cblas_sgemv(void);
PACKED(fused_dense) {
  cblas_sgemm();
  cblas_sgemv();
  return 0;
}

#elif defined(TVM021)
/* What TVM 0.21 makes: its loader's variables have other names. */
void* __tvm_ffi_library_ctx = 0;
void* __TVMFFIErrorSetRaisedFromCStr = 0;
int fused_add(void* self, void* args, int count, void* result) { return 0; }

#elif defined(TVM022)
/* What TVM 0.22 and later make: functions carry a prefix. */
void* __tvm_ffi_library_ctx = 0;
int __tvm_ffi_fused_add(void* self, void* args, int count, void* result) { return 0; }

#elif defined(TVM_ITSELF)
/* Passes for TVM's own runtime. */
int TVMModLoadFromFile(const char* name) { return 0; }
int TVMBackendParallelLaunch(void) { return 0; }

#elif defined(FUTURE)
/* Stands in for a C library of a version to come, a library that is not installed, TVM's runtime.
 */
int future_function(void) { return 0; }

#elif defined(CALLS_FUTURE)
/* Needs a function of what stands in. */
int future_function(void);
PACKED(fused_add) { return future_function(); }

#elif defined(VERSION)
/* One of two files that take each other's place under the same name. */
void* __tvm_module_ctx = 0;
PACKED(fused_version) {
  result[0].v_int64 = VERSION;
  result_code[0] = 0;
  return 0;
}

#else
#error "which library?"
#endif
