// Runs the worker processes of a plan, several at a time, and gathers their results.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "run_model/check_zoo/plan.h"
#include "run_model/check_zoo/result.h"
#include "run_model/check_zoo/settings.h"

namespace run_model {

// Called whenever something has been decided, for showing progress.
struct PoolProgress {
  std::size_t done = 0;  // cases
  std::size_t all = 0;
  std::size_t failed = 0;
  std::string current;  // "squeezenet1_1 native triple chelsea"
};
using OnProgress = std::function<void(const PoolProgress&)>;

// One result for each job of the plan, in its order, with one case for each picture (a job without
// pictures has one without a name). Whatever a worker does, every picture gets its result: a crash,
// a picture that takes longer than the timeout and a worker that says nonsense are failures, and
// the pictures that were not reached fail too, for nothing has shown them right. Throws
// Error(kInternal) when the system has no more processes.
std::vector<JobResult> run_jobs(const std::vector<PlannedJob>& jobs, const CheckSettings& settings,
                                const OnProgress& on_progress);

}  // namespace run_model
