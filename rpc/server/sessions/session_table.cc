#include "rpc/server/sessions/session_table.h"

#include <algorithm>
#include <utility>

#include <run_model/error.h>
#include "base/text.h"

namespace run_model::rpc {
namespace {

// For a client that thinks between two calls, and one that sends much over a slow network.
constexpr std::chrono::seconds kFarewellTime{60};
// More than these at a time are closed at once, the oldest first.
constexpr std::size_t kMostFarewells = 32;

// To look again whether killed processes are gone.
constexpr std::chrono::milliseconds kOrphanPeriod{10};
// What stop() waits for that, at most.
constexpr std::chrono::seconds kStopWait{5};

}  // namespace

SessionTable::SessionTable(const ServerOptions& options, SessionBody body, EventLog log)
    : options_(options),
      body_(std::move(body)),
      log_(std::move(log)),
      folder_(options.work_folder) {}

int SessionTable::free_slots() const {
  return options_.max_sessions - static_cast<int>(sessions_.size());
}

void SessionTable::start(OwnedFd socket, const std::string& peer, const ClientKey& client,
                         TimePoint now) {
  ServerEvent event{ServerEvent::Kind::kConnected, false, peer, ++last_number_, "connected"};
  WatchLimits limits{options_.session_seconds, false, options_.call_seconds, options_.idle_seconds,
                     options_.memory_bytes};
  const double asked = client.timeout_seconds;
  if (asked > 0 && (limits.session_seconds <= 0 || asked < limits.session_seconds)) {
    limits.session_seconds = asked;
    limits.client_asked = true;
  }
  std::filesystem::path folder;
  if (!orphans_) orphans_.emplace();
  try {
    folder = folder_.make_session_folder(event.session);
    auto process = std::make_unique<SessionProcess>(
        socket.get(), folder,
        ProcessLimits{options_.memory_bytes, options_.file_bytes, options_.landlock}, body_);
    log_(event);
    sessions_.push_back(std::make_unique<SessionWatch>(event, std::move(socket), std::move(process),
                                                       limits, log_, now));
  } catch (const Error& error) {
    if (!folder.empty()) WorkFolder::remove(folder);
    event.kind = ServerEvent::Kind::kRefused;
    event.warning = true;
    event.message = std::string("cannot be served: ") + error.what();
    log_(event);
    // Nothing has shown yet how the client speaks.
    say_farewell(std::move(socket),
                 exception_frame("the server cannot start a session: " + std::string(error.what()),
                                 Encoding::kTvm08),
                 now);
  }
}

void SessionTable::prepare(PollSet& polls) const {
  for (const auto& session : sessions_) session->prepare(polls);
  for (const auto& farewell : farewells_) farewell->prepare(polls);
  if (orphans_ && orphans_->left()) polls.wake_at(Clock::now() + kOrphanPeriod);
}

void SessionTable::step(TimePoint now) {
  for (const auto& session : sessions_) {
    session->step(now);
    if (session->is_over()) end_of(*session, now);
  }
  const auto ended =
      std::erase_if(sessions_, [](const auto& session) { return session->is_over(); });
  if (orphans_ && (ended > 0 || orphans_->left())) end_orphans();
  for (const auto& farewell : farewells_) farewell->step(now);
  std::erase_if(farewells_, [](const auto& farewell) { return farewell->is_over(); });
}

void SessionTable::stop() {
  for (const auto& session : sessions_) session->kill_for("the server stops");
  const TimePoint deadline = Clock::now() + kStopWait;
  while ((!sessions_.empty() || (orphans_ && orphans_->left())) && Clock::now() < deadline) {
    PollSet polls;
    prepare(polls);
    polls.wait();
    step(Clock::now());
  }
  sessions_.clear();
  farewells_.clear();
}

void SessionTable::end_orphans() {
  std::vector<pid_t> processes;
  for (const auto& session : sessions_) processes.push_back(session->process());
  orphans_->end_all_but(processes);
}

void SessionTable::say_farewell(OwnedFd socket, ByteVector frame, TimePoint now) {
  if (farewells_.size() >= kMostFarewells) farewells_.erase(farewells_.begin());
  farewells_.push_back(
      std::make_unique<Farewell>(std::move(socket), std::move(frame), now + kFarewellTime));
}

void SessionTable::end_of(SessionWatch& session, TimePoint now) {
  const std::filesystem::path folder = folder_.session_folder(session.number());
  if (!WorkFolder::remove(folder)) {
    log_({ServerEvent::Kind::kSessionLog, true, "", session.number(),
          "left something in " + path_in_quotes(folder) + " that cannot be removed"});
  }
  if (session.is_client_there()) {
    say_farewell(session.take_socket(), exception_frame(session.last_words(), session.encoding()),
                 now);
  }
}

}  // namespace run_model::rpc
