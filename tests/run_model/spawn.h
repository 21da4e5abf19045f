// Runs a program and collects what it leaves.
#pragma once

#include <string>
#include <vector>

namespace run_model {

struct ProgramResult {
  int exit_code = -1;  // 128 + the signal's number where one ended it
  std::string out;
  std::string err;
};

// Runs `program` with `args`; standard input is empty. A standard output other than a collected one
// is the file `out_file`.
ProgramResult spawn(const std::string& program, const std::vector<std::string>& args,
                    const std::string& out_file = "");

}  // namespace run_model
