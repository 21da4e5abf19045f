// The members of a task of the kind detection.
#pragma once

#include <run_model/task.h>
#include "base/json.h"

namespace run_model {

// The output that a member names, by a string or a number.
OutputChoice output_field(const JsonField& field);

// A number from 0 to 1.
double share_field(const JsonField& field);

// Whether "layout" is NHWC.
bool channels_last_field(const JsonField& task);

// The "anchors" of the form ssd (anchor_fields.cc). Throws Error(kFormat).
AnchorSource anchors_field(const JsonField& field);

// "region" of a task (region_fields.cc). Throws Error(kFormat).
RegionRule region_field(const JsonField& field);

// Throws Error(kFormat).
DetectionTask detection_field(const JsonField& task);

}  // namespace run_model
