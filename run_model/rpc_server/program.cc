#include "run_model/rpc_server/program.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>

#include <run_model/error.h>
#include <run_model/rpc/server.h>
#include "run_model/rpc_server/event_text.h"
#include "run_model/rpc_server/flags.h"
#include "run_model/rpc_server/settings.h"
#include "run_model/shared/program.h"
#include "run_model/shared/stop_signals.h"

namespace run_model {
namespace {

bool asks_for_json_log(std::span<const std::string> args) {
  return std::any_of(args.begin(), args.end(), [](const std::string& arg) {
    return arg == "--log-json" || arg == "--log_json" || arg == "--log-json=true";
  });
}

// A log that nobody reads does not stop the server: what finds no room is left out.
void write_log(std::string line) {
  static bool broken = false;  // off within a line
  if (broken) line.insert(0, "\n");
  std::string_view rest = line;
  while (!rest.empty()) {
    pollfd log{STDERR_FILENO, POLLOUT, 0};
    // So much a pipe that is ready takes without waiting.
    const std::string_view piece = rest.substr(0, PIPE_BUF);
    const bool ready = ::poll(&log, 1, 0) > 0 && (log.revents & POLLOUT) != 0;
    const ssize_t written = ready ? ::write(STDERR_FILENO, piece.data(), piece.size()) : -1;
    if (written <= 0) break;
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  if (rest.size() < line.size()) broken = !rest.empty();
}

void log(const rpc::ServerEvent& event, bool json) {
  const std::time_t now = std::time(nullptr);
  write_log(json ? event_json(event, now) : event_text(event, now));
}

int serve(RpcServerSettings settings, const std::function<void(rpc::Registry&)>& add_functions) {
  const int stop = note_stop_signals(SecondSignal::kIsNoted);
  const bool behind_proxy = settings.server.proxy.has_value();
  // Moved, so that the server has the only copy of the key.
  rpc::Server server(
      std::move(settings.server),
      [&settings](const rpc::ServerEvent& event) {
        if (event.warning || !settings.silent) log(event, settings.json);
      },
      add_functions);
  write_standard_output(settings.json ? ready_json(server.address(), behind_proxy)
                                      : ready_text(server.address(), behind_proxy));
  server.run(stop);
  return 0;
}

int run(std::span<const std::string> args,
        const std::function<void(rpc::Registry&)>& add_functions) {
  RpcServerSettings settings = read_rpc_server_settings(args);
  if (settings.help == HelpRequest::kNone) return serve(std::move(settings), add_functions);
  print_help(kServerManual, settings.help);
  return 0;
}

}  // namespace

int run_rpc_server(std::span<const std::string> args,
                   const std::function<void(rpc::Registry&)>& add_functions) {
  return run_reporting_failures("rpc_server", false, [&] {
    try {
      return run(args, add_functions);
    } catch (const Error& error) {
      if (!asks_for_json_log(args)) throw;
      log({rpc::ServerEvent::Kind::kFailed, true, "", 0, error.what()}, true);
      return exit_code(error.kind());
    }
  });
}

}  // namespace run_model
