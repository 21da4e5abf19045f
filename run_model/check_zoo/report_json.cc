#include "run_model/check_zoo/report_json.h"

#include "run_model/check_zoo/case_json.h"

namespace run_model {
namespace {

Json counts_json(const CaseCounts& counts) {
  return {{"passed", counts.passed}, {"failed", counts.failed}, {"skipped", counts.skipped}};
}

Json job_json(const JobResult& job, const RepeatCommand& repeat) {
  Json json = {{"model", job.model},
               {"target", job.target},
               {"form", job.form},
               {"library", text_or_null(job.library)},
               {"library_xxh3_64", text_or_null(job.checksum)},
               {"emulated", job.emulated},
               {"counts", counts_json(count_cases(job))},
               {"timing", {{"load", job.load_ms}, {"seconds", job.seconds}}}};
  json["cases"] = Json::array();
  for (const CaseResult& result : job.cases) {
    Json one = case_json(result);
    one["repeat"] = result.picture.empty() ? Json() : Json(repeat(job, result));
    json["cases"].push_back(std::move(one));
  }
  return json;
}

}  // namespace

std::string zoo_report_json(const std::vector<JobResult>& jobs, const TableOptions& options,
                            const RepeatCommand& repeat) {
  Json json = {{"schema_version", kReportSchema},
               {"counts", counts_json(count_cases(jobs))},
               {"seconds", options.seconds},
               {"targets_left_out", options.targets_left_out}};
  json["artifacts"] = Json::array();
  for (const JobResult& job : jobs) json["artifacts"].push_back(job_json(job, repeat));
  return json_text(json);
}

}  // namespace run_model
