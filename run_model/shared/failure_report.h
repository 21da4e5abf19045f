// How a program says that it failed.
#pragma once

#include <functional>
#include <string>

#include <run_model/error.h>
#include "run_model/shared/manual.h"

namespace run_model {

// {"schema_version": 1, "error": {"code": 3, "name": "…", "message": "…"}}
std::string error_json(const Error& error);

// Runs `body` and returns its exit code. An exception becomes one sentence on standard error, begun
// with the program's name, with `json` an object on standard output too, and the exit code of its
// kind.
int run_reporting_failures(const char* program, bool json, const std::function<int()>& body);

}  // namespace run_model
