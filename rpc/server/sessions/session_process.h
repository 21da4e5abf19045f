// The process of one session, as the server sees it.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <run_model/rpc/server.h>
#include <run_model/rpc/session.h>
#include "base/file.h"
#include "rpc/server/sessions/confinement.h"

namespace run_model::rpc {

// Memory that the process shares with the server. The process can write anything there.
struct SharedState {
  SessionProgress progress;
  std::atomic<int> end{-1};  // SessionEnd, set when the session's work is over
};

class SessionProcess {
 public:
  // Forks. `socket` stays the caller's. Throws Error(kInternal) when the system refuses.
  SessionProcess(int socket, const std::filesystem::path& folder, const ProcessLimits& limits,
                 const SessionBody& body);
  // Kills what still runs.
  ~SessionProcess();
  SessionProcess(const SessionProcess&) = delete;
  SessionProcess& operator=(const SessionProcess&) = delete;

  pid_t pid() const { return pid_; }

  const SessionProgress& progress() const { return shared_->progress; }

  // Set when the process has done all it was to do.
  std::optional<SessionEnd> end() const;

  // Becomes readable when there are lines, and at the end of the process. -1 after that.
  int output() const { return output_.get(); }

  // A line that the process has written: for the log (SessionStart::log), or what a model prints.
  struct Line {
    std::string text;
    bool is_log = false;
  };
  // What has come since; after the end of the process also what the last line has begun with.
  std::vector<Line> read_lines();

  // The whole group of processes that it may have become.
  void kill();

  // The status of waitpid(2) once the process has ended; whatever it has started is then killed
  // too.
  std::optional<int> poll_end();

  // Bytes of memory in use; 0 when not known.
  std::uint64_t resident_bytes() const;

 private:
  struct Unmap {
    void operator()(SharedState* shared) const;
  };

  std::unique_ptr<SharedState, Unmap> shared_;
  OwnedFd output_;
  std::string line_;
  pid_t pid_ = -1;
  std::optional<int> status_;
};

}  // namespace run_model::rpc
