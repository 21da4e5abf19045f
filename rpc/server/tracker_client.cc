#include "rpc/server/tracker_client.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "rpc/server/sockets.h"

namespace run_model::rpc {
namespace {

// As often as TVM's server.
constexpr std::chrono::seconds kQuestionPeriod{2};
constexpr std::chrono::seconds kAnswerTime{10};

}  // namespace

TrackerClient::TrackerClient(HostPort tracker, std::string key, Advertised advertised, EventLog log)
    : connection_(std::move(tracker)),
      key_(std::move(key)),
      advertised_(std::move(advertised)),
      log_(std::move(log)),
      keys_(key_) {}

void TrackerClient::prepare(PollSet& polls) const {
  connection_.prepare(polls);
  const int socket = connection_.socket();
  if (socket < 0) return;
  polls.watch(socket, static_cast<short>(sending_.empty() ? POLLIN : POLLIN | POLLOUT));
  if (!magic_seen_ || awaited_) {
    polls.wake_at(answer_deadline_);
  } else if (keys_.size() > 0) {
    polls.wake_at(next_question_);
  }
}

void TrackerClient::step(TimePoint now) {
  if (connection_.step(now)) begin(now);
  if (connection_.socket() < 0) {
    if (!told_ && !connection_.why_not().empty()) lose(now, connection_.why_not());
    return;
  }
  receive(now);
  if (connection_.socket() < 0) return;
  if ((!magic_seen_ || awaited_) && now >= answer_deadline_) {
    lose(now, "it does not answer");
    return;
  }
  if (registered_) fill_up();
  // A session is not disturbed by questions: while no key is out there is nothing to ask.
  if (registered_ && requests_.empty() && !awaited_ && keys_.size() > 0 && now >= next_question_) {
    requests_.push_back({pending_matchkeys_message(), Answer::kMatchkeys});
    next_question_ = now + kQuestionPeriod;
  }
  send(now);
}

void TrackerClient::log(bool warning, std::string message) const {
  log_({ServerEvent::Kind::kTracker, warning, to_text(connection_.address()), 0,
        std::move(message)});
}

void TrackerClient::begin(TimePoint now) {
  magic_seen_ = registered_ = false;
  requests_.clear();
  received_.clear();
  awaited_.reset();
  keys_.clear();
  // The tracker takes what comes with the magic number for a part of it: the rest has to wait.
  sending_.clear();
  append_number<std::int32_t>(sending_, kTrackerMagic);
  answer_deadline_ = now + kAnswerTime;
}

void TrackerClient::lose(TimePoint now, const std::string& why) {
  if (connection_.socket() >= 0) connection_.fail(now, why);
  if (told_) return;
  told_ = true;
  log(true, "the tracker is away (" + why + "); trying again until it is back");
}

void TrackerClient::fill_up() {
  while (static_cast<int>(keys_.size()) < free_slots_) {
    requests_.push_back({put_message(key_, keys_.add(), advertised_), Answer::kSuccess});
  }
}

void TrackerClient::send(TimePoint now) {
  if (sending_.empty() && magic_seen_ && !awaited_ && !requests_.empty()) {
    sending_ = std::move(requests_.front().bytes);
    awaited_ = requests_.front().answer;
    requests_.pop_front();
    answer_deadline_ = now + kAnswerTime;
  }
  if (sending_.empty()) return;
  const long taken = send_now(connection_.socket(), sending_.data(), sending_.size());
  if (taken < 0) {
    lose(now, "it has closed the connection");
    return;
  }
  sending_.erase(sending_.begin(), sending_.begin() + taken);
}

void TrackerClient::receive(TimePoint now) {
  std::array<std::byte, 4096> buffer;
  while (connection_.socket() >= 0) {
    const long got = receive_now(connection_.socket(), buffer.data(), buffer.size());
    if (got == 0) return;
    if (got < 0) {
      lose(now, "it has closed the connection");
      return;
    }
    received_.insert(received_.end(), buffer.begin(), buffer.begin() + got);
    while (connection_.socket() >= 0 && take_message(now)) {
    }
  }
}

bool TrackerClient::take_message(TimePoint now) {
  constexpr std::size_t kNumber = sizeof(std::int32_t);
  if (received_.size() < kNumber) return false;
  const auto number = number_at<std::int32_t>(received_);
  if (!magic_seen_) {
    if (number != kTrackerMagic) {
      lose(now, "what answers there is no tracker");
      return false;
    }
    magic_seen_ = true;
    received_.erase(received_.begin(), received_.begin() + kNumber);
    requests_.push_front({update_info_message(key_, advertised_), Answer::kSuccess});
    return true;
  }
  if (!awaited_ || number < 0 || number > kMostTrackerBytes) {
    lose(now, "it sends what was not asked for");
    return false;
  }
  const std::size_t end = kNumber + static_cast<std::size_t>(number);
  if (received_.size() < end) return false;
  const std::string json(as_text(received_).substr(kNumber, static_cast<std::size_t>(number)));
  received_.erase(received_.begin(), received_.begin() + static_cast<std::ptrdiff_t>(end));
  handle(json, now);
  return true;
}

void TrackerClient::handle(const std::string& json, TimePoint now) {
  const Answer answer = *awaited_;
  awaited_.reset();
  if (answer == Answer::kMatchkeys) {
    const auto pending = read_matchkeys(json);
    if (!pending) {
      lose(now, "it answers what makes no sense");
      return;
    }
    if (!keys_.update(*pending, now).empty()) {
      log(false, "a client was sent here and has not come; its key is replaced");
    }
    return;
  }
  if (!is_success(json)) {
    lose(now, "it has refused the registration");
    return;
  }
  if (registered_) return;
  registered_ = true;
  told_ = false;
  connection_.succeed();
  next_question_ = now + kQuestionPeriod;
  log(false, "registered with the tracker as " + key_);
}

}  // namespace run_model::rpc
