#include "run_model/rpc_server/settings.h"

#include <limits>

#include <run_model/error.h>
#include "base/text.h"
#include "rpc/server/authentication.h"
#include "run_model/rpc_server/flags.h"
#include "run_model/shared/arguments.h"

namespace run_model {
namespace {

[[maybe_unused]] const bool kRegistered = register_flags(kServerManual);

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorKind::kUsage, message, "rpc_server --help shows the usage");
}

void check_port(const char* flag, int port, int most) {
  if (port >= 0 && port <= most) return;
  fail("--" + std::string(flag) + " is " + std::to_string(port) + ", expected 0 to " +
       std::to_string(most));
}

rpc::ServerOptions server_options() {
  rpc::ServerOptions options;
  check_port("port", server_flags.port, 65535);
  check_port("port-end", server_flags.port_end, 65536);
  options.host = server_flags.host;
  options.port = server_flags.port;
  // A port beyond the usual ones is taken by itself.
  const bool beyond = !flag_is_set("port_end") && server_flags.port >= server_flags.port_end;
  options.port_end = beyond ? server_flags.port + 1 : server_flags.port_end;
  options.key = server_flags.key;
  if (!server_flags.tracker.empty())
    options.tracker = rpc::parse_host_port("--tracker", server_flags.tracker);
  if (!server_flags.proxy.empty())
    options.proxy = rpc::parse_host_port("--proxy", server_flags.proxy);
  if (!server_flags.custom_addr.empty()) {
    if (!options.tracker) fail("--custom-addr is for the tracker, but there is no --tracker");
    options.advertise = parse_custom_address(server_flags.custom_addr);
  }
  if (!server_flags.auth_key_file.empty())
    options.auth_key = rpc::read_auth_key(server_flags.auth_key_file);
  options.work_folder = server_flags.work_dir;
  options.max_sessions = server_flags.max_sessions;
  options.session_seconds = server_flags.session_timeout;
  options.call_seconds = server_flags.call_timeout;
  options.idle_seconds = server_flags.idle_timeout;
  options.memory_bytes = parse_size("--memory-limit", server_flags.memory_limit);
  options.file_bytes = parse_size("--file-limit", server_flags.file_limit);
  if (options.file_bytes == 0) fail("--file-limit is 0, expected a size as in 1G");
  options.threads = server_flags.threads;
  options.landlock = server_flags.landlock;
  return options;
}

}  // namespace

RpcServerSettings read_rpc_server_settings(std::span<const std::string> args) {
  const Arguments arguments = split_arguments(kServerManual, args);
  set_flags(kServerManual, arguments.flags);
  if (!arguments.positional.empty()) {
    fail("there is no use for the argument " + in_quotes(arguments.positional[0]));
  }
  RpcServerSettings settings;
  settings.help = help_request();
  if (settings.help != HelpRequest::kNone) return settings;
  settings.silent = server_flags.silent;
  settings.json = server_flags.log_json;
  settings.server = server_options();
  return settings;
}

std::uint64_t parse_size(const std::string& flag, std::string_view text) {
  std::string_view digits = text;
  int shift = 0;
  if (!digits.empty()) {
    constexpr std::string_view kUnits = "KMG";
    const std::size_t unit = kUnits.find(digits.back());
    if (unit != kUnits.npos) {
      shift = 10 * (static_cast<int>(unit) + 1);
      digits.remove_suffix(1);
    }
  }
  const auto value = whole_number<std::uint64_t>(digits);
  if (!value || *value > std::numeric_limits<std::uint64_t>::max() >> shift) {
    fail(flag + " is " + in_quotes(text) + ", expected a size as in 512M or 2G");
  }
  return *value << shift;
}

rpc::HostPort parse_custom_address(std::string_view text) {
  const bool has_port =
      text.find(':') != text.npos &&
      (text.starts_with('[') ? text.find("]:") != text.npos : text.find(':') == text.rfind(':'));
  if (has_port) return rpc::parse_host_port("--custom-addr", text);
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  return {std::string(text), 0};
}

}  // namespace run_model
