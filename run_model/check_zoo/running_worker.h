// A worker process as check_zoo sees it.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/json.h"
#include "run_model/check_zoo/plan.h"
#include "run_model/check_zoo/process.h"
#include "run_model/check_zoo/result.h"
#include "run_model/check_zoo/settings.h"
#include "run_model/shared/stopwatch.h"

namespace run_model {

// A result for the job, without any case yet.
JobResult empty_result(const PlannedJob& job);

// What it has said so far, and what becomes of it.
class RunningWorker {
 public:
  using Clock = std::chrono::steady_clock;

  // Starts the process. `job` and `settings` must outlive it.
  RunningWorker(const PlannedJob& job, const CheckSettings& settings);

  const ChildProcess& process() const { return *process_; }
  Clock::time_point deadline() const { return deadline_; }
  const std::string& picture() const { return started_; }
  const JobResult& result() const { return result_; }

  // To be called when the process has written something.
  void read_output();
  void read_error() { process_->read_error(); }

  // Ends the process when it has taken too long over a picture.
  void check_timeout();

  // To be called once the process is silent. Every picture has a result afterwards.
  JobResult finish();

 private:
  void restart_timeout();
  void understand(const std::string& line);
  void understand_result(const JsonField& event);
  void understand_location(const JsonField& event);
  CaseResult* find(const std::string& picture);
  std::string error_text() const;
  void blame(const std::string& rule, const std::string& problem);
  void fill_up(const std::string& problem);

  const PlannedJob& job_;
  JobResult result_;
  double timeout_;
  std::unique_ptr<ChildProcess> process_;
  Clock::time_point deadline_;
  Stopwatch stopwatch_;
  std::string started_;  // the picture that was begun last
  std::string failed_;
  std::string nonsense_;
  bool ended_ = false;
  bool timed_out_ = false;
};

}  // namespace run_model
