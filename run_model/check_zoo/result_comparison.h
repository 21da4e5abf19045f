// Whether what a network has found in a picture is what the reference has found.
#pragma once

#include <string>
#include <vector>

#include <run_model/task_result.h>
#include "artifacts/references/tolerance_table.h"
#include "run_model/check_zoo/result.h"

namespace run_model {

struct ResultFailure {
  std::string rule;     // "detections", "mask", "landmarks", "classes", "embedding", "map", "image"
  std::string message;  // one sentence
};

struct ResultComparison {
  std::vector<ResultMeasure> measures;  // those that occur
  std::vector<ResultFailure> failures;
};

// Detections belong together by class and by how much they overlap; one that the other side lacks
// is forgiven where its score is no further from `threshold` than scores may differ. Both lists
// hold one result for each task.
ResultComparison compare_results(const std::vector<Task>& tasks,
                                 const std::vector<TaskResult>& expected,
                                 const std::vector<TaskResult>& actual,
                                 const ResultTolerance& tolerance);

}  // namespace run_model
