// Clients before and between their sessions.
#include <run_model/rpc/server.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/rpc/server/running_server.h"

namespace run_model::rpc {
namespace {

using ::testing::HasSubstr;

TEST(ServerTest, ServesOneClientAfterAnother) {
  RunningServer server(obey_all);
  for (int i = 0; i < 20; ++i) {
    TestClient client(server.port());
    ASSERT_EQ(client.shake_hands(), kWelcome);
    client.send("e");
    EXPECT_EQ(client.receive(1), "e");
  }
  EXPECT_TRUE(server.wait_for_log("20 ended"));
}

TEST(ServerTest, TakesAHandshakeByteByByteAndKeepsWhatFollowsItForTheSession) {
  RunningServer server(obey_all);
  TestClient client(server.port());
  const std::string hello("\x71\xf2\x0f\0\x07\0\0\0client:e", 16);
  for (const char c : hello) client.send({&c, 1});
  EXPECT_EQ(client.receive(4 + 4 + 7).substr(8), "server:");
  EXPECT_EQ(client.receive(1), "e");
}

TEST(ServerTest, RefusesAnotherKey) {
  RunningServer server(obey_all, with([](auto& options) { options.key = "pynq"; }));
  TestClient wrong(server.port());
  EXPECT_EQ(wrong.shake_hands("client:zynq"), kMismatch);
  EXPECT_TRUE(wrong.is_closed());
  TestClient right(server.port());
  EXPECT_EQ(right.shake_hands("client:pynq"), kWelcome);
}

TEST(ServerTest, RefusesWhoDoesNotAnswerTheChallenge) {
  RunningServer server(obey_all,
                       with([](auto& options) { options.auth_key.assign(16, std::byte{1}); }));
  TestClient client(server.port());
  EXPECT_EQ(client.shake_hands(), kMismatch);
  EXPECT_TRUE(server.wait_for_log("challenge"));
}

TEST(ServerTest, OneSessionAtATimeAndTheOthersWait) {
  RunningServer server(obey_all);
  TestClient first(server.port());
  ASSERT_EQ(first.shake_hands(), kWelcome);
  TestClient second(server.port());
  std::thread later([&first] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    first.send("e");
    EXPECT_EQ(first.receive(1), "e");
    first.close();
  });
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(second.shake_hands(), kWelcome);
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(90));
  later.join();
}

TEST(ServerTest, SeveralSessionsAtATime) {
  RunningServer server(obey_all, with([](auto& options) { options.max_sessions = 3; }));
  std::vector<TestClient> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back(server.port());
    ASSERT_EQ(clients.back().shake_hands(), kWelcome);
  }
  for (TestClient& client : clients) {
    client.send("e");
    EXPECT_EQ(client.receive(1), "e");
  }
  EXPECT_EQ(server.session_folders(), 3u);
}

TEST(ServerTest, SilentStrangersDoNotKeepClientsOut) {
  RunningServer server(obey_all);
  std::vector<TestClient> strangers;
  for (int i = 0; i < 100; ++i) strangers.emplace_back(server.port());
  strangers[99].send("\x71");
  TestClient client(server.port());
  EXPECT_EQ(client.shake_hands(), kWelcome);
}

TEST(ServerTest, StrangersDoNotFillTheLog) {
  RunningServer server(obey_all, with([](auto& options) { options.key = "pynq"; }));
  for (int i = 0; i < 150; ++i) {
    TestClient stranger(server.port());
    ASSERT_EQ(stranger.shake_hands("client:zynq"), kMismatch);
  }
  ASSERT_TRUE(server.wait_for_log("more in the same minute are not logged"));
  const std::string log = server.log();
  EXPECT_LE(std::count(log.begin(), log.end(), '\n'), 60);
}

TEST(ServerTest, LeavesNothingOpenAfterManySessions) {
  RunningServer server(obey_all);
  const auto serve_some = [&server](int count) {
    for (int i = 0; i < count; ++i) {
      TestClient client(server.port());
      ASSERT_EQ(client.shake_hands(), kWelcome);
      client.send(i % 3 == 0 ? "s" : i % 3 == 1 ? "f" : "q");
      if (i % 3 == 0) client.receive_exception();
    }
  };
  serve_some(6);
  ASSERT_TRUE(server.wait_for_log("6 ended"));
  const std::size_t before = server.open_descriptors();
  serve_some(60);
  ASSERT_TRUE(server.wait_for_log("66 ended"));
  for (int i = 0; i < 1000 && server.open_descriptors() > before; ++i) ::usleep(5000);
  EXPECT_LE(server.open_descriptors(), before);
  EXPECT_EQ(server.session_folders(), 0u);
}

}  // namespace
}  // namespace run_model::rpc
