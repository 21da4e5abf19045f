#include "run_model/shared/failure_report.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <new>

#include "run_model/shared/json_values.h"
#include "run_model/shared/standard_output.h"

namespace run_model {
namespace {

int report_failure(const char* program, const Error& error, bool json) {
  if (json) {
    try {
      write_standard_output(error_json(error));
    } catch (const Error&) {
      // Standard error still gets the sentence.
    }
  }
  std::fprintf(stderr, "%s: %s\n", program, error.what());
  return exit_code(error.kind());
}

// In the order of their exit codes, which begin at 1.
constexpr std::array kKinds{ErrorKind::kInternal, ErrorKind::kUsage,        ErrorKind::kFile,
                            ErrorKind::kFormat,   ErrorKind::kIncompatible, ErrorKind::kMismatch,
                            ErrorKind::kImage,    ErrorKind::kModel};

}  // namespace

int exit_code(ErrorKind kind) {
  return static_cast<int>(std::find(kKinds.begin(), kKinds.end(), kind) - kKinds.begin()) + 1;
}

std::string exit_codes_text(ErrorKind last) {
  std::string text;
  for (const ErrorKind kind : kKinds) {
    text +=
        "  " + std::to_string(exit_code(kind)) + "  " + std::string(error_kind_name(kind)) + "\n";
    if (kind == last) break;
  }
  return text;
}

std::string error_json(const Error& error) {
  return json_text({{"schema_version", kReportSchema},
                    {"error",
                     {{"code", exit_code(error.kind())},
                      {"name", error_kind_name(error.kind())},
                      {"message", error.what()}}}});
}

int run_reporting_failures(const char* program, bool json, const std::function<int()>& body) {
  try {
    return body();
  } catch (const Error& error) {
    return report_failure(program, error, json);
  } catch (const std::bad_alloc&) {
    return report_failure(program, Error(ErrorKind::kInternal, "there is not enough memory"), json);
  } catch (const std::exception& error) {
    return report_failure(
        program, Error(ErrorKind::kInternal, std::string("unexpected: ") + error.what()), json);
  }
}

}  // namespace run_model
