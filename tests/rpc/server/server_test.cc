// The server around its sessions, which do what the first byte from the client says.
#include <run_model/rpc/server.h>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "tests/error_matcher.h"
#include "tests/rpc/server/running_server.h"

namespace run_model::rpc {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int kWelcome = 0xff271;
constexpr int kMismatch = 0xff273;

void loop_for_ever() {
  for (volatile bool on = true; on;) {
  }
}

void answer(int socket, const std::string& text) {
  static_cast<void>(!::send(socket, text.data(), text.size(), MSG_NOSIGNAL));
}

std::string surroundings() {
  std::string text = "fds:";
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string target = fs::read_symlink(entry.path(), error).string();
    // The listing's own descriptor is gone by now, or shows the listing.
    if (!error && target.find("/fd") == target.npos) text += " " + entry.path().filename().string();
  }
  rlimit core{};
  rlimit file{};
  ::getrlimit(RLIMIT_CORE, &core);
  ::getrlimit(RLIMIT_FSIZE, &file);
  text += " core:" + std::to_string(core.rlim_max) + " file:" + std::to_string(file.rlim_cur);
  text += std::string(" group:") + (::getpgrp() == ::getpid() ? "own" : "shared");
  return text + " folder:" + (fs::is_empty(fs::current_path()) ? "empty" : "used") + "\n";
}

void fill_memory(bool shared) {
  for (int i = 0; i < 200; ++i) {
    constexpr std::size_t kStep = std::size_t{4} << 20;
    void* memory = ::mmap(nullptr, kStep, PROT_READ | PROT_WRITE,
                          (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    std::memset(memory, 1, kStep);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

SessionEnd obey(const SessionStart& start, char command) {
  SessionProgress& progress = *start.progress;
  progress.set_doing("function test of TestModel");
  switch (command) {
    case 's':
      ::raise(SIGSEGV);
      break;
    case 'i':
      ::raise(SIGILL);
      break;
    case 'x':
      std::_Exit(3);
    case 'l':
      loop_for_ever();
      break;
    case 'a':  // part of an answer
      progress.set_phase(SessionPhase::kAnswering);
      answer(start.socket, "part");
      ::raise(SIGSEGV);
      break;
    case 'b':
      return SessionEnd::kBroken;
    case 'c':  // a child in a sleep of its own
      if (::fork() == 0) loop_for_ever();
      break;
    case 'm':
    case 'p':
      fill_memory(command == 'm');
      answer(start.socket, "no memory\n");
      break;
    case 'o':
      std::puts("from the model\x1b[2J");
      std::fflush(stdout);
      start.log("said by the session");
      break;
    case 'f':
      fs::create_directories("a/b");
      fs::create_symlink("/etc", "a/link");
      break;
    case 'w':
      answer(start.socket, surroundings());
      break;
    default:
      answer(start.socket, std::string(1, command));
  }
  return SessionEnd::kShutdown;
}

SessionEnd obey_all(const SessionStart& start) {
  char command = 0;
  while (::recv(start.socket, &command, 1, 0) == 1) {
    if (command == 'q') return SessionEnd::kShutdown;
    start.progress->begin_request();
    start.progress->set_phase(SessionPhase::kReceiving);
    if (obey(start, command) == SessionEnd::kBroken) return SessionEnd::kBroken;
    start.progress->set_phase(SessionPhase::kWaiting);
  }
  return SessionEnd::kDisconnected;
}

// Processes of a group, without those that have ended and that nobody has asked about.
int running_in_group(int group) {
  int count = 0;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "stat");
    std::string text;
    std::getline(file, text);
    // proc(5): "pid (name) state parent group …"; the name may hold anything.
    std::istringstream rest(text.substr(std::min(text.rfind(')') + 1, text.size())));
    char state = 0;
    int parent = 0;
    int found = 0;
    if (rest >> state >> parent >> found && found == group && state != 'Z') ++count;
  }
  return count;
}

ServerOptions with(const std::function<void(ServerOptions&)>& change) {
  ServerOptions options;
  change(options);
  return options;
}

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

TEST(ServerTest, ASessionHasLittleOfTheServer) {
  RunningServer server(obey_all, with([](auto& options) { options.file_bytes = 12345; }));
  TestClient client(server.port());
  ASSERT_EQ(client.shake_hands(), kWelcome);
  client.send("w");
  const std::string expected = "fds: 0 1 2 3 core:0 file:12345 group:own folder:empty\n";
  EXPECT_EQ(client.receive(expected.size()), expected);
}

TEST(ServerTest, SaysWhichSignalEndedASession) {
  RunningServer server(obey_all);
  TestClient client(server.port());
  ASSERT_EQ(client.shake_hands(), kWelcome);
  client.send("s");
  EXPECT_THAT(client.receive_exception(), AllOf(HasSubstr("SIGSEGV (segmentation fault)"),
                                                HasSubstr("function test of TestModel")));
  EXPECT_TRUE(client.is_closed());
  TestClient next(server.port());
  ASSERT_EQ(next.shake_hands(), kWelcome);
  next.send("i");
  EXPECT_THAT(next.receive_exception(), HasSubstr("SIGILL (illegal instruction)"));
}

TEST(ServerTest, SaysThatASessionHasExited) {
  RunningServer server(obey_all);
  TestClient client(server.port());
  ASSERT_EQ(client.shake_hands(), kWelcome);
  client.send("x");
  EXPECT_THAT(client.receive_exception(), HasSubstr("exited with code 3"));
}

TEST(ServerTest, AddsNothingToAnAnswerThatHasBegun) {
  RunningServer server(obey_all);
  TestClient client(server.port());
  ASSERT_EQ(client.shake_hands(), kWelcome);
  client.send("a");
  EXPECT_EQ(client.receive(100), "part");
}

TEST(ServerTest, AClientThatIsStillSendingReadsTheReasonToo) {
  RunningServer server(obey_all);
  TestClient client(server.port());
  ASSERT_EQ(client.shake_hands(), kWelcome);
  client.send("s" + std::string(std::size_t{20} << 20, 'x'));
  EXPECT_THAT(client.receive_exception(), HasSubstr("SIGSEGV"));
}

TEST(ServerTest, EndsASessionWhoseTimeIsOverAsTvmsClientWantsToBeTold) {
  RunningServer server(obey_all);
  TestClient client(server.port());
  ASSERT_EQ(client.shake_hands("client: -timeout=0.2"), kWelcome);
  client.send("l");
  EXPECT_THAT(client.receive_exception(),
              AllOf(StartsWith("RPCSessionTimeoutError: "), HasSubstr("0.2 s")));
}

TEST(ServerTest, TheServersTimeCountsWhereItIsShorter) {
  RunningServer server(obey_all, with([](auto& options) { options.session_seconds = 0.2; }));
  TestClient client(server.port());
  ASSERT_EQ(client.shake_hands("client: -timeout=100"), kWelcome);
  EXPECT_THAT(client.receive_exception(),
              AllOf(StartsWith("RPCSessionTimeoutError: "), HasSubstr("--session-timeout")));
}

TEST(ServerTest, EndsACallThatTakesTooLong) {
  RunningServer server(obey_all, with([](auto& options) { options.call_seconds = 0.3; }));
  TestClient client(server.port());
  ASSERT_EQ(client.shake_hands(), kWelcome);
  // Waiting between calls is not one.
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  client.send("e");
  EXPECT_EQ(client.receive(1), "e");
  client.send("l");
  EXPECT_THAT(client.receive_exception(),
              AllOf(StartsWith("RPCSessionTimeoutError: "), HasSubstr("0.3 s"),
                    HasSubstr("function test of TestModel")));
}

TEST(ServerTest, EndsASessionThatUsesTooMuchMemory) {
  RunningServer server(
      obey_all, with([](auto& options) { options.memory_bytes = std::uint64_t{200} << 20; }));
  TestClient client(server.port());
  ASSERT_EQ(client.shake_hands(), kWelcome);
  client.send("m");
  EXPECT_THAT(client.receive_exception(), HasSubstr("more than the limit of 200 MiB"));
}

// By the system, so that a call fails and the session goes on. An emulator of another machine
// refuses nothing; there it is as above.
TEST(ServerTest, RefusesMemoryBeyondTheLimit) {
  RunningServer server(
      obey_all, with([](auto& options) { options.memory_bytes = std::uint64_t{400} << 20; }));
  TestClient client(server.port());
  ASSERT_EQ(client.shake_hands(), kWelcome);
  client.send("pq");
  const std::string answer = client.receive(1000);
  EXPECT_TRUE(answer == "no memory\n" || answer.find("limit of 400 MiB") != answer.npos) << answer;
}

TEST(ServerTest, EndsASessionWhoseClientIsGone) {
  RunningServer server(obey_all);
  {
    TestClient client(server.port());
    ASSERT_EQ(client.shake_hands(), kWelcome);
    client.send("l");
    ASSERT_TRUE(server.wait_for_log("1 connected"));
  }
  EXPECT_TRUE(server.wait_for_log("the client went away"));
  TestClient next(server.port());
  EXPECT_EQ(next.shake_hands(), kWelcome);
}

TEST(ServerTest, EndsWhatASessionHasStartedToo) {
  RunningServer server(obey_all);
  TestClient client(server.port());
  ASSERT_EQ(client.shake_hands(), kWelcome);
  client.send("ce");
  ASSERT_EQ(client.receive(1), "e");
  const std::string children = "/proc/" + std::to_string(server.pid()) + "/task/" +
                               std::to_string(server.pid()) + "/children";
  // A session's group of processes has its number.
  const int group = std::atoi(TemporaryFolder::read(children).c_str());
  ASSERT_EQ(running_in_group(group), 2);
  client.send("q");
  ASSERT_TRUE(server.wait_for_log("1 ended"));
  for (int i = 0; i < 1000 && running_in_group(group) > 0; ++i) ::usleep(5000);
  EXPECT_EQ(running_in_group(group), 0);
}

TEST(ServerTest, LogsWhatSessionsAndModelsSay) {
  RunningServer server(obey_all);
  TestClient client(server.port());
  ASSERT_EQ(client.shake_hands(), kWelcome);
  client.send("o");
  EXPECT_TRUE(server.wait_for_log("1 said by the session"));
  EXPECT_TRUE(server.wait_for_log("1 prints 'from the model\\x1b[2J'"));
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

TEST(ServerTest, SaysWhatOptionsMakeNoSense) {
  const auto try_options = [](const std::function<void(ServerOptions&)>& change) {
    return [change] { Server(with(change), [](const ServerEvent&) {}, SessionBody(obey_all)); };
  };
  EXPECT_THAT(try_options([](auto& o) { o.tracker = HostPort{"h", 1}; }),
              ThrowsError(ErrorKind::kUsage, "key"));
  EXPECT_THAT(try_options([](auto& o) { o.key = "a b"; }), ThrowsError(ErrorKind::kUsage, "'a b'"));
  EXPECT_THAT(try_options([](auto& o) { o.key = std::string(1000, 'k'); }),
              ThrowsError(ErrorKind::kUsage, "too long"));
  EXPECT_THAT(try_options([](auto& o) { o.max_sessions = 0; }),
              ThrowsError(ErrorKind::kUsage, "sessions"));
  EXPECT_THAT(try_options([](auto& o) { o.port_end = o.port; }),
              ThrowsError(ErrorKind::kUsage, "port"));
  EXPECT_THAT(try_options([](auto& o) { o.session_seconds = -1; }),
              ThrowsError(ErrorKind::kUsage, "session"));
  EXPECT_THAT(try_options([](auto& o) { o.work_folder = "/no/such"; }),
              ThrowsError(ErrorKind::kFile, "/no/such"));
  EXPECT_THAT(try_options([](auto& o) { o.host = "no such host"; }),
              ThrowsError(ErrorKind::kFile, "no such host"));
}

}  // namespace
}  // namespace run_model::rpc
