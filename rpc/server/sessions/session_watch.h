// Watches over the process of one session, and says what becomes of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <run_model/rpc/server.h>
#include "base/file.h"
#include "rpc/server/sessions/session_process.h"
#include "rpc/server/sockets.h"

namespace run_model::rpc {

struct WatchLimits {
  double session_seconds = 0;  // 0: none, as below
  bool client_asked = false;   // for session_seconds, where the server allows more
  double call_seconds = 0;     // that one request takes while nothing comes or goes
  double idle_seconds = 0;     // between two requests
  std::uint64_t memory_bytes = 0;
};

class SessionWatch {
 public:
  // `event` has the peer and the number of the session, for the log.
  SessionWatch(ServerEvent event, OwnedFd socket, std::unique_ptr<SessionProcess> process,
               const WatchLimits& limits, EventLog log, TimePoint now);

  void prepare(PollSet& polls) const;
  void step(TimePoint now);

  // Ends the session without a reason that is its own fault.
  void kill_for(const std::string& why);

  // The process and all that it started are gone.
  bool is_over() const { return over_; }

  // Then: what to tell the client, which may be nothing, and how; whether it may be waiting to be
  // told; and its socket.
  const std::string& last_words() const { return last_words_; }
  Encoding encoding() const { return process_->progress().encoding(); }
  bool is_client_there() const { return client_there_; }
  OwnedFd take_socket() { return std::move(socket_); }
  std::uint64_t number() const { return event_.session; }
  pid_t process() const { return process_->pid(); }

 private:
  void log(ServerEvent::Kind kind, bool warning, std::string message) const;
  void log_output();
  void check_client(TimePoint now);
  void check_session_time(TimePoint now);
  void check_call_time(TimePoint now);
  void check_idle_time(TimePoint now);
  void check_memory(TimePoint now);
  // Kills the process; `words` go to the client, where it can be told.
  void kill(std::string reason, std::string words);
  void conclude(int status, TimePoint now);
  void explain_crash(int status);
  std::string doing() const;

  ServerEvent event_;
  OwnedFd socket_;
  std::unique_ptr<SessionProcess> process_;
  WatchLimits limits_;
  EventLog log_;
  TimePoint start_;
  TimePoint next_memory_check_;
  std::optional<TimePoint> client_gone_;
  std::optional<TimePoint> request_seen_;
  std::uint32_t request_ = 0;
  TimePoint idle_since_;
  std::uint32_t last_request_ = 0;
  int lines_ = 0;
  bool killed_ = false;
  std::string kill_reason_;
  std::string last_words_;
  bool client_there_ = false;
  bool over_ = false;
};

}  // namespace run_model::rpc
