#include "run_model/check_zoo/result.h"

namespace run_model {

std::string_view case_status_name(CaseStatus status) {
  switch (status) {
    case CaseStatus::kPassed:
      return "passed";
    case CaseStatus::kFailed:
      return "failed";
    case CaseStatus::kSkipped:
      return "skipped";
  }
  return "unknown";
}

CaseCounts count_cases(const JobResult& job) {
  CaseCounts counts;
  for (const CaseResult& result : job.cases) {
    switch (result.status) {
      case CaseStatus::kPassed:
        ++counts.passed;
        break;
      case CaseStatus::kFailed:
        ++counts.failed;
        break;
      case CaseStatus::kSkipped:
        ++counts.skipped;
        break;
    }
  }
  return counts;
}

CaseCounts count_cases(const std::vector<JobResult>& jobs) {
  CaseCounts sum;
  for (const JobResult& job : jobs) {
    const CaseCounts counts = count_cases(job);
    sum.passed += counts.passed;
    sum.failed += counts.failed;
    sum.skipped += counts.skipped;
  }
  return sum;
}

}  // namespace run_model
