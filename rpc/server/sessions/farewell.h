// The last words to a client whose session is over.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <run_model/rpc/session.h>
#include "base/file.h"
#include "rpc/server/sockets.h"
#include "rpc/server/wire.h"

namespace run_model::rpc {

// What a client gets instead of an answer when its session's process can give none any more: a
// whole frame (rpc/protocol.h): code kException and a sequence of one text. Nothing for an empty
// text. TVM's client raises
// it as RPCError, or as RPCSessionTimeoutError where the text begins with that name, a colon and a
// space.
ByteVector exception_frame(std::string_view text, Encoding encoding);

// Sends a frame, which may be empty, says that nothing more will come, and takes what the client
// still sends until it closes: a connection that is closed with something unread is reset, and the
// exception lost with it. A client that was sending a request reads the exception when it has sent
// all of it.
class Farewell {
 public:
  // Closes at `deadline` at the latest.
  Farewell(OwnedFd socket, ByteVector frame, TimePoint deadline);

  void prepare(PollSet& polls) const;
  void step(TimePoint now);
  bool is_over() const { return !socket_; }

 private:
  void send_rest();
  void drain();

  OwnedFd socket_;
  ByteVector frame_;
  std::size_t sent_ = 0;
  std::uint64_t drained_ = 0;
  TimePoint deadline_;
};

}  // namespace run_model::rpc
