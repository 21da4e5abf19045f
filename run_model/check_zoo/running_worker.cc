#include "run_model/check_zoo/running_worker.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <run_model/error.h>
#include "base/text.h"
#include "run_model/check_zoo/worker.h"
#include "run_model/shared/formatted.h"

namespace run_model {
namespace {

// Measured for 64-bit Arm under qemu-user, on a machine that was busy with other work: 3 s for a
// picture with ShuffleNet to 190 s with ResNet-18, which take this CPU 0.02 to 0.2 s. OpenCL on the
// CPU compiles every kernel before the first picture: more than 120 s for SqueezeNet on such a
// machine, 4 s otherwise.
constexpr double kSlowTimeout = 10;
// Thirty years, which every clock can count.
constexpr double kLongestTimeout = 1e9;

std::string seconds_text(double seconds) { return formatted("%g s", seconds); }

bool is_slow(const PlannedJob& job) { return !job.command.empty() || job.on_device; }

}  // namespace

JobResult empty_result(const PlannedJob& job) {
  JobResult result;
  result.model = job.model;
  result.target = job.target;
  result.form = job.form;
  result.emulated = !job.command.empty();
  return result;
}

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

}  // namespace run_model
