#include "run_model/check_zoo/reports.h"

#include <algorithm>
#include <map>

#include "run_model/shared/formatted.h"

namespace run_model {
namespace {

using Row = std::vector<std::string>;

// Columns on a terminal: characters, not bytes. (None here is wider than one column.)
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string padded(const std::string& text, std::size_t columns) {
  return text + std::string(columns - std::min(columns, width(text)), ' ');
}

std::string aligned(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += padded(row[i], widths[i]) + "  ";
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string share(std::size_t part, std::size_t whole) {
  return std::to_string(part) + "/" + std::to_string(whole);
}

std::string time_text(double milliseconds) {
  return milliseconds < 1000 ? formatted("%.1f ms", milliseconds)
                             : formatted("%.1f s", milliseconds / 1000);
}

// What the scores of several pictures have in common.
struct ScoreSummary {
  std::size_t compared = 0;
  std::size_t with_results = 0;  // boxes, masks, landmarks, which have no top five
  std::size_t top1 = 0;
  std::size_t top5 = 0;
  double largest_error = 0;
  double tolerance_used = 0;
  double run_ms = 0;

  void add(const CaseResult& result) {
    if (result.results_compared) {
      ++with_results;
      for (const ResultMeasure& measure : result.measures) {
        tolerance_used = std::max(tolerance_used, measure.tolerance_used);
      }
      run_ms += result.run_ms;
      return;
    }
    if (!result.compared) return;
    ++compared;
    top1 += result.scores.top1_equal ? 1 : 0;
    top5 += result.scores.top5_equal ? 1 : 0;
    largest_error = std::max(largest_error, result.scores.largest_error);
    tolerance_used = std::max(tolerance_used, result.scores.tolerance_used);
    run_ms += result.run_ms;
  }

  // top-1, top-5, the largest error, the tolerance used, time.
  Row cells() const {
    if (with_results > 0) {
      return {"-", "-", "-", formatted("%.0f%%", 100 * tolerance_used),
              time_text(run_ms / static_cast<double>(with_results))};
    }
    if (compared == 0) return {"-", "-", "-", "-", "-"};
    return {share(top1, compared), share(top5, compared), formatted("%.2g", largest_error),
            formatted("%.0f%%", 100 * tolerance_used),
            time_text(run_ms / static_cast<double>(compared))};
  }
};

void append(Row& row, const Row& more) { row.insert(row.end(), more.begin(), more.end()); }

Row job_row(const JobResult& job) {
  const CaseCounts counts = count_cases(job);
  Row row{job.model, job.target, job.form};
  if (counts.skipped == counts.all()) {
    row.push_back("skipped");
    return row;
  }
  // Skipped pictures are told of beneath the table.
  row.push_back(share(counts.passed, counts.passed + counts.failed) +
                (counts.failed == 0 ? " passed" : " FAILED"));
  ScoreSummary summary;
  for (const CaseResult& result : job.cases) summary.add(result);
  append(row, summary.cells());
  return row;
}

Row case_row(const CaseResult& result) {
  Row row{"  " + result.picture, "", "", std::string(case_status_name(result.status))};
  if (result.status == CaseStatus::kFailed) row.back() = "FAILED";
  ScoreSummary summary;
  summary.add(result);
  append(row, summary.cells());
  return row;
}

std::string ranked(const RankedScore& item) {
  return std::to_string(item.index) + (item.label.empty() ? "" : " " + item.label) + ": " +
         formatted("%.6g", item.score);
}

std::string top_side_by_side(const CaseScores& scores) {
  std::vector<Row> rows{{"   ", "expected", "got"}};
  const std::size_t count = std::max(scores.expected_top.size(), scores.actual_top.size());
  for (std::size_t i = 0; i < count; ++i) {
    Row row{"  " + std::to_string(i + 1)};
    row.push_back(i < scores.expected_top.size() ? ranked(scores.expected_top[i]) : "");
    row.push_back(i < scores.actual_top.size() ? ranked(scores.actual_top[i]) : "");
    if (row[1].empty() || row[2].empty() ||
        scores.expected_top[i].index != scores.actual_top[i].index) {
      row.push_back("<");
    }
    rows.push_back(row);
  }
  return aligned(rows);
}

std::string skipped_text(const std::vector<JobResult>& jobs) {
  // By reason and artifact: a reason that holds for all pictures is said once.
  std::string text;
  for (const JobResult& job : jobs) {
    std::map<std::string, std::vector<std::string>> pictures;
    for (const CaseResult& result : job.cases) {
      if (result.status == CaseStatus::kSkipped) {
        pictures[result.skipped_because].push_back(result.picture);
      }
    }
    for (const auto& [reason, names] : pictures) {
      text += "skipped " + job.model + " " + job.target + " " + job.form;
      if (names.size() < job.cases.size()) {
        for (const std::string& name : names) text += (&name == names.data() ? ": " : ", ") + name;
      } else if (!names[0].empty()) {
        text += " (" + counted(names.size(), "picture") + ")";
      }
      text += ": " + reason + "\n";
    }
  }
  return text;
}

}  // namespace

std::string case_details(const JobResult& job, const CaseResult& result,
                         const RepeatCommand& repeat) {
  std::string text = (result.status == CaseStatus::kFailed ? "FAILED " : "") + job.model + " " +
                     job.target + " " + job.form + " " + result.picture + "\n";
  if (!job.library.empty()) text += "  " + job.library + " (XXH3 " + job.checksum + ")\n";
  for (const CaseFailure& failure : result.failures) {
    text += "  " + failure.rule + ": " + failure.message + "\n";
  }
  if (result.compared) {
    const CaseScores& scores = result.scores;
    if (result.status == CaseStatus::kFailed) text += top_side_by_side(scores);
    text += "  largest error " + formatted("%.4g", scores.largest_error) + " at " +
            std::to_string(scores.largest_error_index) + ", allowed " +
            formatted("%g", scores.tolerance.atol) + " + " +
            formatted("%g", scores.tolerance.rtol) + " of the value (" +
            std::string(score_kind_name(scores.kind)) + ")\n";
  }
  for (const ResultMeasure& measure : result.measures) {
    text += "  " + measure.name + " " + formatted("%.6g", measure.worst) + ", allowed " +
            formatted("%g", measure.allowed) + "\n";
  }
  for (const std::string& line : result.location) text += "  " + line + "\n";
  if (result.status == CaseStatus::kFailed) text += "  repeat: " + repeat(job, result) + "\n";
  return text;
}

std::string zoo_table(const std::vector<JobResult>& jobs, const TableOptions& options,
                      const RepeatCommand& repeat) {
  std::vector<Row> rows{
      {"model", "target", "form", "pictures", "top-1", "top-5", "max |Δ|", "of tolerance", "run"}};
  for (const JobResult& job : jobs) {
    rows.push_back(job_row(job));
    if (!options.verbose) continue;
    for (const CaseResult& result : job.cases) {
      if (result.status != CaseStatus::kSkipped) rows.push_back(case_row(result));
    }
  }
  std::string text = aligned(rows);
  for (const JobResult& job : jobs) {
    for (const CaseResult& result : job.cases) {
      if (result.status == CaseStatus::kFailed || !result.location.empty()) {
        text += "\n" + case_details(job, result, repeat);
      }
    }
  }
  const std::string skipped = skipped_text(jobs);
  if (!skipped.empty()) text += "\n" + skipped;
  if (!options.targets_left_out.empty()) {
    text += "\nnot compiled for any of these models:";
    for (const std::string& target : options.targets_left_out) text += " " + target;
    text += " (--target=all lists them)\n";
  }
  const CaseCounts counts = count_cases(jobs);
  text += "\n" + counted(counts.all(), "case") + ": " + std::to_string(counts.passed) +
          " passed, " + std::to_string(counts.failed) + " failed, " +
          std::to_string(counts.skipped) + " skipped, in " + formatted("%.1f s", options.seconds) +
          "\n";
  return text;
}

}  // namespace run_model
