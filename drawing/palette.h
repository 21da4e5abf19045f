// Colours of numbers; those of classes are class_color()'s, in draw.h.
#pragma once

#include <run_model/draw.h>

namespace run_model {

// Matplotlib's "inferno", black over red to light yellow, whose lightness grows evenly; `share`
// from 0 to 1.
Color inferno(double share);

}  // namespace run_model
