// rpc_server: TVM's RPC server without TVM. `rpc_server --help` says how.
#include <csignal>
#include <string>
#include <vector>

#include "run_model/rpc_server/program.h"

int main(int argc, char** argv) {
  // A reader that goes away early shows as a failed write instead of ending the process.
  std::signal(SIGPIPE, SIG_IGN);
  const std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
  return run_model::run_rpc_server(args);
}
