/* Where a variable is expected there is a constant. */
#include "packed.h"

const void* const __TVMFuncCall = (void*)&__TVMFuncCall;

PACKED(fused_add) { return 0; }
