#include "run_model/check_zoo/reports.h"

#include "base/text.h"
#include "run_model/check_zoo/result.h"
#include "run_model/shared/formatted.h"

namespace run_model {
namespace {

std::string junit_seconds(double seconds) { return formatted("%.3f", seconds); }

std::string attribute(const char* name, std::string_view value) {
  return " " + std::string(name) + "=\"" + xml_escaped(value) + "\"";
}

// How JUnit counts: a failure is a wrong result, an error is none.
bool is_error(const CaseResult& result) {
  return result.status == CaseStatus::kFailed && !result.compared && !result.results_compared;
}

struct Counts {
  std::size_t tests = 0, failures = 0, errors = 0, skipped = 0;

  void add(const CaseResult& result) {
    ++tests;
    if (result.status == CaseStatus::kSkipped) ++skipped;
    if (is_error(result)) ++errors;
    if (result.status == CaseStatus::kFailed && !is_error(result)) ++failures;
  }

  std::string attributes() const {
    return attribute("tests", std::to_string(tests)) +
           attribute("failures", std::to_string(failures)) +
           attribute("errors", std::to_string(errors)) +
           attribute("skipped", std::to_string(skipped));
  }
};

std::string test_case(const JobResult& job, const CaseResult& result, const std::string& suite,
                      const RepeatCommand& repeat) {
  const std::string name = result.picture.empty() ? "(no picture)" : result.picture;
  std::string text =
      "    <testcase" + attribute("classname", suite) + attribute("name", name) +
      attribute("time", junit_seconds((result.preprocess_ms + result.run_ms) / 1000));
  if (result.status == CaseStatus::kPassed) return text + "/>\n";
  text += ">\n";
  if (result.status == CaseStatus::kSkipped) {
    text += "      <skipped" + attribute("message", result.skipped_because) + "/>\n";
  } else {
    const std::string element = is_error(result) ? "error" : "failure";
    text += "      <" + element + attribute("message", result.failures[0].message) +
            attribute("type", result.failures[0].rule) + ">" +
            xml_escaped(case_details(job, result, repeat)) + "</" + element + ">\n";
  }
  return text + "    </testcase>\n";
}

}  // namespace

std::string xml_escaped(std::string_view text) {
  std::string escaped;
  while (!text.empty()) {
    // One character: a byte of ASCII, or a lead byte with the bytes that continue it.
    std::size_t bytes = 1;
    while (bytes < text.size() && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80) ++bytes;
    const std::string_view character = text.substr(0, bytes);
    text.remove_prefix(bytes);
    const auto first = static_cast<unsigned char>(character[0]);
    if (character == "&") {
      escaped += "&amp;";
    } else if (character == "<") {
      escaped += "&lt;";
    } else if (character == ">") {
      escaped += "&gt;";
    } else if (character == "\"") {
      escaped += "&quot;";
    } else if (character == "\n" || character == "\t") {
      // As they are, an attribute would lose them.
      escaped += character == "\n" ? "&#10;" : "&#9;";
    } else if (first < 0x20 || !is_utf8(character) || character == "\xEF\xBF\xBE" ||
               character == "\xEF\xBF\xBF") {
      escaped += "?";  // U+FFFE and U+FFFF are no characters of XML either
    } else {
      escaped += character;
    }
  }
  return escaped;
}

std::string zoo_junit(const std::vector<JobResult>& jobs, double seconds,
                      const RepeatCommand& repeat) {
  Counts all;
  std::string suites;
  for (const JobResult& job : jobs) {
    const std::string name = "zoo." + job.model + "." + job.target + "." + job.form;
    Counts counts;
    std::string cases;
    for (const CaseResult& result : job.cases) {
      counts.add(result);
      all.add(result);
      cases += test_case(job, result, name, repeat);
    }
    suites += "  <testsuite" + attribute("name", name) + counts.attributes() +
              attribute("time", junit_seconds(job.seconds)) + ">\n" + cases + "  </testsuite>\n";
  }
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites" +
         attribute("name", "check_zoo") + all.attributes() +
         attribute("time", junit_seconds(seconds)) + ">\n" + suites + "</testsuites>\n";
}

namespace {

Json counts_json(const CaseCounts& counts) {
  return Json::object(
      {{"passed", counts.passed}, {"failed", counts.failed}, {"skipped", counts.skipped}});
}

Json job_json(const JobResult& job, const RepeatCommand& repeat) {
  Json json =
      Json::object({{"model", job.model},
                    {"target", job.target},
                    {"form", job.form},
                    {"library", text_or_null(job.library)},
                    {"library_xxh3_64", text_or_null(job.checksum)},
                    {"emulated", job.emulated},
                    {"counts", counts_json(count_cases(job))},
                    {"timing", Json::object({{"load", job.load_ms}, {"seconds", job.seconds}})}});
  Json cases = Json::array();
  for (const CaseResult& result : job.cases) {
    Json one = case_json(result);
    one.put("repeat", result.picture.empty() ? Json() : Json(repeat(job, result)));
    cases.add(std::move(one));
  }
  json.put("cases", std::move(cases));
  return json;
}

}  // namespace

std::string zoo_report_json(const std::vector<JobResult>& jobs, const TableOptions& options,
                            const RepeatCommand& repeat) {
  Json json = Json::object({{"schema_version", kReportSchema},
                            {"counts", counts_json(count_cases(jobs))},
                            {"seconds", options.seconds},
                            {"targets_left_out", options.targets_left_out}});
  Json artifacts = Json::array();
  for (const JobResult& job : jobs) artifacts.add(job_json(job, repeat));
  json.put("artifacts", std::move(artifacts));
  return json.text();
}

}  // namespace run_model
