#include "run_model/run_model/program.h"

#include <gflags/gflags.h>

#include <string>

#include "run_model/run_model/compare/compare.h"
#include "run_model/run_model/help_text.h"
#include "run_model/run_model/inspect.h"
#include "run_model/run_model/report_json.h"
#include "run_model/run_model/report_text.h"
#include "run_model/run_model/run_picture.h"
#include "run_model/run_model/run_tensors.h"
#include "run_model/run_model/settings.h"
#include "run_model/shared/arguments.h"
#include "run_model/shared/failure_report.h"
#include "run_model/shared/logging.h"
#include "run_model/shared/standard_output.h"

namespace run_model {
namespace {

struct Result {
  std::string text;
  int exit_code = 0;
};

Result compare(const Settings& settings) {
  const Comparison comparison = compare_files(settings.first, settings.second, settings.compare);
  return {settings.json ? comparison_json(comparison) : comparison_text(comparison),
          comparison.worse() ? kExitWorse : 0};
}

std::string report_for(const Settings& settings) {
  switch (settings.action) {
    case Action::kRunPicture: {
      const PictureReport report = run_picture(settings);
      return settings.json ? picture_report_json(report) : picture_report_text(report);
    }
    case Action::kRunTensors: {
      const TensorsReport report = run_tensors(settings);
      return settings.json ? tensors_report_json(report) : tensors_report_text(report);
    }
    case Action::kInspect: {
      const Inspection inspection = inspect(settings);
      return settings.json ? inspection_json(inspection) : inspection_text(inspection);
    }
    case Action::kVersion:
      return version_text();
    case Action::kCompare:
    case Action::kHelp:
    case Action::kFullHelp:
      break;
  }
  return help_text();
}

}  // namespace

int run_program(const char* program_name, std::span<const std::string> args) {
  return run_reporting_failures("run_model", asks_for_json(args), [&] {
    prepare_logging();
    const Settings settings = read_settings(args);
    start_logging(program_name);
    const Result result =
        settings.action == Action::kCompare ? compare(settings) : Result{report_for(settings)};
    write_standard_output(result.text);
    if (settings.action == Action::kFullHelp) gflags::ShowUsageWithFlags(program_name);
    return result.exit_code;
  });
}

}  // namespace run_model
