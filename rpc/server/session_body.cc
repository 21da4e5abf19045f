#include "rpc/server/session_body.h"

#include <stdlib.h>

#include <string>
#include <utility>

#include <run_model/rpc/registry.h>
#include "rpc/functions/builtin.h"
#include "rpc/session_folder.h"

namespace run_model::rpc {

SessionBody make_session_body(const ServerOptions& options,
                              std::function<void(Registry&)> add_functions) {
  return [limits = options.limits, file_bytes = options.file_bytes, threads = options.threads,
          add_functions = std::move(add_functions)](const SessionStart& start) {
    // Read when the pool of threads is made, with the first parallel loop.
    if (threads > 0) ::setenv("TVM_NUM_THREADS", std::to_string(threads).c_str(), 1);
    SessionFolder folder(start.folder, file_bytes);
    Registry registry;
    add_builtin_functions(registry, folder);
    if (add_functions) add_functions(registry);
    SessionOptions session;
    session.limits = limits;
    session.functions = &registry;
    session.progress = start.progress;
    session.log = start.log;
    return serve_session(start.socket, session);
  };
}

}  // namespace run_model::rpc
