/* Has a variable for a function that no release up to 0.20 knows. */
#include "packed.h"

void* __TVMBackendTeleport = 0;

PACKED(fused_add) { return 0; }
