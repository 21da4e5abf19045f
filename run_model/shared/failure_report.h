// How a program says that it failed.
#pragma once

#include <run_model/error.h>

#include <functional>
#include <string>

namespace run_model {

// The exit code that the programs document for a kind of failure: 1 to 8, none of them for success.
int exit_code(ErrorKind kind);

// The lines of --help on the exit codes of the kinds from kInternal to `last`: "  1  internal
// error".
std::string exit_codes_text(ErrorKind last);

// {"schema_version": 1, "error": {"code": 3, "name": "…", "message": "…"}}
std::string error_json(const Error& error);

// Runs `body` and returns its exit code. An exception becomes one sentence on standard error, begun
// with the program's name, with `json` an object on standard output too, and the exit code of its
// kind.
int run_reporting_failures(const char* program, bool json, const std::function<int()>& body);

}  // namespace run_model
