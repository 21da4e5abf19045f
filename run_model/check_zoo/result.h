// What checking the zoo gives: one result for each picture of each artifact, and its way from a
// worker process to check_zoo as JSON.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <run_model/score_comparison.h>
#include "base/json.h"
#include "run_model/shared/json.h"

namespace run_model {

enum class CaseStatus { kPassed, kFailed, kSkipped };

// "passed", "failed" or "skipped".
std::string_view case_status_name(CaseStatus status);

struct CaseFailure {
  std::string rule;     // a rule's name (score_rule_name) or "input", "artifact", "crash" …
  std::string message;  // one sentence
};

struct RankedScore {
  std::size_t index = 0;
  std::string label;  // empty where it is not known
  double score = 0.0;
};

// How the network's scores compare with the reference's; there only where the network ran.
struct CaseScores {
  ScoreKind kind = ScoreKind::kLogits;
  ScoreTolerance tolerance;
  bool top1_equal = false;
  bool top5_equal = false;  // as a set
  double largest_error = 0.0;
  std::size_t largest_error_index = 0;
  double tolerance_used = 0.0;  // 1 is the limit
  std::vector<RankedScore> expected_top;
  std::vector<RankedScore> actual_top;
};

// Of boxes, masks and landmarks: the worst of one measure ("iou", "score", "pixels", "agreement").
struct ResultMeasure {
  std::string name;
  double worst = 0.0;
  double allowed = 0.0;
  double tolerance_used = 0.0;  // 1 is the limit
};

struct CaseResult {
  std::string picture;
  CaseStatus status = CaseStatus::kPassed;
  std::string skipped_because;
  std::vector<CaseFailure> failures;
  bool input_compared = false;  // bit for bit
  bool compared = false;        // whether `scores` holds something
  CaseScores scores;
  bool results_compared = false;  // of a network with tasks: instead of the scores
  std::vector<ResultMeasure> measures;
  double preprocess_ms = 0.0;
  double run_ms = 0.0;
  std::vector<std::string> location;  // of --locate: lines of text

  void fail(const std::string& rule, const std::string& message) {
    status = CaseStatus::kFailed;
    failures.push_back({rule, message});
  }
};

// One form of one model's artifact for one target.
struct JobResult {
  std::string model;
  std::string target;
  std::string form;
  std::string library;   // path; empty where nothing was loaded
  std::string checksum;  // XXH3 of the library, 16 hexadecimal digits
  bool emulated = false;
  double load_ms = 0.0;
  double seconds = 0.0;  // of the whole worker process
  std::vector<CaseResult> cases;
};

struct CaseCounts {
  std::size_t passed = 0;
  std::size_t failed = 0;
  std::size_t skipped = 0;

  std::size_t all() const { return passed + failed + skipped; }

  CaseCounts& operator+=(const CaseCounts& others) {
    passed += others.passed;
    failed += others.failed;
    skipped += others.skipped;
    return *this;
  }
};

CaseCounts count_cases(const JobResult& job);
CaseCounts count_cases(const std::vector<JobResult>& jobs);

Json case_json(const CaseResult& result);

// The inverse. Throws Error(kFormat): a worker that crashes may have written anything.
CaseResult parse_case(const JsonField& field);

}  // namespace run_model
