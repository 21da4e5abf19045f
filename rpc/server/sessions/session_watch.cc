#include "rpc/server/sessions/session_watch.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <utility>

#include "base/text.h"
#include "rpc/server/sockets.h"

namespace run_model::rpc {
namespace {

using std::chrono::milliseconds;

// For a session to notice by itself that its client is gone.
constexpr std::chrono::seconds kGrace{3};
constexpr milliseconds kMemoryPeriod{200};
constexpr milliseconds kLongestPeriod{1000};
constexpr milliseconds kShortestPeriod{20};
// When the process is about to be gone.
constexpr milliseconds kEndPeriod{10};
// Of a session in the log: a model that prints without end fills no disk.
constexpr int kMostLines = 200;
constexpr std::size_t kLongestReport = 1000;

// TVM's client raises its own class of error for this beginning.
constexpr char kTimeoutError[] = "RPCSessionTimeoutError: ";

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof(text), seconds < 10 ? "%.1f s" : "%.0f s", seconds);
  return text;
}

// As the user wrote it: 1.5 s, 600 s.
std::string limit_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g s", seconds);
  return text;
}

std::string mebibytes(std::uint64_t bytes) {
  return std::to_string((bytes + (1 << 19)) >> 20) + " MiB";
}

// On one line, whatever the process has written.
std::string plain(const std::string& text, std::size_t limit) {
  const std::string quoted = in_quotes(text, limit);
  return quoted.substr(1, quoted.size() - 2);
}

// How long ago something came or went on the connection; empty where the system does not tell.
std::optional<Clock::duration> idle_time(int socket) {
  tcp_info info{};
  socklen_t length = sizeof(info);
  // An emulator of another machine may give less than asked for.
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 ||
      length < offsetof(tcp_info, tcpi_last_data_recv) + sizeof(info.tcpi_last_data_recv)) {
    return std::nullopt;
  }
  return milliseconds(std::min(info.tcpi_last_data_recv, info.tcpi_last_data_sent));
}

struct KnownSignal {
  int number;
  const char* text;
  const char* advice;
};

constexpr char kMemoryAdvice[] =
    "compiled code used memory that is not its own: check that number, shapes and types of its "
    "arguments are those that it was compiled for";

constexpr std::array<KnownSignal, 9> kKnownSignals{{
    {SIGSEGV, "SIGSEGV (segmentation fault)", kMemoryAdvice},
    {SIGBUS, "SIGBUS (bus error)", kMemoryAdvice},
    {SIGILL, "SIGILL (illegal instruction)",
     "the code has an instruction that this CPU does not know: compile it for this board's CPU, "
     "with -mcpu and -mattr of the target"},
    {SIGFPE, "SIGFPE (arithmetic error)", "compiled code divided an integer by zero"},
    {SIGABRT, "SIGABRT (abort)", "the code stopped itself, as after finding its memory damaged"},
    {SIGKILL, "SIGKILL (killed)",
     "nobody but the system does that, most likely because memory ran out: see dmesg on the board"},
    {SIGSYS, "SIGSYS (bad system call)", ""},
    {SIGTRAP, "SIGTRAP (trap)", "the code stopped itself"},
    {SIGTERM, "SIGTERM (terminated)", ""},
}};

const KnownSignal* find(int signal) {
  const auto* const found =
      std::find_if(kKnownSignals.begin(), kKnownSignals.end(),
                   [signal](const auto& known) { return known.number == signal; });
  return found == kKnownSignals.end() ? nullptr : found;
}

// "SIGSEGV (segmentation fault)", "signal 35".
std::string signal_text(int signal) {
  const KnownSignal* known = find(signal);
  return known != nullptr ? known->text : "signal " + std::to_string(signal);
}

// What the user can do about a session that ended by this signal: half a sentence, or empty.
std::string signal_advice(int signal) {
  const KnownSignal* known = find(signal);
  return known != nullptr ? known->advice : "";
}

}  // namespace

SessionWatch::SessionWatch(ServerEvent event, OwnedFd socket,
                           std::unique_ptr<SessionProcess> process, const WatchLimits& limits,
                           EventLog log, TimePoint now)
    : event_(std::move(event)),
      socket_(std::move(socket)),
      process_(std::move(process)),
      limits_(limits),
      log_(std::move(log)),
      start_(now),
      next_memory_check_(now),
      idle_since_(now) {}

void SessionWatch::prepare(PollSet& polls) const {
  const TimePoint now = Clock::now();
  if (process_->output() >= 0) polls.watch(process_->output(), POLLIN);
  if (killed_ || process_->output() < 0 || process_->end()) {
    polls.wake_at(now + kEndPeriod);
    return;
  }
  if (!client_gone_) polls.watch(socket_.get(), POLLRDHUP);
  Clock::duration period = kLongestPeriod;
  for (const double limit : {limits_.call_seconds, limits_.idle_seconds}) {
    if (limit <= 0) continue;
    period = std::min(period, std::clamp<Clock::duration>(seconds_of(limit / 10), kShortestPeriod,
                                                          kLongestPeriod));
  }
  if (limits_.memory_bytes > 0) period = std::min<Clock::duration>(period, kMemoryPeriod);
  polls.wake_at(now + period);
  if (limits_.session_seconds > 0) polls.wake_at(start_ + seconds_of(limits_.session_seconds));
}

void SessionWatch::step(TimePoint now) {
  if (over_) return;
  log_output();
  if (const std::optional<int> status = process_->poll_end()) {
    log_output();
    conclude(*status, now);
    return;
  }
  if (killed_) return;
  check_client(now);
  check_session_time(now);
  check_call_time(now);
  check_idle_time(now);
  check_memory(now);
}

void SessionWatch::kill_for(const std::string& why) {
  kill(why, "the server has ended the session: " + why);
}

void SessionWatch::log(ServerEvent::Kind kind, bool warning, std::string message) const {
  ServerEvent event = event_;
  event.kind = kind;
  event.warning = warning;
  event.message = std::move(message);
  log_(event);
}

void SessionWatch::log_output() {
  for (const SessionProcess::Line& line : process_->read_lines()) {
    if (++lines_ > kMostLines) continue;
    log(ServerEvent::Kind::kSessionLog, false,
        line.is_log ? plain(line.text, kLongestReport)
                    : "prints " + in_quotes(line.text, kLongestReport));
    if (lines_ < kMostLines) continue;
    log(ServerEvent::Kind::kSessionLog, true, "says too much for the log");
  }
}

void SessionWatch::check_client(TimePoint now) {
  if (!client_gone_ && peer_is_gone(socket_.get())) client_gone_ = now;
  if (client_gone_ && now >= *client_gone_ + kGrace) {
    kill("the client went away while the session was busy with " + doing(), "");
  }
}

void SessionWatch::check_session_time(TimePoint now) {
  if (killed_ || limits_.session_seconds <= 0 ||
      now < start_ + seconds_of(limits_.session_seconds)) {
    return;
  }
  const std::string limit = limit_text(limits_.session_seconds);
  const std::string words =
      limits_.client_asked
          ? "the session has lasted the " + limit +
                " that its client asked for; ask for more with session_timeout"
          : "the session has lasted " + limit +
                ", which is all that the server allows; rpc_server --session-timeout sets that";
  kill("the session's time of " + limit + " is over", kTimeoutError + words);
}

void SessionWatch::check_call_time(TimePoint now) {
  if (killed_ || limits_.call_seconds <= 0) return;
  const SessionProgress& progress = process_->progress();
  if (progress.phase() == SessionPhase::kWaiting) {
    request_seen_.reset();
    return;
  }
  if (!request_seen_ || request_ != progress.requests()) {
    request_ = progress.requests();
    request_seen_ = now;
    return;
  }
  TimePoint since = *request_seen_;
  if (const std::optional<Clock::duration> idle = idle_time(socket_.get())) {
    since = std::max(since, now - *idle);
  }
  if (now < since + seconds_of(limits_.call_seconds)) return;
  const std::string reason = doing() + " has taken longer than " + limit_text(limits_.call_seconds);
  kill(reason, kTimeoutError + ("the server has ended the session: " + reason) +
                   ", the limit of one call; rpc_server --call-timeout sets that");
}

void SessionWatch::check_idle_time(TimePoint now) {
  if (killed_ || limits_.idle_seconds <= 0) return;
  const SessionProgress& progress = process_->progress();
  if (progress.phase() != SessionPhase::kWaiting || last_request_ != progress.requests()) {
    last_request_ = progress.requests();
    idle_since_ = now;
    return;
  }
  if (now < idle_since_ + seconds_of(limits_.idle_seconds)) return;
  const std::string reason =
      "the client has asked for nothing for " + limit_text(limits_.idle_seconds);
  kill(reason, kTimeoutError + ("the server has ended the session: " + reason) +
                   "; rpc_server --idle-timeout sets that");
}

void SessionWatch::check_memory(TimePoint now) {
  if (killed_ || limits_.memory_bytes == 0 || now < next_memory_check_) return;
  next_memory_check_ = now + kMemoryPeriod;
  const std::uint64_t used = process_->resident_bytes();
  if (used <= limits_.memory_bytes) return;
  const std::string reason = "the session used " + mebibytes(used) + " of memory in " + doing() +
                             ", more than the limit of " + mebibytes(limits_.memory_bytes);
  kill(reason,
       "the server has ended the session: " + reason + "; rpc_server --memory-limit sets that");
}

void SessionWatch::kill(std::string reason, std::string words) {
  if (killed_ || over_) return;
  killed_ = true;
  kill_reason_ = std::move(reason);
  last_words_ = std::move(words);
  process_->kill();
}

void SessionWatch::conclude(int status, TimePoint now) {
  over_ = true;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const std::string after = " after " + seconds_text(seconds) + " and " +
                            std::to_string(process_->progress().requests()) + " requests";
  const std::optional<SessionEnd> end = process_->end();
  const bool ended_itself = WIFEXITED(status) && WEXITSTATUS(status) == 0 && end;
  client_there_ = !peer_is_gone(socket_.get());
  if (ended_itself) {
    last_words_.clear();
    if (end == SessionEnd::kBroken) {
      log(ServerEvent::Kind::kSessionEnded, true,
          "ended within a request" + after + ": the client went away, or sent what is no request");
    } else {
      client_there_ = false;  // it has had its last answer
      log(ServerEvent::Kind::kSessionEnded, false, "ended" + after);
    }
    return;
  }
  if (!killed_) explain_crash(status);
  // Something else would be read as the rest of the answer.
  if (process_->progress().phase() == SessionPhase::kAnswering) last_words_.clear();
  log(ServerEvent::Kind::kSessionKilled, true, "lost" + after + ": " + kill_reason_);
}

void SessionWatch::explain_crash(int status) {
  std::string advice;
  if (WIFSIGNALED(status)) {
    kill_reason_ = "ended by " + signal_text(WTERMSIG(status)) + " in " + doing();
    advice = signal_advice(WTERMSIG(status));
  } else {
    kill_reason_ = "exited with code " + std::to_string(WEXITSTATUS(status)) + " in " + doing();
    advice = "something that it called has ended the whole process";
  }
  last_words_ = "the session's process on the server " +
                std::string(WIFSIGNALED(status) ? "was " : "") + kill_reason_ +
                (advice.empty() ? "" : "; " + advice) +
                "; the session is lost, but the server goes on: connect again";
}

std::string SessionWatch::doing() const {
  const SessionProgress& progress = process_->progress();
  if (progress.requests() == 0 || progress.phase() == SessionPhase::kWaiting) {
    return "no request";
  }
  return plain(progress.doing(), 250);
}

}  // namespace run_model::rpc
