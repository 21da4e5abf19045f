// A server in a process of its own, with sessions that a test makes up, and clients for it.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <run_model/rpc/server.h>
#include "base/file.h"
#include "tests/temporary_folder.h"

namespace run_model::rpc {

// What a client's handshake is answered with (TestClient::shake_hands).
inline constexpr int kWelcome = 0xff271;
inline constexpr int kMismatch = 0xff273;

// The usual options with a change.
inline ServerOptions with(const std::function<void(ServerOptions&)>& change) {
  ServerOptions options;
  change(options);
  return options;
}

// What a session does: one command a byte from its client (test_session.cc); any other byte comes
// back, and 'q' ends the session.
SessionEnd obey_all(const SessionStart& start);

class RunningServer {
 public:
  explicit RunningServer(const SessionBody& body, ServerOptions options = {});
  // Fails the test when the server has not lived until now or leaves something behind.
  ~RunningServer();

  int port() const { return port_; }
  pid_t pid() const { return pid_; }
  std::string log() const { return TemporaryFolder::read(folder_ / "log"); }
  std::size_t open_descriptors() const;
  std::size_t session_folders() const;
  // Until the log has the text; false after 20 s.
  bool wait_for_log(const std::string& text) const;

 private:
  TemporaryFolder folder_;
  OwnedFd stop_;
  pid_t pid_ = -1;
  int port_ = 0;
};

// Reads wait for at most 20 s.
class TestClient {
 public:
  // From an address of the loopback network, 127.0.0.1 to 127.255.255.254; throws when it cannot
  // connect.
  explicit TestClient(int port, const char* source = "127.0.0.1");

  // What TVM's client says first, and the answer's number: 0xff271 for a welcome, -1 for none.
  int shake_hands(const std::string& key = "client:");

  void send(std::string_view bytes);
  // Fewer bytes than asked for at the end of the connection.
  std::string receive(std::size_t bytes);
  // Up to the next newline, without it.
  std::string receive_line();
  // The text of an exception's frame; empty where something else comes.
  std::string receive_exception();
  bool is_closed() { return receive(1).empty(); }
  void close() { socket_.reset(); }

 private:
  OwnedFd socket_;
};

// A server whose sessions obey, and a client that it has welcomed.
struct Served {
  explicit Served(const ServerOptions& options = {}, const std::string& key = "client:")
      : server(obey_all, options), client(server.port()) {
    EXPECT_EQ(client.shake_hands(key), kWelcome);
  }

  RunningServer server;
  TestClient client;
};

}  // namespace run_model::rpc
