/* See c_runtime_api.h. */
#pragma once

#include "c_runtime_api.h"

#ifdef __cplusplus
extern "C" {
#endif

void* TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t bytes, int dtype_code,
                               int dtype_bits);
int TVMBackendFreeWorkspace(int device_type, int device_id, void* pointer);

#ifdef __cplusplus
}
#endif
