// Checks one artifact's pictures, in a process of its own: what crashes there is one failed case.
//
// The worker prints one JSON object a line:
//   {"event": "loaded", "library": "…/model.so", "checksum": "…", "load": 12.5}
//   {"event": "start", "picture": "chelsea"}             before a picture is touched
//   {"event": "result", "case": {…}}                     as case_json() says
//   {"event": "location", "picture": "chelsea", "lines": ["…"]}   with --locate
//   {"event": "failed", "message": "…"}                  nothing could be checked
//   {"event": "end"}
#pragma once

#include <string>
#include <vector>

#include "run_model/check_zoo/settings.h"

namespace run_model {

struct WorkerTask {
  std::string model;
  std::string target;
  std::string form;
  std::vector<std::string> pictures;
};

// The arguments that make check_zoo do the task as a worker.
std::vector<std::string> worker_arguments(const CheckSettings& settings, const WorkerTask& task);

// The task of a process that was started with them. Throws Error(kUsage).
WorkerTask worker_task(const CheckSettings& settings);

// Does the task and returns the process's exit code: 0 also where cases fail.
int run_worker(const CheckSettings& settings, const WorkerTask& task);

}  // namespace run_model
