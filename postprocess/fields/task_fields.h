// The members of tasks within JSON documents.
#pragma once

#include <vector>

#include <run_model/task.h>
#include "base/json.h"

namespace run_model {

// A task or a list of tasks. Throws Error(kFormat).
std::vector<Task> tasks_field(const JsonField& field);

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
