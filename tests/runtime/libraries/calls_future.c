/* Needs a function of a library that the tests put a stand-in for. */
#include "packed.h"

int future_function(void);

PACKED(fused_add) { return future_function(); }
