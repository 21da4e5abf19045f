// From a network's outputs to what they say of the picture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <run_model/preprocessing.h>
#include <run_model/task.h>
#include <run_model/task_result.h>
#include <run_model/tensor.h>

namespace run_model {

struct NetworkOutput {
  std::string name;   // as metadata.json has it
  std::string alias;  // as the executor has it: "output_0"; either may be empty
  Tensor tensor;
  // Of integers: value = scale * (stored - zero_point).
  double scale = 1.0;
  std::int64_t zero_point = 0;
};

// Applies `task`; the result is of the task's kind. `picture` is what preprocess() has reported.
// `classes` limits how many a classification lists. Nothing but the arguments counts, and the same
// arguments give the same result. Throws Error(kMismatch) where the outputs are not of the task's
// form, Error(kModel) where they hold NaN, infinity, boxes with negative sides, or scores beyond
// 0 to 1.
TaskResult postprocess(const Task& task, std::span<const NetworkOutput> outputs,
                       const PreprocessReport& picture, std::size_t classes = 5);

// The region of the picture to which `rule` leads from a detection; preprocess() takes it. Throws
// Error(kMismatch) where the detection lacks a keypoint that the rule names.
PictureRegion region_of(const Detection& detection, const RegionRule& rule);

// A part of a picture that a network is to see in place of the whole.
struct SeenRegion {
  PictureRegion region;
  std::optional<Detection> detection;  // what a detector found there
};

// Where the detections among `found`, in their order, lead a network that has `tasks`: by the rule
// of the first task that has one, else to the boxes. A region beyond the picture of width x height,
// which shows nothing, is left out. Throws as region_of() does.
std::vector<SeenRegion> regions_of(std::span<const TaskResult> found, std::span<const Task> tasks,
                                   int width, int height);

}  // namespace run_model
