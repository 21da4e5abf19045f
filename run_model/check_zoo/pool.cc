#include "run_model/check_zoo/pool.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>

#include <run_model/error.h>
#include "base/json.h"
#include "base/text.h"
#include "run_model/check_zoo/process.h"
#include "run_model/check_zoo/result.h"
#include "run_model/check_zoo/worker.h"
#include "run_model/shared/formatted.h"
#include "run_model/shared/stopwatch.h"

namespace run_model {
namespace {

using Clock = std::chrono::steady_clock;

// Measured for 64-bit Arm under qemu-user, on a machine that was busy with other work: 3 s for a
// picture with ShuffleNet to 190 s with ResNet-18, which take this CPU 0.02 to 0.2 s. OpenCL on the
// CPU compiles every kernel before the first picture: more than 120 s for SqueezeNet on such a
// machine, 4 s otherwise.
constexpr double kSlowTimeout = 10;
// Thirty years, which every clock can count.
constexpr double kLongestTimeout = 1e9;

std::string seconds_text(double seconds) { return formatted("%g s", seconds); }

// A result for the job, without any case yet.
JobResult empty_result(const PlannedJob& job) {
  JobResult result;
  result.model = job.model;
  result.target = job.target;
  result.form = job.form;
  result.emulated = !job.command.empty();
  return result;
}

// A worker process as check_zoo sees it: what it has said so far, and what becomes of it.
class RunningWorker {
 public:
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

bool is_slow(const PlannedJob& job) { return !job.command.empty() || job.on_device; }

RunningWorker::RunningWorker(const PlannedJob& job, const CheckSettings& settings)
    : job_(job),
      result_(empty_result(job)),
      timeout_(std::min(settings.timeout * (is_slow(job) ? kSlowTimeout : 1), kLongestTimeout)) {
  const WorkerTask task{job.model, job.target, job.form, job.pictures};
  std::vector<std::string> command = job.command;
  if (!command.empty()) {
    const std::vector<std::string> arguments = worker_arguments(settings, task);
    command.insert(command.end(), arguments.begin(), arguments.end());
  }
  process_ = std::make_unique<ChildProcess>(
      command, [&settings, task] { return run_worker(settings, task); });
  restart_timeout();
}

void RunningWorker::read_output() {
  for (const std::string& line : process_->read_output()) {
    if (!nonsense_.empty()) return;
    try {
      understand(line);
    } catch (const Error& error) {
      nonsense_ = error.what();
      process_->kill();
    }
  }
}

void RunningWorker::check_timeout() {
  if (timed_out_ || Clock::now() < deadline_) return;
  timed_out_ = true;
  process_->kill();
}

JobResult RunningWorker::finish() {
  const std::string end = process_->wait();
  std::string rule = "crash";
  std::string problem;
  if (timed_out_) {
    rule = "timeout";
    problem =
        "took more than " + seconds_text(timeout_) + " and was stopped; --timeout allows more";
  } else if (!nonsense_.empty()) {
    problem = "gave no valid result: " + nonsense_;
  } else if (!failed_.empty()) {
    rule = "load";
    problem = failed_;
  } else if (!end.empty()) {
    problem = "the process " + end + error_text();
  } else if (!ended_) {
    problem = "the process ended before it was done" + error_text();
  }
  if (!problem.empty()) blame(rule, problem);
  fill_up(problem.empty() ? "the process gave no result" : problem);
  result_.seconds = stopwatch_.lap() / 1000;
  return std::move(result_);
}

void RunningWorker::restart_timeout() {
  deadline_ = Clock::now() +
              std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(timeout_));
}

void RunningWorker::understand(const std::string& line) {
  const std::string source = "a line of the worker";
  const JsonDocument document(line, source);
  const JsonField event = document.root();
  const std::string& kind = event.member("event").string();
  restart_timeout();
  if (kind == "loaded") {
    result_.library = event.member("library").string();
    result_.checksum = event.member("checksum").string();
    result_.load_ms = event.member("load").number();
  } else if (kind == "start") {
    started_ = event.member("picture").string();
  } else if (kind == "result") {
    understand_result(event);
  } else if (kind == "location") {
    understand_location(event);
  } else if (kind == "failed") {
    failed_ = event.member("message").string();
  } else if (kind == "end") {
    ended_ = true;
  } else {
    event.fail("has the unknown event " + in_quotes(kind));
  }
}

void RunningWorker::understand_result(const JsonField& event) {
  const CaseResult one = parse_case(event.member("case"));
  if (one.picture != started_ || find(one.picture) != nullptr) {
    event.fail("is a result that nobody asked for");
  }
  result_.cases.push_back(one);
}

void RunningWorker::understand_location(const JsonField& event) {
  CaseResult* one = find(event.member("picture").string());
  if (one == nullptr) event.fail("is of a picture without a result");
  const JsonField lines = event.member("lines");
  for (std::size_t i = 0; i < lines.array_size(); ++i) {
    one->location.push_back(lines.at(i).string());
  }
}

CaseResult* RunningWorker::find(const std::string& picture) {
  for (CaseResult& one : result_.cases) {
    if (one.picture == picture) return &one;
  }
  return nullptr;
}

std::string RunningWorker::error_text() const {
  const std::string& tail = process_->error_tail();
  return tail.empty() ? "" : ", after it had said " + in_quotes(tail, 1000);
}

// The problem belongs to the picture that was worked on; to all of them where none was.
void RunningWorker::blame(const std::string& rule, const std::string& problem) {
  if (started_.empty()) {
    for (const std::string& picture : job_.pictures) {
      CaseResult one;
      one.picture = picture;
      one.fail(rule, problem);
      result_.cases.push_back(one);
    }
    return;
  }
  if (CaseResult* one = find(started_)) {
    one->fail(rule, problem);
    return;
  }
  CaseResult one;
  one.picture = started_;
  one.fail(rule, problem);
  result_.cases.push_back(one);
}

void RunningWorker::fill_up(const std::string& problem) {
  std::vector<CaseResult> in_order;
  for (const std::string& picture : job_.pictures) {
    if (const CaseResult* one = find(picture)) {
      in_order.push_back(*one);
      continue;
    }
    CaseResult missing;
    missing.picture = picture;
    missing.fail("not-run", "not reached: " + (started_.empty() ? "" : started_ + ": ") + problem);
    in_order.push_back(missing);
  }
  result_.cases = std::move(in_order);
}

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
    const CaseCounts counts = count_cases(result);
    finished_.passed += counts.passed;
    finished_.failed += counts.failed;
    finished_.skipped += counts.skipped;
    results_[index] = std::move(result);
  }

  void wait_for_news() {
    std::vector<pollfd> fds;
    Clock::time_point first = Clock::time_point::max();
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
      const CaseCounts so_far = count_cases(result);
      counts.passed += so_far.passed;
      counts.failed += so_far.failed;
      counts.skipped += so_far.skipped;
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
