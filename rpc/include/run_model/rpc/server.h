// Accepts clients and gives each a process of its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <run_model/rpc/function.h>
#include <run_model/rpc/session.h>

namespace run_model::rpc {

// "board.local:9090", "192.168.2.99:9090", "[fe80::1]:9090".
struct HostPort {
  std::string host;
  int port = 0;

  bool operator==(const HostPort&) const = default;
};

// An address of IPv6 is in brackets. Throws Error(kUsage) naming `what` (a flag) for what is no
// such thing, or whose port is not within 1 to 65535.
HostPort parse_host_port(const std::string& what, std::string_view text);

// As parse_host_port reads it.
std::string to_text(const HostPort& address);

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 9090;      // 0: any free one
  int port_end = 9199;  // the first free port in [port, port_end) is taken
  std::string key{};
  std::optional<HostPort> tracker{};
  std::optional<HostPort> proxy{};  // connect to this TVM RPC proxy instead of listening
  // What the tracker tells clients; port 0: the one listened on.
  std::optional<HostPort> advertise{};
  std::vector<std::byte> auth_key{};                  // empty: no challenge
  std::filesystem::path work_folder{};                // empty: TMPDIR or /tmp
  int max_sessions = 1;                               // at a time; more clients wait
  double session_seconds = 0;                         // 0: as long as the client likes
  double call_seconds = 600;                          // one request; 0: no limit
  double idle_seconds = 0;                            // between two requests; 0: no limit
  std::uint64_t memory_bytes = 0;                     // of one session; 0: no limit
  std::uint64_t file_bytes = std::uint64_t{1} << 30;  // of one session's files
  SessionLimits limits{};
  // Where the kernel has Landlock, sessions write in their own folders only, make no connections
  // and signal no other processes. Functions of a program's own that write to devices need it off.
  bool landlock = true;
  int threads = 0;  // of a session's thread pool; 0: the pool's default
};

// Throws Error(kUsage) naming what makes no sense.
void check_options(const ServerOptions& options);

// One thing that happened, for the log.
struct ServerEvent {
  enum class Kind {
    kListening,
    kConnected,
    kRefused,
    kSessionLog,
    kSessionEnded,
    kSessionKilled,  // by the server, or by what it did
    kTracker,
    kProxy,
    kStopped,
    kFailed,  // by the program: the server could not be started
  };
  Kind kind = Kind::kListening;
  bool warning = false;
  std::string peer;           // "192.168.2.1:51234", empty where there is none
  std::uint64_t session = 0;  // number of the session, from 1; 0: none
  std::string message;        // a sentence without the peer
};

using EventLog = std::function<void(const ServerEvent&)>;

// What a session's process is given.
struct SessionStart {
  int socket = -1;               // after the handshake
  std::filesystem::path folder;  // empty, the session's own and its current one
  SessionProgress* progress = nullptr;
  std::function<void(const std::string&)> log;
};

// What a session's process does.
using SessionBody = std::function<SessionEnd(const SessionStart&)>;

class Server {
 public:
  // Binds. Adds to the registry of each session by `add_functions`, if set, after the built-in
  // ones, in the session's process. Throws Error(kUsage) for options that make no sense,
  // Error(kFile) when no port is free or the work folder cannot be written.
  Server(ServerOptions options, EventLog log, std::function<void(Registry&)> add_functions = {});
  // The same with other sessions.
  Server(ServerOptions options, EventLog log, SessionBody body);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // That clients connect to; behind a proxy, the proxy's.
  const HostPort& address() const;

  // Serves until `stop_fd` becomes readable. Must be called while the process has one thread, since
  // it forks. Sessions that run are ended, their folders removed. From the first session on, the
  // process inherits what sessions leave behind and kills what it inherits; it does not ignore
  // SIGCHLD any more.
  void run(int stop_fd);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace run_model::rpc
