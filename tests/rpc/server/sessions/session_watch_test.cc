// What ends a session, what its client is told of that, and what is left of it.
#include "rpc/server/sessions/session_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "tests/rpc/server/running_server.h"

namespace run_model::rpc {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

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

// Until what is going on has ended, for at most some seconds.
template <typename Condition>
void wait_while(Condition goes_on) {
  for (int i = 0; i < 1000 && goes_on(); ++i) ::usleep(5000);
}

TEST(SessionWatchTest, ASessionHasLittleOfTheServer) {
  auto [server, client] = Served(with([](auto& options) { options.file_bytes = 12345; }));
  client.send("w");
  const std::string expected = "fds: 0 1 2 3 core:0 file:12345 group:own folder:empty\n";
  EXPECT_EQ(client.receive(expected.size()), expected);
}

TEST(SessionWatchTest, SaysWhichSignalEndedASession) {
  auto [server, client] = Served();
  client.send("s");
  EXPECT_THAT(client.receive_exception(), AllOf(HasSubstr("SIGSEGV (segmentation fault)"),
                                                HasSubstr("function test of TestModel")));
  EXPECT_TRUE(client.is_closed());
  TestClient next(server.port());
  ASSERT_EQ(next.shake_hands(), kWelcome);
  next.send("i");
  EXPECT_THAT(next.receive_exception(), HasSubstr("SIGILL (illegal instruction)"));
}

TEST(SessionWatchTest, SaysThatASessionHasExited) {
  auto [server, client] = Served();
  client.send("x");
  EXPECT_THAT(client.receive_exception(), HasSubstr("exited with code 3"));
}

TEST(SessionWatchTest, AddsNothingToAnAnswerThatHasBegun) {
  auto [server, client] = Served();
  client.send("a");
  EXPECT_EQ(client.receive(100), "part");
}

TEST(SessionWatchTest, AClientThatIsStillSendingReadsTheReasonToo) {
  auto [server, client] = Served();
  client.send("s" + std::string(std::size_t{20} << 20, 'x'));
  EXPECT_THAT(client.receive_exception(), HasSubstr("SIGSEGV"));
}

TEST(SessionWatchTest, EndsASessionWhoseTimeIsOverAsTvmsClientWantsToBeTold) {
  auto [server, client] = Served({}, "client: -timeout=0.2");
  client.send("l");
  EXPECT_THAT(client.receive_exception(),
              AllOf(StartsWith("RPCSessionTimeoutError: "), HasSubstr("0.2 s")));
}

// Longer than clocks count: it is no reason to forget the time of the others.
TEST(SessionWatchTest, ATimeWithoutMeasureStopsNoOtherTimer) {
  RunningServer server(obey_all, with([](auto& options) { options.max_sessions = 2; }));
  TestClient endless(server.port());
  ASSERT_EQ(endless.shake_hands("client: -timeout=1e10"), kWelcome);
  endless.send("e");
  EXPECT_EQ(endless.receive(1), "e");
  TestClient client(server.port());
  ASSERT_EQ(client.shake_hands("client: -timeout=0.2"), kWelcome);
  client.send("l");
  EXPECT_THAT(client.receive_exception(), HasSubstr("0.2 s"));
  endless.send("f");
  EXPECT_EQ(endless.receive_exception(), "");
}

TEST(SessionWatchTest, TheServersTimeCountsWhereItIsShorter) {
  auto [server, client] =
      Served(with([](auto& options) { options.session_seconds = 0.2; }), "client: -timeout=100");
  EXPECT_THAT(client.receive_exception(),
              AllOf(StartsWith("RPCSessionTimeoutError: "), HasSubstr("--session-timeout")));
}

TEST(SessionWatchTest, EndsACallThatTakesTooLong) {
  auto [server, client] = Served(with([](auto& options) { options.call_seconds = 0.3; }));
  // Waiting between calls is not one.
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  client.send("e");
  EXPECT_EQ(client.receive(1), "e");
  client.send("l");
  EXPECT_THAT(client.receive_exception(),
              AllOf(StartsWith("RPCSessionTimeoutError: "), HasSubstr("0.3 s"),
                    HasSubstr("function test of TestModel")));
}

TEST(SessionWatchTest, EndsASessionWhoseClientHasForgottenIt) {
  auto [server, client] = Served(with([](auto& options) { options.idle_seconds = 1.5; }));
  for (int i = 0; i < 4; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    client.send("e");
    ASSERT_EQ(client.receive(1), "e") << i;
  }
  EXPECT_THAT(client.receive_exception(), AllOf(StartsWith("RPCSessionTimeoutError: "),
                                                HasSubstr("1.5 s"), HasSubstr("--idle-timeout")));
}

TEST(SessionWatchTest, ARequestThatTakesLongIsNotIdle) {
  auto [server, client] = Served(with([](auto& options) {
    options.idle_seconds = 0.3;
    options.call_seconds = 1;
  }));
  client.send("l");
  EXPECT_THAT(client.receive_exception(), HasSubstr("has taken longer than 1 s"));
}

// What the kernel has of Landlock; -1 where it has none.
long landlock_version() { return ::syscall(444, nullptr, 0, 1); }

TEST(SessionWatchTest, LetsASessionChangeItsOwnFolderOnly) {
  if (landlock_version() < 6) GTEST_SKIP() << "needs Landlock of Linux 6.12";
  auto [server, client] = Served();
  client.send("u");
  EXPECT_EQ(client.receive_line(), "own:yes null:yes beside:no connect:no signal:no");
}

TEST(SessionWatchTest, LetsItDoAllWhereThatIsAskedFor) {
  auto [server, client] = Served(with([](auto& options) { options.landlock = false; }));
  client.send("u");
  EXPECT_EQ(client.receive_line(), "own:yes null:yes beside:yes connect:yes signal:yes");
}

TEST(SessionWatchTest, EndsASessionThatUsesTooMuchMemory) {
  RunningServer server(
      obey_all, with([](auto& options) { options.memory_bytes = std::uint64_t{200} << 20; }));
  TestClient client(server.port());
  ASSERT_EQ(client.shake_hands(), kWelcome);
  client.send("m");
  EXPECT_THAT(client.receive_exception(), HasSubstr("more than the limit of 200 MiB"));
}

// By the system, so that a call fails and the session goes on. An emulator of another machine
// refuses nothing; there it is as above.
TEST(SessionWatchTest, RefusesMemoryBeyondTheLimit) {
  RunningServer server(
      obey_all, with([](auto& options) { options.memory_bytes = std::uint64_t{400} << 20; }));
  TestClient client(server.port());
  ASSERT_EQ(client.shake_hands(), kWelcome);
  client.send("pq");
  const std::string answer = client.receive(1000);
  EXPECT_TRUE(answer == "no memory\n" || answer.find("limit of 400 MiB") != answer.npos) << answer;
}

TEST(SessionWatchTest, EndsASessionWhoseClientIsGone) {
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

TEST(SessionWatchTest, EndsWhatASessionHasStartedToo) {
  auto [server, client] = Served();
  client.send("ce");
  ASSERT_EQ(client.receive(1), "e");
  const std::string children = "/proc/" + std::to_string(server.pid()) + "/task/" +
                               std::to_string(server.pid()) + "/children";
  // A session's group of processes has its number.
  const int group = std::atoi(TemporaryFolder::read(children).c_str());
  ASSERT_EQ(running_in_group(group), 2);
  client.send("q");
  ASSERT_TRUE(server.wait_for_log("1 ended"));
  wait_while([&] { return running_in_group(group) > 0; });
  EXPECT_EQ(running_in_group(group), 0);
}

// An emulator of another machine may not pass this on.
bool has_subreapers() {
  int on = 0;
  return ::prctl(PR_GET_CHILD_SUBREAPER, &on, 0, 0, 0) == 0;
}

// It has a session and a group of its own, and its parent has ended.
TEST(SessionWatchTest, EndsWhatHasLeftTheSessionsGroup) {
  if (!has_subreapers()) GTEST_SKIP() << "needs subreapers";
  auto [server, client] = Served();
  client.send("d");
  const int daemon = std::atoi(client.receive_line().c_str());
  ASSERT_GT(daemon, 0);
  const int group = ::getpgid(daemon);
  wait_while([&] { return running_in_group(group) > 1; });
  ASSERT_EQ(running_in_group(group), 1);
  client.send("q");
  ASSERT_TRUE(server.wait_for_log("1 ended"));
  wait_while([&] { return ::kill(daemon, 0) == 0; });
  EXPECT_NE(::kill(daemon, 0), 0);
}

TEST(SessionWatchTest, EndsItWithASessionThatCrashesToo) {
  if (!has_subreapers()) GTEST_SKIP() << "needs subreapers";
  auto [server, client] = Served();
  client.send("d");
  const int daemon = std::atoi(client.receive_line().c_str());
  ASSERT_GT(daemon, 0);
  client.send("s");
  EXPECT_THAT(client.receive_exception(), HasSubstr("SIGSEGV"));
  wait_while([&] { return ::kill(daemon, 0) == 0; });
  EXPECT_NE(::kill(daemon, 0), 0);
}

TEST(SessionWatchTest, KeepsTemporaryFilesInTheSessionsFolder) {
  auto [server, client] = Served();
  client.send("t");
  EXPECT_EQ(client.receive(3), "own");
}

TEST(SessionWatchTest, KeepsWhatACrashSaysWithoutTheEndOfALine) {
  auto [server, client] = Served();
  client.send("n");
  EXPECT_THAT(client.receive_exception(), HasSubstr("SIGABRT"));
  EXPECT_TRUE(server.wait_for_log("1 prints 'terminate called after throwing'"));
}

TEST(SessionWatchTest, LogsWhatSessionsAndModelsSay) {
  auto [server, client] = Served();
  client.send("o");
  EXPECT_TRUE(server.wait_for_log("1 said by the session"));
  EXPECT_TRUE(server.wait_for_log("1 prints 'from the model\\x1b[2J'"));
}

}  // namespace
}  // namespace run_model::rpc
