/* What TVM 0.22 and later make: functions carry a prefix. */
void* __tvm_ffi_library_ctx = 0;

int __tvm_ffi_fused_add(void* self, void* args, int count, void* result) { return 0; }
