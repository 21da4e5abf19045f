// rpc_server's command line and log.
#include <gflags/gflags.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "run_model/rpc_server/event_text.h"
#include "run_model/rpc_server/settings.h"
#include "tests/temporary_folder.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

using rpc::HostPort;
using rpc::ServerEvent;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class RpcServerSettingsTest : public ::testing::Test {
 protected:
  static RpcServerSettings read(const std::vector<std::string>& args) {
    return read_rpc_server_settings(args);
  }

 private:
  gflags::FlagSaver saver_;
};

TEST_F(RpcServerSettingsTest, ServesThisMachineAloneUnlessToldOtherwise) {
  const RpcServerSettings settings = read({});
  EXPECT_EQ(settings.help, HelpRequest::kNone);
  EXPECT_EQ(settings.server.host, "127.0.0.1");
  EXPECT_EQ(settings.server.port, 9090);
  EXPECT_EQ(settings.server.max_sessions, 1);
  EXPECT_EQ(settings.server.memory_bytes, 0u);
  EXPECT_EQ(settings.server.idle_seconds, 0);
  EXPECT_TRUE(settings.server.landlock);
  EXPECT_TRUE(settings.server.auth_key.empty());
}

TEST_F(RpcServerSettingsTest, TakesTheFlagsOfTvmsServer) {
  const RpcServerSettings settings =
      read({"--host", "0.0.0.0", "--port=9100", "--port-end", "9110", "--key", "pynq", "--tracker",
            "host:9190", "--custom-addr", "board.local"});
  EXPECT_EQ(settings.server.host, "0.0.0.0");
  EXPECT_EQ(settings.server.port, 9100);
  EXPECT_EQ(settings.server.port_end, 9110);
  EXPECT_EQ(settings.server.key, "pynq");
  EXPECT_EQ(settings.server.tracker, (HostPort{"host", 9190}));
  EXPECT_EQ(settings.server.advertise, (HostPort{"board.local", 0}));
}

TEST_F(RpcServerSettingsTest, TakesLimits) {
  const rpc::ServerOptions server =
      read({"--max-sessions=4", "--session-timeout=30", "--call-timeout=1.5", "--idle-timeout=3600",
            "--no-landlock", "--memory-limit=512M", "--file-limit=2G", "--work-dir=/var/tmp",
            "--threads=2"})
          .server;
  EXPECT_EQ(server.max_sessions, 4);
  EXPECT_EQ(server.session_seconds, 30);
  EXPECT_EQ(server.call_seconds, 1.5);
  EXPECT_EQ(server.idle_seconds, 3600);
  EXPECT_FALSE(server.landlock);
  EXPECT_EQ(server.memory_bytes, 512u << 20);
  EXPECT_EQ(server.file_bytes, std::uint64_t{2} << 30);
  EXPECT_EQ(server.work_folder, "/var/tmp");
  EXPECT_EQ(server.threads, 2);
}

TEST_F(RpcServerSettingsTest, APortBeyondTheUsualOnesIsTakenByItself) {
  EXPECT_EQ(read({"--port=20000"}).server.port_end, 20001);
}

TEST_F(RpcServerSettingsTest, ReadsTheKeyFile) {
  TemporaryFolder folder;
  const std::filesystem::path file = folder.write("key", "0123456789abcdef\n");
  ::chmod(file.c_str(), 0600);
  EXPECT_EQ(read({"--auth-key-file", file.string()}).server.auth_key.size(), 16u);
  ::chmod(file.c_str(), 0644);
  EXPECT_TRUE(
      throws_error([&] { read({"--auth-key-file", file.string()}); }, ErrorKind::kFile, "others"));
}

TEST_F(RpcServerSettingsTest, NamesTheFlagThatMakesNoSense) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"--port=-1", "--port"},
      {"--port-end=70000", "--port-end"},
      {"--tracker=host", "--tracker"},
      {"--proxy=host", "--proxy"},
      {"--memory-limit=-1", "--memory-limit"},
      {"--file-limit=0", "--file-limit"},
      {"--custom-addr=x", "--custom-addr"},
      {"extra", "extra"},
      {"--no-fork", "--no-fork"}};
  for (const auto& [flag, named] : cases) {
    gflags::FlagSaver saver;
    EXPECT_TRUE(throws_error([flag = flag] { read({flag}); }, ErrorKind::kUsage, named)) << flag;
  }
}

TEST(RpcServerSizeTest, KnowsItsUnits) {
  EXPECT_EQ(parse_size("--x", "0"), 0u);
  EXPECT_EQ(parse_size("--x", "5"), 5u);
  EXPECT_EQ(parse_size("--x", "5K"), 5120u);
  EXPECT_EQ(parse_size("--x", "3G"), std::uint64_t{3} << 30);
  for (const char* text :
       {"", "G", "1T", "1.5G", "-1", "1 G", "99999999999999999999", "18014398509481984K"}) {
    EXPECT_TRUE(throws_error([&] { parse_size("--x", text); }, ErrorKind::kUsage, "--x")) << text;
  }
}

TEST(RpcServerAddressTest, MayHaveAPort) {
  EXPECT_EQ(parse_custom_address("127.0.0.1:9099"), (HostPort{"127.0.0.1", 9099}));
  EXPECT_EQ(parse_custom_address("board"), (HostPort{"board", 0}));
  EXPECT_EQ(parse_custom_address("fe80::1"), (HostPort{"fe80::1", 0}));
  EXPECT_EQ(parse_custom_address("[fe80::1]"), (HostPort{"fe80::1", 0}));
  EXPECT_EQ(parse_custom_address("[fe80::1]:9"), (HostPort{"fe80::1", 9}));
}

TEST(RpcServerLogTest, IsOneLine) {
  const ServerEvent event{ServerEvent::Kind::kConnected, false, "10.0.0.2:5", 3, "connected"};
  EXPECT_THAT(event_text(event, 0), EndsWith(" session 3 10.0.0.2:5: connected\n"));
  EXPECT_THAT(event_text({ServerEvent::Kind::kListening, true, "", 0, "listening"}, 0),
              EndsWith(" WARNING listening\n"));
}

TEST(RpcServerLogTest, IsJsonToo) {
  const std::string line = event_json(
      {ServerEvent::Kind::kSessionKilled, true, "10.0.0.2:5", 3, "lost\xff"}, 1795310000);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["time"], "2026-11-22T01:13:20Z");
  EXPECT_EQ(json["event"], "session_killed");
  EXPECT_EQ(json["warning"], true);
  EXPECT_EQ(json["peer"], "10.0.0.2:5");
  EXPECT_EQ(json["session"], 3);
  EXPECT_EQ(nlohmann::json::parse(event_json({}, 0))["session"], nullptr);
}

TEST(RpcServerLogTest, SaysThatItIsReady) {
  EXPECT_EQ(ready_text({"::1", 9}, false), "listening on [::1]:9\n");
  const auto json = nlohmann::json::parse(ready_json({"::1", 9}, false));
  EXPECT_EQ(json["event"], "listening");
  EXPECT_EQ(json["host"], "::1");
  EXPECT_EQ(json["port"], 9);
}

}  // namespace
}  // namespace run_model
