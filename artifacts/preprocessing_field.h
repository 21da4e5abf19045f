// How a picture becomes the input, as metadata.json and golden cases say it.
#pragma once

#include <run_model/preprocessing.h>
#include "base/json.h"

namespace run_model {

// The "preprocessing" object. Nothing may be missing or unknown but `pad`, because a guess here
// gives wrong answers. Throws Error(kFormat).
Preprocessing preprocessing_field(const JsonField& field);

}  // namespace run_model
