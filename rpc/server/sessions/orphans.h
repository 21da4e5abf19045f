// Processes that sessions leave behind, whatever they have done to be left alone.
#pragma once

#include <sys/types.h>

#include <vector>

namespace run_model::rpc {

// The calling process becomes the parent of every descendant that loses its own (subreaper,
// prctl(2)): what a session has started and what has left its group of processes is found when the
// session is over. Children that the process has already are left alone.
class Orphans {
 public:
  // Also sees to it that the system keeps the ends of children to be asked for: a program that
  // ignores SIGCHLD hands that down to those that it starts.
  Orphans();

  // Kills and reaps all children but for `sessions`.
  void end_all_but(const std::vector<pid_t>& sessions);

  // Whether some were still there: killed, but not gone yet.
  bool left() const { return left_; }

 private:
  std::vector<pid_t> ours_;
  bool left_ = false;
};

}  // namespace run_model::rpc
