// The socket that clients connect to.
#pragma once

#include <string>

#include <run_model/rpc/host_port.h>
#include "base/file.h"

namespace run_model::rpc {

class Listener {
 public:
  // Takes the first free port in [port, port_end); any free one for port 0. Throws Error(kFile)
  // when there is none or the host is not this machine's, Error(kUsage) for a range that is none.
  Listener(const std::string& host, int port, int port_end);

  int fd() const { return socket_.get(); }
  const HostPort& address() const { return address_; }

  // Whether only programs on this machine can connect.
  bool is_loopback() const { return loopback_; }

  // The next client that waits; none when nobody does. `peer` is set to its address.
  OwnedFd accept(std::string& peer);

 private:
  OwnedFd socket_;
  HostPort address_;
  bool loopback_ = false;
};

}  // namespace run_model::rpc
