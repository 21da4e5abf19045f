// rpc_server: TVM's RPC server without TVM. `rpc_server --help` says how.
#include <string>
#include <vector>

#include "run_model/rpc_server/program.h"
#include "run_model/shared/program.h"

int main(int argc, char** argv) {
  run_model::let_writes_fail();
  const std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
  return run_model::run_rpc_server(args);
}
