#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include <run_model/rpc/server.h>
#include "tests/rpc/server/running_server.h"
#include "tests/throws_error.h"

namespace run_model::rpc {
namespace {

TEST(HostPortTest, ReadsNamesAndBothKindsOfNumbers) {
  EXPECT_EQ(parse_host_port("--x", "board.local:9090"), (HostPort{"board.local", 9090}));
  EXPECT_EQ(parse_host_port("--x", "10.0.0.1:1"), (HostPort{"10.0.0.1", 1}));
  EXPECT_EQ(parse_host_port("--x", "[fe80::1]:65535"), (HostPort{"fe80::1", 65535}));
  EXPECT_EQ(to_text({"fe80::1", 80}), "[fe80::1]:80");
  EXPECT_EQ(to_text({"board", 80}), "board:80");
}

TEST(HostPortTest, NamesTheFlagOfWhatIsNone) {
  for (const char* text : {"", "board", ":90", "board:", "board:0", "board:65536", "board:-1",
                           "board:90x", "fe80::1:90", "[]:90"}) {
    EXPECT_TRUE(
        throws_error([&] { parse_host_port("--tracker", text); }, ErrorKind::kUsage, "--tracker"))
        << text;
  }
}

TEST(ServerOptionsTest, SaysWhatMakesNoSense) {
  const auto try_options = [](const std::function<void(ServerOptions&)>& change) {
    return [change] { Server(with(change), [](const ServerEvent&) {}, SessionBody(obey_all)); };
  };
  EXPECT_TRUE(throws_error(try_options([](auto& o) { o.tracker = HostPort{"h", 1}; }),
                           ErrorKind::kUsage, "key"));
  EXPECT_TRUE(
      throws_error(try_options([](auto& o) { o.key = "a b"; }), ErrorKind::kUsage, "'a b'"));
  EXPECT_TRUE(throws_error(try_options([](auto& o) { o.key = std::string(1000, 'k'); }),
                           ErrorKind::kUsage, "too long"));
  EXPECT_TRUE(throws_error(try_options([](auto& o) { o.max_sessions = 0; }), ErrorKind::kUsage,
                           "sessions"));
  EXPECT_TRUE(
      throws_error(try_options([](auto& o) { o.port_end = o.port; }), ErrorKind::kUsage, "port"));
  EXPECT_TRUE(throws_error(try_options([](auto& o) { o.session_seconds = -1; }), ErrorKind::kUsage,
                           "session"));
  EXPECT_TRUE(throws_error(try_options([](auto& o) { o.work_folder = "/no/such"; }),
                           ErrorKind::kFile, "/no/such"));
  EXPECT_TRUE(throws_error(try_options([](auto& o) { o.host = "no such host"; }), ErrorKind::kFile,
                           "no such host"));
}

}  // namespace
}  // namespace run_model::rpc
