// run_model: runs a model that TVM has compiled, without TVM. `run_model --help` says how.
#include <csignal>
#include <string>
#include <vector>

#include "run_model/run_model/program.h"

int main(int argc, char** argv) {
  // A reader that goes away early shows as a failed write instead of ending the process.
  std::signal(SIGPIPE, SIG_IGN);
  const std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
  return run_model::run_program(argc > 0 ? argv[0] : "run_model", args);
}
