/* A model whose halves travel in floating-point registers: LLVM from 15 on, and this compiler.
   Built so that the conversions are calls of __extendhfsf2, __extendhfdf2, __truncsfhf2 and
   __truncdfhf2. */
#include "packed.h"

void* __tvm_module_ctx = 0;

/* args: address of a half, of a float to write; gives it as a double too. */
PACKED(fused_extend) {
  *(float*)args[1].v_handle = (float)*(_Float16*)args[0].v_handle;
  result[0].v_float64 = (double)*(_Float16*)args[0].v_handle;
  result_code[0] = 2;
  return 0;
}

/* args: address of a half to write, a double that a float can hold. */
PACKED(fused_round_float) {
  float value = (float)args[1].v_float64;
  *(_Float16*)args[0].v_handle = (_Float16)value;
  return 0;
}

/* args: address of a half to write, a double. */
PACKED(fused_round_double) {
  *(_Float16*)args[0].v_handle = (_Float16)args[1].v_float64;
  return 0;
}
