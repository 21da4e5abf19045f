#include "run_model/check_zoo/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <thread>

#include <run_model/error.h>

namespace run_model {
namespace {

constexpr std::size_t kErrorTail = 4096;
// Far more than a case's result takes: a worker that has gone wild is stopped before memory ends.
constexpr std::size_t kMaxLine = std::size_t{1} << 24;
constexpr int kCannotStart = 127;
constexpr int kWaitTries = 5000;
constexpr std::chrono::milliseconds kWaitPause{1};

[[noreturn]] void fail_with_errno(const char* what) {
  throw Error(ErrorKind::kInternal, std::string("cannot ") + what + ": " + std::strerror(errno));
}

struct Pipe {
  int read = -1;
  int write = -1;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail_with_errno("make a pipe");
  return {ends[0], ends[1]};
}

void close_end(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

// In the child. Its parent's end is its own, and it is a group of processes, so that whatever the
// emulator starts can be ended with it.
[[noreturn]] void run_child(pid_t parent, int output, int error,
                            const std::vector<std::string>& command,
                            const std::function<int()>& body) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kCannotStart);
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (nothing < 0 || ::dup2(nothing, STDIN_FILENO) < 0 || ::dup2(output, STDOUT_FILENO) < 0 ||
      ::dup2(error, STDERR_FILENO) < 0) {
    ::_exit(kCannotStart);
  }
  if (command.empty()) ::_exit(body());
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  const std::string message = "cannot start " + command[0] + ": " + std::strerror(errno) + "\n";
  const ssize_t written = ::write(STDERR_FILENO, message.data(), message.size());
  ::_exit(written < 0 ? kCannotStart - 1 : kCannotStart);
}

// What there is to read now; closes `fd` at its end.
std::string read_some(int& fd) {
  std::array<char, 16384> buffer;
  const ssize_t got = ::read(fd, buffer.data(), buffer.size());
  if (got > 0) return {buffer.data(), static_cast<std::size_t>(got)};
  if (got == 0 || (errno != EINTR && errno != EAGAIN)) close_end(fd);
  return "";
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& command,
                           const std::function<int()>& body) {
  Pipe output = make_pipe();
  Pipe error = make_pipe();
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) run_child(parent, output.write, error.write, command, body);
  close_end(output.write);
  close_end(error.write);
  output_ = output.read;
  error_ = error.read;
  if (pid_ < 0) {
    close_end(output_);
    close_end(error_);
    fail_with_errno("start a process");
  }
  // Here too: whichever of the two processes comes first.
  ::setpgid(pid_, pid_);
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0) {
    kill();
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  close_end(output_);
  close_end(error_);
}

std::vector<std::string> ChildProcess::read_output() {
  line_ += read_some(output_);
  std::vector<std::string> lines;
  std::size_t start = 0;
  for (std::size_t end; (end = line_.find('\n', start)) != line_.npos; start = end + 1) {
    lines.push_back(line_.substr(start, end - start));
  }
  line_.erase(0, start);
  if (line_.size() > kMaxLine) close_end(output_);
  return lines;
}

void ChildProcess::read_error() {
  error_tail_ += read_some(error_);
  if (error_tail_.size() > kErrorTail) error_tail_.erase(0, error_tail_.size() - kErrorTail);
}

void ChildProcess::kill() {
  if (pid_ > 0) ::kill(-pid_, SIGKILL);
}

int ChildProcess::wait_for_status() {
  // A process that has closed its streams is about to end; one that goes on without them is ended.
  for (int tries = 0;; ++tries) {
    int status = 0;
    const bool patient = tries < kWaitTries;
    const pid_t ended = ::waitpid(pid_, &status, patient ? WNOHANG : 0);
    if (ended == pid_) return status;
    if (ended < 0 && errno != EINTR) fail_with_errno("wait for a process");
    if (patient) std::this_thread::sleep_for(kWaitPause);
    if (tries + 1 == kWaitTries) kill();
  }
}

std::string ChildProcess::wait() {
  const int status = wait_for_status();
  pid_ = -1;
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    return "was ended by signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
  }
  const int code = WEXITSTATUS(status);
  return code == 0 ? "" : "exited with code " + std::to_string(code);
}

}  // namespace run_model
