// One line on a terminal that says how far the check is.
#pragma once

#include "run_model/check_zoo/pool.h"

namespace run_model {

// Writes to standard error, and only where that is a terminal. The line is gone at the end.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const PoolProgress& progress);

 private:
  bool terminal_ = false;
  std::string shown_;
};

}  // namespace run_model
