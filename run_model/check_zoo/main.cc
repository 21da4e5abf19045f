// check_zoo: checks compiled networks against golden cases. `check_zoo --help` says how.
#include <csignal>
#include <string>
#include <vector>

#include "run_model/check_zoo/program.h"

int main(int argc, char** argv) {
  // A reader that goes away early shows as a failed write instead of ending the process.
  std::signal(SIGPIPE, SIG_IGN);
  const std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
  return run_model::run_check_zoo(argc > 0 ? argv[0] : "check_zoo", args);
}
