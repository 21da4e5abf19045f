// What every program does around its work: its result goes to standard output, its log to standard
// error, and a failure becomes a sentence and an exit code.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <run_model/error.h>
#include "run_model/shared/json.h"
#include "run_model/shared/manual.h"

namespace run_model {

// From now on a reader that goes away early, or the limit of a file's size, shows as a failed write
// instead of ending the process by a signal.
void let_writes_fail();

// Writes all of it. Throws Error(kFile) when that fails, as on a full disk or a closed pipe.
void write_standard_output(std::string_view text);

// Before the flags are read: sets glog's defaults, so that it neither writes log files nor says
// anything of little weight.
void prepare_logging();

// After the flags are read: --v=N or --logtostderr let informational messages through too.
void start_logging(const char* program_name);

// {"code": 3, "name": "…", "message": "…"}
Json error_json(const Error& error);

// From now on three signals end the process with the sentence and the exit code of an Error:
// SIGFPE, where a CPU traps when a whole number is divided by zero (x86 does, Arm and RISC-V give a
// number), SIGILL, an instruction that the CPU does not know, and SIGBUS, a mapped file that has
// shrunk.
void report_traps(const char* program, bool json);

// Runs `body` and returns its exit code. An exception becomes one sentence on standard error, begun
// with the program's name, with `json` an object on standard output too, and the exit code of its
// kind.
int run_reporting_failures(const char* program, bool json, const std::function<int()>& body);

}  // namespace run_model
