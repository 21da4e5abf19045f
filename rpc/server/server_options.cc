#include <run_model/rpc/server.h>

#include <cmath>

#include <run_model/error.h>
#include <run_model/thread_pool.h>
#include "base/text.h"
#include "rpc/server/handshake.h"

namespace run_model::rpc {
namespace {

constexpr int kMostSessions = 256;
// What a matchkey and the options of a client add to a key.
constexpr std::size_t kBesidesKey = 128;

[[noreturn]] void refuse_options(const std::string& message, const std::string& hint = "") {
  throw Error(ErrorKind::kUsage, message, hint);
}

void check_seconds(const char* what, double seconds) {
  if (!(seconds >= 0) || !std::isfinite(seconds)) {
    refuse_options(std::string(what) + " is " + std::to_string(seconds) +
                   " s, expected 0 (no limit) or more");
  }
}

}  // namespace

void check_options(const ServerOptions& options) {
  for (const char c : options.key) {
    if (c > ' ' && c < '\x7f') continue;
    refuse_options("the key is " + in_quotes(options.key) + ", expected letters and signs of ASCII",
                   "TVM's clients end a key at white space");
  }
  if (options.key.size() + kBesidesKey > static_cast<std::size_t>(kMostKeyBytes)) {
    refuse_options("the key has " + std::to_string(options.key.size()) +
                   " characters, which is too long");
  }
  if (options.tracker && options.key.empty()) {
    refuse_options("a server that registers with a tracker needs a key",
                   "--key names the kind of board that clients ask the tracker for");
  }
  if (options.tracker && options.proxy) {
    refuse_options("a server behind a proxy cannot register with a tracker itself",
                   "give the tracker to the proxy: python -m tvm.exec.rpc_proxy --tracker");
  }
  if (options.proxy && !options.auth_key.empty()) {
    refuse_options(
        "a server behind a proxy cannot challenge clients, since the proxy speaks first");
  }
  if (options.max_sessions < 1 || options.max_sessions > kMostSessions) {
    refuse_options("the number of sessions is " + std::to_string(options.max_sessions) +
                   ", expected 1 to " + std::to_string(kMostSessions));
  }
  if (options.threads < 0 || options.threads > ThreadPool::kMaxThreads) {
    refuse_options("the number of threads is " + std::to_string(options.threads) +
                   ", expected 0 to " + std::to_string(ThreadPool::kMaxThreads));
  }
  check_seconds("the time of a session", options.session_seconds);
  check_seconds("the time of a call", options.call_seconds);
  check_seconds("the time between two calls", options.idle_seconds);
}

HostPort parse_host_port(const std::string& what, std::string_view text) {
  const auto refuse = [&]() -> HostPort {
    throw Error(ErrorKind::kUsage,
                what + " is " + in_quotes(text) + ", expected HOST:PORT as in 192.168.2.1:9190",
                "an address of IPv6 is in brackets, as in [::1]:9190");
  };
  const std::size_t colon = text.rfind(':');
  if (colon == text.npos) return refuse();
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != host.npos) {
    return refuse();
  }
  const auto port = whole_number<int>(text.substr(colon + 1));
  if (host.empty() || !port || *port < 1 || *port > 65535) return refuse();
  return {std::string(host), *port};
}

std::string to_text(const HostPort& address) {
  const bool brackets = address.host.find(':') != std::string::npos;
  return (brackets ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

}  // namespace run_model::rpc
