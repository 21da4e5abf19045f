#include "rpc/server/sessions/session_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <new>

#include <run_model/error.h>
#include "rpc/server/sessions/confinement.h"

namespace run_model::rpc {
namespace {

// Begins the lines that are for the log, before what a model may print.
constexpr char kLogMark = '\x01';
constexpr std::size_t kLongestLine = 1000;
// Together what a pipe holds; a session that writes without end does not hold up the others.
constexpr int kReadsAtATime = 16;

[[noreturn]] void fail_with_errno(const char* what) {
  throw Error(ErrorKind::kInternal,
              std::string("cannot ") + what + " for a session: " + std::strerror(errno));
}

SharedState* map_shared_state() {
  void* memory = ::mmap(nullptr, sizeof(SharedState), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail_with_errno("get shared memory");
  return new (memory) SharedState;
}

void write_log_line(const std::string& text) {
  std::string line = kLogMark + text.substr(0, kLongestLine) + "\n";
  for (std::size_t i = 1; i + 1 < line.size(); ++i) {
    if (line[i] == '\n') line[i] = ' ';
  }
  // A server that does not keep up loses lines; the session does not wait for it.
  static_cast<void>(!::write(STDERR_FILENO, line.data(), line.size()));
}

[[noreturn]] void run_child(pid_t server, int socket, int output,
                            const std::filesystem::path& folder, const ProcessLimits& limits,
                            const SessionBody& body, SharedState& shared) {
  if (!confine(server, socket, output, folder, limits)) {
    const std::string line = std::string("cannot be set up: ") + std::strerror(errno) + "\n";
    // Which of the two is the pipe depends on how far it has got.
    if (::write(output, line.data(), line.size()) < 0) {
      static_cast<void>(!::write(STDERR_FILENO, line.data(), line.size()));
    }
    ::_exit(1);
  }
  try {
    shared.end = static_cast<int>(body({kSessionSocket, folder, &shared.progress,
                                        [](const std::string& text) { write_log_line(text); }}));
  } catch (const std::exception& error) {
    write_log_line(std::string("cannot serve: ") + error.what());
    ::_exit(1);
  }
  ::_exit(0);
}

}  // namespace

void SessionProcess::Unmap::operator()(SharedState* shared) const {
  ::munmap(shared, sizeof(SharedState));
}

SessionProcess::SessionProcess(int socket, const std::filesystem::path& folder,
                               const ProcessLimits& limits, const SessionBody& body)
    : shared_(map_shared_state()) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) fail_with_errno("make a pipe");
  output_ = OwnedFd(ends[0]);
  const OwnedFd input(ends[1]);
  const pid_t server = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) fail_with_errno("start a process");
  if (pid_ == 0) run_child(server, socket, input.get(), folder, limits, body, *shared_);
}

SessionProcess::~SessionProcess() {
  if (status_) return;
  kill();
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
}

std::optional<SessionEnd> SessionProcess::end() const {
  switch (const int end = shared_->end.load(); end) {
    case static_cast<int>(SessionEnd::kShutdown):
    case static_cast<int>(SessionEnd::kDisconnected):
    case static_cast<int>(SessionEnd::kBroken):
      return static_cast<SessionEnd>(end);
    default:
      return std::nullopt;
  }
}

std::vector<SessionProcess::Line> SessionProcess::read_lines() {
  std::vector<Line> lines;
  const auto end_line = [&] {
    const bool is_log = line_.starts_with(kLogMark);
    lines.push_back({is_log ? line_.substr(1) : line_, is_log});
    line_.clear();
  };
  std::array<char, 4096> buffer;
  for (int piece = 0; output_ && piece < kReadsAtATime; ++piece) {
    const ssize_t got = ::read(output_.get(), buffer.data(), buffer.size());
    if (got == 0) output_.reset();
    if (got <= 0) break;
    for (const char c : std::string_view(buffer.data(), static_cast<std::size_t>(got))) {
      if (c == '\n' || line_.size() > kLongestLine) end_line();
      if (c != '\n') line_ += c;
    }
  }
  if ((status_ || !output_) && !line_.empty()) end_line();
  return lines;
}

void SessionProcess::kill() {
  if (status_) return;
  // The second for a process that has not made its group yet.
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);
}

std::optional<int> SessionProcess::poll_end() {
  if (status_) return status_;
  // Looks before it reaps: until then nobody else can have the number of its group.
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      info.si_pid == 0) {
    return std::nullopt;
  }
  ::kill(-pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  status_ = status;
  return status_;
}

std::uint64_t SessionProcess::resident_bytes() const {
  return process_memory(std::to_string(pid_), MemoryKind::kResident);
}

}  // namespace run_model::rpc
