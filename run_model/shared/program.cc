#include "run_model/shared/program.h"

#include <gflags/gflags.h>
#include <glog/logging.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <system_error>

#include <run_model/error.h>
#include "run_model/shared/arguments.h"

namespace run_model {

void let_writes_fail() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

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
      const Json json_of_error =
          Json::object({{"schema_version", kReportSchema}, {"error", error_json(error)}});
      write_standard_output(json_of_error.text());
    } catch (const Error&) {
      // Standard error still gets the sentence.
    }
  }
  std::fprintf(stderr, "%s: %s\n", program, error.what());
  return exit_code(error.kind());
}

// What the handler of a trap says it with.
const char* g_trapped_program = "";
bool g_trapped_json = false;

Error trap_error(int signal) {
  if (signal == SIGFPE) {
    return {ErrorKind::kModel,
            "the model divided a whole number by zero, or the smallest one by -1: check the inputs "
            "that it divides by"};
  }
  if (signal == SIGBUS) {
    return {
        ErrorKind::kFile,
        "a file became shorter while it was in use, or its disk cannot be read any more: replace "
        "files by renaming, not in place"};
  }
  return {ErrorKind::kIncompatible,
          "the compiled code has an instruction that this CPU does not know: compile the model for "
          "this CPU"};
}

}  // namespace

void report_traps(const char* program, bool json) {
  g_trapped_program = program;
  g_trapped_json = json;
  // The instruction that traps stands in compiled code, or reads a mapped file, and holds no lock
  // of the C library: what is forbidden in handlers of signals that come at any time is safe in
  // this.
  for (const int trap : {SIGFPE, SIGILL, SIGBUS}) {
    std::signal(trap, [](int signal) {
      std::_Exit(report_failure(g_trapped_program, trap_error(signal), g_trapped_json));
    });
  }
}

Json error_json(const Error& error) {
  return Json::object({{"code", exit_code(error.kind())},
                       {"name", error_kind_name(error.kind())},
                       {"message", error.what()}});
}

int run_reporting_failures(const char* program, bool json, const std::function<int()>& body) {
  try {
    return body();
  } catch (const Error& error) {
    return report_failure(program, error, json);
  } catch (const std::bad_alloc&) {
    return report_failure(program, Error(ErrorKind::kInternal, "there is not enough memory"), json);
  } catch (const std::system_error& error) {
    const bool refused = error.code() == std::errc::resource_unavailable_try_again;
    return report_failure(
        program,
        refused ? Error(ErrorKind::kInternal,
                        "the system refuses the program another thread, or memory for its stack",
                        "ask for fewer by --threads, or raise the limit of processes or memory")
                : Error(ErrorKind::kInternal, std::string("unexpected: ") + error.what()),
        json);
  } catch (const std::exception& error) {
    return report_failure(
        program, Error(ErrorKind::kInternal, std::string("unexpected: ") + error.what()), json);
  }
}

}  // namespace run_model
