// Clients before and between their sessions.
#include <run_model/rpc/server.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/text.h"
#include "rpc/server/authentication.h"
#include "rpc/server/reception.h"
#include "tests/rpc/server/running_server.h"
#include "tests/temporary_folder.h"

namespace run_model::rpc {
namespace {

using ::testing::AllOf;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Lt;

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

// As programs that ignore the ends of their children hand it down (nohup scripts, some init
// systems).
TEST(ServerTest, SeesTheEndsOfSessionsThoughTheirSignalWasIgnored) {
  ::signal(SIGCHLD, SIG_IGN);
  RunningServer server(obey_all);
  ::signal(SIGCHLD, SIG_DFL);
  for (int i = 0; i < 3; ++i) {
    TestClient client(server.port());
    ASSERT_EQ(client.shake_hands(), kWelcome);
    client.send("q");
  }
  EXPECT_TRUE(server.wait_for_log("3 ended"));
}

// Two thousand connections a second that say nothing.
class Flood {
 public:
  Flood(int port, const char* source) : thread_([this, port, source] { run(port, source); }) {}
  ~Flood() {
    stop_ = true;
    thread_.join();
  }
  int connections() const { return connections_; }

 private:
  void run(int port, const char* source) {
    std::deque<TestClient> strangers;
    try {
      while (!stop_) {
        for (int i = 0; i < 20; ++i, ++connections_) {
          if (strangers.size() >= 200) strangers.pop_front();
          strangers.emplace_back(port, source);
        }
        ::usleep(10'000);
      }
    } catch (const std::runtime_error&) {
      // The server has stopped.
    }
  }

  std::atomic<bool> stop_{false};
  std::atomic<int> connections_{0};
  std::thread thread_;
};

// A handshake of three pieces with 50 ms between, as over a slow network.
int shake_hands_slowly(TestClient& client) {
  client.send(std::string_view("\x71\xf2\x0f\0", 4));
  ::usleep(50'000);
  client.send(std::string_view("\x07\0\0\0", 4));
  ::usleep(50'000);
  client.send("client:");
  return client.receive(4 + 4 + 7).ends_with("server:") ? kWelcome : -1;
}

TEST(ServerTest, ServesWhileStrangersFloodIt) {
  RunningServer server(obey_all, with([](auto& options) { options.max_sessions = 4; }));
  for (const char* source : {"127.0.0.2", "127.0.0.1"}) {
    const Flood flood(server.port(), source);
    while (flood.connections() < 200) ::usleep(1000);
    for (int i = 0; i < 10; ++i) {
      TestClient client(server.port());
      ASSERT_EQ(shake_hands_slowly(client), kWelcome) << source << " " << i;
      client.send("e");
      EXPECT_EQ(client.receive(1), "e");
    }
  }
}

// Sessions, the tracker and signals have their turn after so many strangers.
TEST(ReceptionTest, TakesSoManyAtATimeOnly) {
  const TemporaryFolder folder;
  const ServerOptions options = with([&](auto& o) { o.work_folder = folder.path(); });
  int refused = 0;
  const EventLog log = [&refused](const ServerEvent& event) {
    if (event.kind == ServerEvent::Kind::kRefused) ++refused;
  };
  SessionTable sessions(options, obey_all, log);
  Listener listener("127.0.0.1", 0, 1);
  Reception reception(listener, sessions, options, [](const std::string&) { return true; }, log);
  std::vector<TestClient> strangers;
  for (int i = 0; i < 40; ++i) {
    strangers.emplace_back(listener.address().port);
    strangers.back().send("GET / HTTP/1.1");
  }
  ::usleep(50'000);
  reception.step(Clock::now());
  EXPECT_THAT(refused, AllOf(Gt(0), Lt(20)));
  for (int i = 0; i < 5; ++i) reception.step(Clock::now());
  EXPECT_EQ(refused, 40);
}

TEST(ServerTest, HearsThatItIsToStopWhileStrangersFloodIt) {
  auto server = std::make_unique<RunningServer>(obey_all);
  const Flood flood(server->port(), "127.0.0.2");
  while (flood.connections() < 200) ::usleep(1000);
  const auto start = std::chrono::steady_clock::now();
  server.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

// scripts/rpc_auth_proxy gives a server that says nothing ten seconds.
TEST(ServerTest, ChallengesClientsWhileItIsBusy) {
  const std::vector<std::byte> key(16, std::byte{1});
  RunningServer server(obey_all, with([&](auto& options) { options.auth_key = key; }));
  std::vector<TestClient> clients;
  for (int i = 0; i < 2; ++i) {
    TestClient& client = clients.emplace_back(server.port());
    const Nonce own = random_nonce();
    client.send("\x71\xf2\x0a" + std::string(1, '\0') + std::string(as_text(own)));
    const std::string answer = client.receive(4 + 32);
    ASSERT_EQ(answer.size(), 36u) << i;
    Nonce other;
    std::memcpy(other.data(), answer.data() + 4, other.size());
    client.send(as_text(client_proof(key, own, other)));
    ASSERT_EQ(client.receive(4 + 32).size(), 36u);
    if (i == 0) {
      ASSERT_EQ(client.shake_hands(), kWelcome);
    }
  }
  clients[0].send("q");
  EXPECT_EQ(clients[1].shake_hands(), kWelcome);
}

// A busy server still learns who comes: strangers are sent away, the others wait for their turn.
TEST(ServerTest, RefusesStrangersWhileItIsBusy) {
  RunningServer server(obey_all, with([](auto& options) { options.key = "pynq"; }));
  TestClient busy(server.port());
  ASSERT_EQ(busy.shake_hands("client:pynq"), kWelcome);
  TestClient wrong(server.port());
  EXPECT_EQ(wrong.shake_hands("client:zynq"), kMismatch);
  TestClient next(server.port());
  std::thread later([&busy] {
    ::usleep(100'000);
    busy.close();
  });
  EXPECT_EQ(next.shake_hands("client:pynq"), kWelcome);
  later.join();
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

TEST(ServerTest, TellsClientsWhenItStops) {
  auto server = std::make_unique<RunningServer>(obey_all);
  TestClient client(server->port());
  ASSERT_EQ(client.shake_hands(), kWelcome);
  client.send("l");
  ASSERT_TRUE(server->wait_for_log("1 connected"));
  server.reset();
  EXPECT_THAT(client.receive_exception(), HasSubstr("the server stops"));
}

}  // namespace
}  // namespace run_model::rpc
