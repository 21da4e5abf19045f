#include "run_model/check_zoo/result.h"

#include "base/json.h"

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
  for (const JobResult& job : jobs) sum += count_cases(job);
  return sum;
}

namespace {

constexpr std::int64_t kMaxIndex = std::int64_t{1} << 40;

Json ranked_json(const std::vector<RankedScore>& ranked) {
  Json list = Json::array();
  for (const RankedScore& item : ranked) {
    list.add(Json::object(
        {{"index", item.index}, {"label", text_or_null(item.label)}, {"score", item.score}}));
  }
  return list;
}

Json scores_json(const CaseScores& scores) {
  return Json::object({{"kind", score_kind_name(scores.kind)},
                       {"top1_equal", scores.top1_equal},
                       {"top5_equal", scores.top5_equal},
                       {"largest_error", scores.largest_error},
                       {"largest_error_index", scores.largest_error_index},
                       {"tolerance", Json::object({{"atol", scores.tolerance.atol},
                                                   {"rtol", scores.tolerance.rtol},
                                                   {"order", scores.tolerance.order}})},
                       {"tolerance_used", scores.tolerance_used},
                       {"expected_top", ranked_json(scores.expected_top)},
                       {"actual_top", ranked_json(scores.actual_top)}});
}

std::size_t parse_index(const JsonField& field) {
  return static_cast<std::size_t>(field.integer(0, kMaxIndex));
}

std::vector<RankedScore> parse_ranked(const JsonField& field) {
  std::vector<RankedScore> ranked;
  for (std::size_t i = 0; i < field.array_size(); ++i) {
    const JsonField item = field.at(i);
    ranked.push_back({parse_index(item.member("index")), text_or_empty(item, "label"),
                      item.member("score").number()});
  }
  return ranked;
}

CaseScores parse_scores(const JsonField& field) {
  CaseScores scores;
  scores.kind = parsed_field(field.member("kind"), parse_score_kind);
  scores.top1_equal = field.member("top1_equal").boolean();
  scores.top5_equal = field.member("top5_equal").boolean();
  scores.largest_error = field.member("largest_error").number();
  scores.largest_error_index = parse_index(field.member("largest_error_index"));
  const JsonField tolerance = field.member("tolerance");
  scores.tolerance = {tolerance.member("atol").number(), tolerance.member("rtol").number(),
                      tolerance.member("order").number()};
  scores.tolerance_used = field.member("tolerance_used").number();
  scores.expected_top = parse_ranked(field.member("expected_top"));
  scores.actual_top = parse_ranked(field.member("actual_top"));
  return scores;
}

Json measures_json(const std::vector<ResultMeasure>& measures) {
  Json list = Json::array();
  for (const ResultMeasure& measure : measures) {
    list.add(Json::object({{"measure", measure.name},
                           {"worst", measure.worst},
                           {"allowed", measure.allowed},
                           {"tolerance_used", measure.tolerance_used}}));
  }
  return list;
}

std::vector<ResultMeasure> parse_measures(const JsonField& field) {
  std::vector<ResultMeasure> measures;
  for (std::size_t i = 0; i < field.array_size(); ++i) {
    const JsonField item = field.at(i);
    measures.push_back({item.member("measure").string(), item.member("worst").number(),
                        item.member("allowed").number(), item.member("tolerance_used").number()});
  }
  return measures;
}

}  // namespace

Json case_json(const CaseResult& result) {
  Json json =
      Json::object({{"picture", result.picture}, {"status", case_status_name(result.status)}});
  if (!result.skipped_because.empty()) json.put("skipped_because", result.skipped_because);
  Json failures = Json::array();
  for (const CaseFailure& failure : result.failures) {
    failures.add(Json::object({{"rule", failure.rule}, {"message", failure.message}}));
  }
  json.put("failures", failures);
  json.put("input_compared", result.input_compared);
  json.put("scores", result.compared ? scores_json(result.scores) : Json());
  if (result.results_compared) json.put("results", measures_json(result.measures));
  json.put("timing", Json::object({{"preprocess", result.preprocess_ms}, {"run", result.run_ms}}));
  if (!result.location.empty()) json.put("location", result.location);
  return json;
}

CaseResult parse_case(const JsonField& field) {
  CaseResult result;
  result.picture = field.member("picture").string();
  const std::string status = one_of(field.member("status"), {"passed", "failed", "skipped"});
  result.status = status == "passed"   ? CaseStatus::kPassed
                  : status == "failed" ? CaseStatus::kFailed
                                       : CaseStatus::kSkipped;
  result.skipped_because = text_or_empty(field, "skipped_because");
  const JsonField failures = field.member("failures");
  for (std::size_t i = 0; i < failures.array_size(); ++i) {
    result.failures.push_back(
        {failures.at(i).member("rule").string(), failures.at(i).member("message").string()});
  }
  if (result.failures.empty() == (result.status == CaseStatus::kFailed)) {
    failures.fail("do not agree with the status " + status);
  }
  result.input_compared = field.member("input_compared").boolean();
  result.compared = !field.member("scores").is_null();
  if (result.compared) result.scores = parse_scores(field.member("scores"));
  if (const auto results = find_member(field, "results")) {
    result.results_compared = true;
    result.measures = parse_measures(*results);
  }
  result.preprocess_ms = field.member("timing").member("preprocess").number();
  result.run_ms = field.member("timing").member("run").number();
  if (const auto location = find_member(field, "location")) {
    result.location = strings_field(*location);
  }
  return result;
}

}  // namespace run_model
