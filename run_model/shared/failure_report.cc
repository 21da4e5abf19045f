#include "run_model/shared/failure_report.h"

#include <cstdio>
#include <exception>
#include <new>

#include "run_model/shared/json.h"
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

}  // namespace

std::string error_json(const Error& error) {
  Json failure = Json::object({{"code", exit_code(error.kind())},
                               {"name", error_kind_name(error.kind())},
                               {"message", error.what()}});
  Json json = Json::object({{"schema_version", kReportSchema}, {"error", std::move(failure)}});
  return json.text();
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
