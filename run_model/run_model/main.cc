// run_model: runs a model that TVM has compiled, without TVM. `run_model --help` says how.
#include <string>
#include <vector>

#include "run_model/run_model/compare/compare.h"
#include "run_model/run_model/flags.h"
#include "run_model/run_model/inspect/inspect.h"
#include "run_model/run_model/machine/device_list.h"
#include "run_model/run_model/report/report.h"
#include "run_model/run_model/runs.h"
#include "run_model/run_model/settings.h"
#include "run_model/run_model/written_files.h"
#include "run_model/shared/arguments.h"
#include "run_model/shared/program.h"

namespace run_model {
namespace {

struct Result {
  std::string text;
  int exit_code = 0;
};

Result compare_files(const Settings& settings) {
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
    case Action::kRunCalls: {
      const CallsReport report = run_calls(settings);
      return settings.json ? calls_report_json(report) : calls_report_text(report);
    }
    case Action::kInspect: {
      const Inspection inspection = inspect(settings);
      return settings.json ? inspection_json(inspection) : inspection_text(inspection);
    }
    case Action::kListDevices: {
      const DeviceList list = list_devices();
      return settings.json ? device_list_json(list) : device_list_text(list);
    }
    case Action::kRunPictures:
    case Action::kCompare:
      break;
  }
  return "";
}

int run_program(const char* program_name, std::span<const std::string> args) {
  report_traps("run_model", asks_for_json(args));
  return run_reporting_failures("run_model", asks_for_json(args), [&] {
    prepare_logging();
    const Settings settings = read_settings(args);
    start_logging(program_name);
    if (settings.help != HelpRequest::kNone) {
      print_help(kRunManual, settings.help);
      return 0;
    }
    check_written_files(settings);
    if (settings.action == Action::kRunPictures) return run_pictures(settings);
    const Result result = settings.action == Action::kCompare ? compare_files(settings)
                                                              : Result{report_for(settings)};
    write_standard_output(result.text);
    return result.exit_code;
  });
}

}  // namespace
}  // namespace run_model

int main(int argc, char** argv) {
  run_model::let_writes_fail();
  const std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
  return run_model::run_program(argc > 0 ? argv[0] : "run_model", args);
}
