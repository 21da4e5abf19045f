#include "run_model/failure_report.h"

#include <cstdio>
#include <exception>
#include <new>

#include "run_model/json_values.h"
#include "run_model/standard_output.h"

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
  return error.exit_code();
}

}  // namespace

std::string error_json(const Error& error) {
  return json_text({{"schema_version", kReportSchema},
                    {"error",
                     {{"code", error.exit_code()},
                      {"name", error_code_name(error.code())},
                      {"message", error.what()}}}});
}

int run_reporting_failures(const char* program, bool json, const std::function<int()>& body) {
  try {
    return body();
  } catch (const Error& error) {
    return report_failure(program, error, json);
  } catch (const std::bad_alloc&) {
    return report_failure(program, Error(ErrorCode::kInternal, "there is not enough memory"), json);
  } catch (const std::exception& error) {
    return report_failure(
        program, Error(ErrorCode::kInternal, std::string("unexpected: ") + error.what()), json);
  }
}

}  // namespace run_model
