#include "run_model/check_zoo/result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "run_model/check_zoo/reports.h"
#include "tests/temporary_folder.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

CaseResult example() {
  CaseResult result;
  result.picture = "cat";
  result.fail("top-1", "the best class is 1, expected 2");
  result.input_compared = true;
  result.compared = true;
  result.scores.kind = ScoreKind::kProbabilities;
  result.scores.tolerance = {1e-3, 1e-4, 1e-5};
  result.scores.top5_equal = true;
  result.scores.largest_error = 0.5;
  result.scores.largest_error_index = 7;
  result.scores.tolerance_used = 400;
  result.scores.expected_top = {{2, "cat", 0.75}, {1, "", 0.25}};
  result.scores.actual_top = {{1, "", 0.5}, {2, "cat", 0.5}};
  result.preprocess_ms = 1.5;
  result.run_ms = 2.5;
  result.location = {"departs first: node 3", "  reads 'x'"};
  return result;
}

CaseResult parse(const nlohmann::json& json) {
  const JsonSource source{"a line", ""};
  return parse_case(JsonField(json, source));
}

nlohmann::json as_json(const CaseResult& result) {
  return nlohmann::json::parse(case_json(result).compact());
}

TEST(CheckZooCaseJsonTest, NothingIsLostOnTheWay) {
  const CaseResult result = parse(as_json(example()));
  EXPECT_EQ(as_json(result), as_json(example()));
  EXPECT_EQ(result.picture, "cat");
  EXPECT_EQ(result.status, CaseStatus::kFailed);
  EXPECT_EQ(result.scores.actual_top[1].label, "cat");
  EXPECT_EQ(result.scores.largest_error_index, 7U);
  EXPECT_EQ(result.location.size(), 2U);

  CaseResult with_results;
  with_results.picture = "crowd";
  with_results.results_compared = true;
  with_results.measures = {{"iou", 0.99, 0.9, 0.1}};
  EXPECT_EQ(as_json(parse(as_json(with_results))), as_json(with_results));
  EXPECT_EQ(parse(as_json(with_results)).measures.at(0).worst, 0.99);

  CaseResult skipped;
  skipped.picture = "dog";
  skipped.status = CaseStatus::kSkipped;
  skipped.skipped_because = "not there";
  EXPECT_EQ(as_json(parse(as_json(skipped))), as_json(skipped));
}

TEST(CheckZooCaseJsonTest, RefusesWhatDoesNotFit) {
  nlohmann::json passed = as_json(example());
  passed["status"] = "passed";
  EXPECT_TRUE(throws_error([&] { parse(passed); }, ErrorKind::kFormat, "do not agree"));
  nlohmann::json unexplained = as_json(example());
  unexplained["failures"] = nlohmann::json::array();
  EXPECT_TRUE(throws_error([&] { parse(unexplained); }, ErrorKind::kFormat, "do not agree"));
  for (const char* key : {"picture", "status", "failures", "input_compared", "scores", "timing"}) {
    nlohmann::json lacking = as_json(example());
    lacking.erase(key);
    EXPECT_TRUE(throws_error([&] { parse(lacking); }, ErrorKind::kFormat, key));
  }
}

JobResult example_job() {
  JobResult job;
  job.model = "net";
  job.target = "native";
  job.form = "triple";
  job.seconds = 1.5;
  CaseResult passed;
  passed.picture = "cat";
  passed.compared = true;
  passed.preprocess_ms = 4;
  passed.run_ms = 6;
  CaseResult wrong = passed;
  wrong.picture = "dog";
  wrong.fail("top-1", "the best class is 1, expected 2");
  CaseResult crashed;
  crashed.picture = "<\"&>";
  crashed.fail("crash", "ended\nby \x1b[31m signal \xff");
  CaseResult skipped;
  skipped.picture = "gone";
  skipped.status = CaseStatus::kSkipped;
  skipped.skipped_because = "not there";
  job.cases = {passed, wrong, crashed, skipped};
  return job;
}

std::string junit() {
  return zoo_junit({example_job()}, 2.25,
                   [](const JobResult&, const CaseResult&) { return "check_zoo --again"; });
}

TEST(CheckZooJunitTest, EscapesText) {
  EXPECT_EQ(xml_escaped("a<b>&\"c\""), "a&lt;b&gt;&amp;&quot;c&quot;");
  EXPECT_EQ(xml_escaped("|Δ| ≤ 1"), "|Δ| ≤ 1");
  EXPECT_EQ(xml_escaped("a\nb\tc"), "a&#10;b&#9;c");
  EXPECT_EQ(xml_escaped(std::string("\x1b[0m \x7f") + '\0'), "?[0m \x7f?");
  EXPECT_EQ(xml_escaped("\xff \xc3 \xed\xa0\x80 \xef\xbf\xbe"), "? ? ? ?");
}

TEST(CheckZooJunitTest, HasASuiteForEachArtifactAndACaseForEachPicture) {
  const std::string text = junit();
  const auto count = [&](const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++found;
    return found;
  };
  const std::string counts = " tests=\"4\" failures=\"1\" errors=\"1\" skipped=\"1\"";
  EXPECT_EQ(count("<testsuites name=\"check_zoo\"" + counts + " time=\"2.250\">"), 1U);
  EXPECT_EQ(count("<testsuite name=\"zoo.net.native.triple\"" + counts + " time=\"1.500\">"), 1U);
  EXPECT_EQ(count("<testcase classname=\"zoo.net.native.triple\""), 4U);
  EXPECT_EQ(count("name=\"cat\" time=\"0.010\"/>"), 1U);
  EXPECT_EQ(count("<failure message=\"the best class is 1, expected 2\" type=\"top-1\">"), 1U);
  EXPECT_EQ(count("<error message=\"ended&#10;by ?[31m signal ?\" type=\"crash\">"), 1U);
  EXPECT_EQ(count("<skipped message=\"not there\"/>"), 1U);
  EXPECT_EQ(count("repeat: check_zoo --again"), 2U);
}

TEST(CheckZooJunitTest, IsWellFormed) {
  if (std::system("command -v xmllint > /dev/null") != 0) {
    GTEST_SKIP() << "xmllint is not installed (Debian: libxml2-utils)";
  }
  const TemporaryFolder folder;
  const auto file = folder.write("junit.xml", junit());
  EXPECT_EQ(std::system(("xmllint --noout " + file.string()).c_str()), 0);
}

}  // namespace
}  // namespace run_model
