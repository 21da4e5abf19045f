#include "run_model/check_zoo/pool.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>

#include <run_model/error.h>
#include "run_model/check_zoo/running_worker.h"

namespace run_model {
namespace {

using Clock = RunningWorker::Clock;

// The results of a job that is not run.
JobResult skipped(const PlannedJob& job) {
  JobResult result = empty_result(job);
  std::vector<std::string> pictures = job.pictures;
  if (pictures.empty()) pictures.emplace_back();
  for (const std::string& picture : pictures) {
    CaseResult one;
    one.picture = picture;
    one.status = CaseStatus::kSkipped;
    one.skipped_because = job.skipped_because;
    result.cases.push_back(one);
  }
  return result;
}

class Pool {
 public:
  Pool(const std::vector<PlannedJob>& jobs, const CheckSettings& settings,
       const OnProgress& on_progress)
      : jobs_(jobs), settings_(settings), on_progress_(on_progress) {
    results_.resize(jobs.size());
    for (const PlannedJob& job : jobs_) {
      progress_.all += std::max<std::size_t>(1, job.pictures.size());
    }
  }

  std::vector<JobResult> run() {
    while (true) {
      start_more();
      if (running_.empty()) return std::move(results_);
      wait_for_news();
      finish_ended();
      report();
    }
  }

 private:
  struct Running {
    std::size_t index;
    std::unique_ptr<RunningWorker> worker;
  };

  void start_more() {
    while (next_ < jobs_.size() && running_.size() < static_cast<std::size_t>(settings_.jobs)) {
      const std::size_t index = next_++;
      const PlannedJob& job = jobs_[index];
      if (!job.skipped_because.empty()) {
        keep(index, skipped(job));
        continue;
      }
      running_.push_back({index, std::make_unique<RunningWorker>(job, settings_)});
    }
  }

  void keep(std::size_t index, JobResult result) {
    finished_ += count_cases(result);
    results_[index] = std::move(result);
  }

  void wait_for_news() {
    std::vector<pollfd> fds;
    auto first = Clock::time_point::max();
    for (const Running& running : running_) {
      first = std::min(first, running.worker->deadline());
      // poll() skips descriptors below 0.
      fds.push_back({running.worker->process().output_fd(), POLLIN, 0});
      fds.push_back({running.worker->process().error_fd(), POLLIN, 0});
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(first - Clock::now()).count();
    const int wait = static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
    if (::poll(fds.data(), fds.size(), wait) < 0 && errno != EINTR) {
      throw Error(ErrorKind::kInternal, std::string("cannot poll: ") + std::strerror(errno));
    }
    for (std::size_t i = 0; i < running_.size(); ++i) {
      if (fds[2 * i].revents != 0) running_[i].worker->read_output();
      if (fds[2 * i + 1].revents != 0) running_[i].worker->read_error();
      running_[i].worker->check_timeout();
    }
  }

  void finish_ended() {
    for (Running& running : running_) {
      if (!running.worker->process().silent()) continue;
      keep(running.index, running.worker->finish());
      running.worker.reset();
    }
    std::erase_if(running_, [](const Running& running) { return running.worker == nullptr; });
  }

  void report() {
    CaseCounts counts = finished_;
    progress_.current.clear();
    for (const Running& running : running_) {
      const JobResult& result = running.worker->result();
      counts += count_cases(result);
      progress_.current =
          result.model + " " + result.target + " " + result.form + " " + running.worker->picture();
    }
    progress_.done = counts.all();
    progress_.failed = counts.failed;
    on_progress_(progress_);
  }

  const std::vector<PlannedJob>& jobs_;
  const CheckSettings& settings_;
  const OnProgress& on_progress_;
  std::size_t next_ = 0;
  std::vector<Running> running_;
  std::vector<JobResult> results_;
  CaseCounts finished_;
  PoolProgress progress_;
};

}  // namespace

std::vector<JobResult> run_jobs(const std::vector<PlannedJob>& jobs, const CheckSettings& settings,
                                const OnProgress& on_progress) {
  return Pool(jobs, settings, on_progress).run();
}

}  // namespace run_model
