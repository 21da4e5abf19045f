// The registration with a tracker that the test plays itself.
#include "rpc/server/tracker_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "rpc/server/sockets.h"
#include "tests/has_elements.h"

namespace run_model::rpc {
namespace {

using Json = nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

class TrackerClientTest : public ::testing::Test {
 protected:
  // Lets the client do what it can do now. `later` is how much later that is.
  void step(Clock::duration later = {}) {
    for (int round = 0; round < 20; ++round) {
      PollSet polls;
      client_.prepare(polls);
      polls.wake_at(Clock::now() + std::chrono::milliseconds(2));
      polls.wait();
      client_.step(Clock::now() + later);
    }
  }
  void accept() {
    step();
    std::string peer;
    connection_ = tracker_.accept(peer);
    ASSERT_TRUE(connection_);
  }
  std::string receive(std::size_t bytes) {
    std::string text(bytes, '\0');
    step();
    const ssize_t got = ::recv(connection_.get(), text.data(), bytes, MSG_DONTWAIT);
    return got > 0 ? text.substr(0, static_cast<std::size_t>(got)) : "";
  }
  Json message() {
    const std::string length = receive(4);
    if (length.size() != 4) return Json("nothing");
    return Json::parse(receive(
        static_cast<std::size_t>(number_at<std::int32_t>(std::as_bytes(std::span(length))))));
  }
  void send_raw(const std::string& bytes) {
    ASSERT_EQ(::send(connection_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  static std::string number(std::int32_t value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void send(const std::string& json) {
    send_raw(number(static_cast<std::int32_t>(json.size())) + json);
  }
  // Up to the first matchkey, which it returns.
  std::string register_once() {
    accept();
    EXPECT_EQ(receive(4), number(0x2f271));
    send_raw(number(0x2f271));
    EXPECT_EQ(message(), Json::parse(R"([5, {"key": "server:pynq", "addr": [null, 9090]}])"));
    send("0");
    const Json put = message();
    EXPECT_EQ(put[0], 3);
    EXPECT_EQ(put[1], "pynq");
    EXPECT_EQ(put[2][0], 9090);
    EXPECT_TRUE(put[3].is_null());
    return put[2][1];
  }

  std::vector<std::string> log_;
  Listener tracker_{"127.0.0.1", 0, 1};
  OwnedFd connection_;
  TrackerClient client_{tracker_.address(), "pynq", {"", 9090}, [this](const ServerEvent& event) {
                          log_.push_back(event.message);
                        }};
};

TEST_F(TrackerClientTest, RegistersAKeyForEachSessionThatCouldStart) {
  client_.set_free_slots(2);
  const std::string first = register_once();
  send("0");
  const std::string second = message()[2][1];
  EXPECT_THAT(first, StartsWith("pynq:0."));
  EXPECT_NE(first, second);
  EXPECT_THAT(log_, ElementsAre(HasSubstr("registered")));
  EXPECT_TRUE(client_.take(first));
  EXPECT_FALSE(client_.take(first));
}

TEST_F(TrackerClientTest, PutsAnotherKeyAfterTheSession) {
  client_.set_free_slots(1);
  const std::string first = register_once();
  send("0");
  EXPECT_TRUE(client_.take(first));
  client_.set_free_slots(0);
  EXPECT_EQ(message(), "nothing");
  client_.set_free_slots(1);
  EXPECT_EQ(message()[0], 3);
}

TEST_F(TrackerClientTest, ReplacesAKeyThatWasGivenAwayAndNotUsed) {
  client_.set_free_slots(1);
  const std::string first = register_once();
  send("0");
  step(std::chrono::seconds(3));
  EXPECT_EQ(message(), Json::parse("[7]"));
  send("[]");
  step(std::chrono::seconds(3));
  step(std::chrono::seconds(9));
  EXPECT_EQ(message(), Json::parse("[7]"));
  send("[]");
  step(std::chrono::seconds(12));
  const Json put = message();
  EXPECT_EQ(put[0], 3);
  EXPECT_NE(put[2][1], first);
  EXPECT_FALSE(client_.take(first));
}

TEST_F(TrackerClientTest, RegistersAnewWithANewTracker) {
  client_.set_free_slots(1);
  const std::string first = register_once();
  send("0");
  connection_.reset();
  step();
  EXPECT_THAT(log_.back(), HasSubstr("away"));
  step(std::chrono::seconds(2));
  EXPECT_NE(register_once(), first);
  EXPECT_FALSE(client_.take(first));
  EXPECT_THAT(log_.back(), HasSubstr("registered"));
}

TEST_F(TrackerClientTest, TriesLessAndLessOftenWhenNobodyIsThere) {
  step();  // connects
  int attempts = 0;
  // Every second of two minutes: 1, 2, 4, 8, 16 and then 30 s apart.
  for (int second = 0; second < 120; ++second) {
    const TimePoint now = Clock::now() + std::chrono::seconds(second);
    client_.step(now);
    std::string peer;
    while (const OwnedFd connection = tracker_.accept(peer)) ++attempts;
    client_.step(now);
    client_.step(now);
  }
  EXPECT_GE(attempts, 5);
  EXPECT_LE(attempts, 9);
  EXPECT_EQ(log_.size(), 1u);
}

TEST_F(TrackerClientTest, LeavesWhatIsNoTracker) {
  accept();
  send_raw("HTTP/1.1 400 Bad Request");
  step();
  EXPECT_THAT(log_, ElementsAre(HasSubstr("no tracker")));
}

TEST_F(TrackerClientTest, SurvivesAnswersThatMakeNoSense) {
  const std::vector<std::string> answers{number(2) + "{]",
                                         number(3) + "\"0\"",
                                         number(1) + "1",
                                         number(-1) + "0",
                                         number(1 << 30),
                                         number(0),
                                         number(4) + "\xff\xff\xff\xff",
                                         number(1) + "0" + number(1) + "0" + number(1) + "0"};
  for (const std::string& answer : answers) {
    TrackerClient other(tracker_.address(), "pynq", {"", 9090},
                        [this](const ServerEvent& event) { log_.push_back(event.message); });
    log_.clear();
    const auto turn = [&] {
      for (int i = 0; i < 5; ++i) other.step(Clock::now());
    };
    turn();
    std::string peer;
    OwnedFd connection;
    while (OwnedFd next = tracker_.accept(peer)) connection = std::move(next);
    ASSERT_TRUE(connection);
    const std::string bytes = number(0x2f271);
    ::send(connection.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    turn();
    ::send(connection.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    turn();
    ASSERT_FALSE(log_.empty()) << answer;
    EXPECT_THAT(log_.back(), HasSubstr("away")) << answer;
  }
}

TEST(MatchkeysTest, AreWhatTvmsTrackerTakesApart) {
  Matchkeys keys("pynq");
  const std::string key = keys.add();
  EXPECT_THAT(key, MatchesRegex("pynq:0\\.[0-9]+"));
  EXPECT_NE(keys.add(), key);
}

TEST(MatchkeysTest, ServeOnce) {
  Matchkeys keys("pynq");
  const std::string key = keys.add();
  EXPECT_FALSE(keys.take("pynq"));
  EXPECT_FALSE(keys.take("pynq:0.5"));
  EXPECT_TRUE(keys.take(key));
  EXPECT_FALSE(keys.take(key));
}

TEST(MatchkeysTest, AreReplacedWhenWhoGotThemDoesNotCome) {
  using std::chrono::seconds;
  Matchkeys keys("pynq");
  const std::string waiting = keys.add();
  const std::string given = keys.add();
  const TimePoint start = Clock::now();
  EXPECT_THAT(keys.update({waiting, given}, start), IsEmpty());
  EXPECT_THAT(keys.update({waiting}, start + seconds(60)), IsEmpty());
  EXPECT_THAT(keys.update({waiting}, start + seconds(65)), IsEmpty());
  EXPECT_TRUE(has_elements(keys.update({waiting}, start + seconds(67)), {given}));
  EXPECT_FALSE(keys.take(given));
  EXPECT_TRUE(keys.take(waiting));
}

TEST(TrackerMessagesTest, ReadsListsOfTextsOnly) {
  EXPECT_TRUE(read_matchkeys("[]"));
  EXPECT_TRUE(has_elements(*read_matchkeys(R"(["a", "b"])"), {"a", "b"}));
  for (const char* text : {"", "0", "{}", "[1]", "[[\"a\"]]", "[\"a\"", "null"}) {
    EXPECT_FALSE(read_matchkeys(text)) << text;
  }
  EXPECT_TRUE(is_success("0"));
  for (const char* text : {"", "-1", "[0]", "false", "0.0", "null"}) {
    EXPECT_FALSE(is_success(text)) << text;
  }
}

}  // namespace
}  // namespace run_model::rpc
