// Runs a program and collects what it leaves.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace run_model {

struct ProgramResult {
  int exit_code = -1;  // 128 + the signal's number where one ended it
  std::string out;
  std::string err;
};

// Runs `program` with `args`; standard input is empty, or the file `in_file`. A standard output
// other than a collected one is the file `out_file`. Calls `meanwhile` with the process's number
// while it runs.
ProgramResult spawn(const std::string& program, const std::vector<std::string>& args,
                    const std::string& out_file = "", const std::string& in_file = "/dev/null",
                    const std::function<void(pid_t)>& meanwhile = nullptr);

}  // namespace run_model
