// check_zoo: checks compiled networks against golden cases. `check_zoo --help` says how.
#include <cstdio>
#include <string>
#include <vector>

#include <run_model/error.h>
#include "artifacts/references/tolerance_table.h"
#include "artifacts/targets.h"
#include "base/text.h"
#include "base/write_file.h"
#include "run_model/check_zoo/flags.h"
#include "run_model/check_zoo/plan.h"
#include "run_model/check_zoo/pool.h"
#include "run_model/check_zoo/reports.h"
#include "run_model/check_zoo/settings.h"
#include "run_model/check_zoo/worker.h"
#include "run_model/shared/arguments.h"
#include "run_model/shared/program.h"
#include "run_model/shared/progress_line.h"
#include "run_model/shared/stopwatch.h"

namespace run_model {
namespace {

// CTest's SKIP_RETURN_CODE, as automake has it.
constexpr int kSkippedExitCode = 77;

// For a POSIX shell.
std::string shell_word(const std::string& word) {
  constexpr char kPlain[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,/:@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == word.npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

RepeatCommand repeat_command(const char* program_name, const CheckSettings& settings) {
  std::string start = shell_word(program_name);
  for (const std::string& flag : settings.given) start += " " + shell_word(flag);
  return [start](const JobResult& job, const CaseResult& result) {
    return start + " " + shell_word("--models=" + job.model) + " " +
           shell_word("--target=" + job.target) + " " + shell_word("--forms=" + job.form) + " " +
           shell_word("--pictures=" + result.picture);
  };
}

// The first reason that something was left out, as the reason that nothing was checked.
std::string why_nothing(const Plan& plan, const std::vector<JobResult>& results,
                        const CheckSettings& settings) {
  for (const JobResult& job : results) {
    for (const CaseResult& result : job.cases) {
      return "nothing was checked: " + job.model + " " + job.target + " " + job.form + ": " +
             result.skipped_because;
    }
  }
  if (settings.shard.count > 1) return "nothing was checked: this shard has no artifact";
  if (!plan.targets_left_out.empty()) {
    return "nothing was checked: no model in " + path_in_quotes(settings.artifacts) +
           " is compiled for any target";
  }
  return "nothing was checked: there are no golden cases in " +
         comma_list(settings.golden, path_in_quotes);
}

// "[3/12] 1 failed, squeezenet1_1 native triple chelsea"
std::string progress_text(const PoolProgress& progress) {
  std::string text =
      "[" + std::to_string(progress.done) + "/" + std::to_string(progress.all) + "] ";
  if (progress.failed > 0) text += std::to_string(progress.failed) + " failed, ";
  return text + progress.current;
}

int check(const char* program_name, const CheckSettings& settings) {
  Stopwatch stopwatch;
  // Every worker reads them again; a mistake in them is better told once.
  read_tolerances(settings.tolerances);
  const std::vector<ListedTarget> targets =
      settings.targets_file.empty() ? built_in_targets() : read_target_list(settings.targets_file);
  const Plan plan = plan_checks(settings, targets, CheckHost::current());
  std::vector<JobResult> results;
  {
    ProgressLine line;
    results = run_jobs(plan.jobs, settings, [&](const PoolProgress& progress) {
      if (line.is_due()) line.show(progress_text(progress));
    });
  }
  const TableOptions options{settings.verbose, stopwatch.lap() / 1000, plan.targets_left_out};
  const RepeatCommand repeat = repeat_command(program_name, settings);
  if (!settings.junit.empty()) {
    write_text_file(settings.junit, zoo_junit(results, options.seconds, repeat));
  }
  const CaseCounts counts = count_cases(results);
  if (counts.passed + counts.failed == 0) {
    const std::string why = why_nothing(plan, results, settings);
    if (!settings.allow_skip) {
      throw Error(ErrorKind::kFile, why, "--allow-skip makes that exit code 77");
    }
    std::fprintf(stderr, "check_zoo: %s\n", why.c_str());
  }
  write_standard_output(settings.json ? zoo_report_json(results, options, repeat)
                                      : zoo_table(results, options, repeat));
  if (counts.failed > 0) return exit_code(ErrorKind::kModel);
  return counts.passed == 0 ? kSkippedExitCode : 0;
}

int run_check_zoo(const char* program_name, std::span<const std::string> args) {
  return run_reporting_failures("check_zoo", asks_for_json(args), [&] {
    prepare_logging();
    const CheckSettings settings = read_check_settings(args);
    start_logging(program_name);
    if (settings.help != HelpRequest::kNone) {
      print_help(kCheckManual, settings.help);
      return 0;
    }
    return settings.worker ? run_worker(settings, worker_task(settings))
                           : check(program_name, settings);
  });
}

}  // namespace
}  // namespace run_model

int main(int argc, char** argv) {
  run_model::let_writes_fail();
  const std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
  return run_model::run_check_zoo(argc > 0 ? argv[0] : "check_zoo", args);
}
