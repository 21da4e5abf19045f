#include "run_model/shared/program.h"

#include <gflags/gflags.h>
#include <glog/logging.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <string>

#include <run_model/error.h>
#include "run_model/shared/arguments.h"
#include "run_model/shared/json.h"

namespace run_model {
void write_standard_output(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      throw Error(ErrorKind::kFile,
                  std::string("cannot write to standard output: ") + std::strerror(errno));
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void prepare_logging() {
  gflags::SetCommandLineOptionWithMode("logtostderr", "true", gflags::SET_FLAGS_DEFAULT);
  gflags::SetCommandLineOptionWithMode("minloglevel", "1", gflags::SET_FLAGS_DEFAULT);
}

void start_logging(const char* program_name) {
  const bool asked = FLAGS_v > 0 || flag_is_set("vmodule") || flag_is_set("logtostderr");
  if (asked && !flag_is_set("minloglevel")) FLAGS_minloglevel = google::INFO;
  google::InitGoogleLogging(program_name);
}

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
