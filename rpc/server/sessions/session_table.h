// The sessions that run, and the clients that are told that theirs has ended.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <run_model/rpc/server.h>
#include "rpc/server/handshake.h"
#include "rpc/server/sessions/farewell.h"
#include "rpc/server/sessions/orphans.h"
#include "rpc/server/sessions/session_watch.h"
#include "rpc/server/sessions/work_folder.h"

namespace run_model::rpc {

class SessionTable {
 public:
  // `options` outlive this.
  SessionTable(const ServerOptions& options, SessionBody body, EventLog log);

  // How many sessions can be started now.
  int free_slots() const;

  // After the handshake. Where the system refuses a process, the client is told so.
  void start(OwnedFd socket, const std::string& peer, const ClientKey& client, TimePoint now);

  void prepare(PollSet& polls) const;
  void step(TimePoint now);

  // Ends every session; what clients can be told, they are.
  void stop();

 private:
  void say_farewell(OwnedFd socket, ByteVector frame, TimePoint now);
  void end_of(SessionWatch& session, TimePoint now);
  void end_orphans();

  const ServerOptions& options_;
  SessionBody body_;
  EventLog log_;
  WorkFolder folder_;
  std::vector<std::unique_ptr<SessionWatch>> sessions_;
  std::vector<std::unique_ptr<Farewell>> farewells_;
  std::optional<Orphans> orphans_;  // from the first session on
  std::uint64_t last_number_ = 0;
};

}  // namespace run_model::rpc
