// check_zoo's reports: for people, for build servers and for programs.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "run_model/check_zoo/result.h"

namespace run_model {

// The command line that repeats just one case.
using RepeatCommand = std::function<std::string(const JobResult&, const CaseResult&)>;

struct TableOptions {
  bool verbose = false;  // a row for every picture, not only for every artifact
  double seconds = 0.0;  // that the whole check took
  std::vector<std::string> targets_left_out;
};

// A row for each model, target and form; failures in detail beneath, then what was skipped and why,
// then the counts.
std::string zoo_table(const std::vector<JobResult>& jobs, const TableOptions& options,
                      const RepeatCommand& repeat);

// One failed case: what failed, the best classes side by side, the largest error, the command.
std::string case_details(const JobResult& job, const CaseResult& result,
                         const RepeatCommand& repeat);

std::string zoo_junit(const std::vector<JobResult>& jobs, double seconds,
                      const RepeatCommand& repeat);

// `text` for an attribute or element: markup is escaped, and what XML 1.0 cannot hold (control
// characters, bytes that are no UTF-8) becomes "?".
std::string xml_escaped(std::string_view text);

std::string zoo_report_json(const std::vector<JobResult>& jobs, const TableOptions& options,
                            const RepeatCommand& repeat);

}  // namespace run_model
