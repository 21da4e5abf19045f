// The "anchors" of a detection of the form ssd.
#pragma once

#include <run_model/task.h>
#include "base/json.h"

namespace run_model {

// Throws Error(kFormat).
AnchorSource anchors_field(const JsonField& field);

}  // namespace run_model
