#include "rpc/server/sessions/orphans.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "base/system_file.h"
#include "base/text.h"

namespace run_model::rpc {
namespace {

// What dies leaves its own children to us: so many generations at a time, the rest next time.
constexpr int kGenerations = 8;

// The parent in /proc/PID/stat (proc(5)): "pid (name) state parent …"; the name may hold anything.
pid_t parent_of(const std::filesystem::path& process) {
  const std::string text = read_system_file(process / "stat");
  std::istringstream rest(text.substr(std::min(text.rfind(')') + 1, text.size())));
  char state = 0;
  pid_t parent = 0;
  return rest >> state >> parent ? parent : 0;
}

// Of systems whose kernel does not list them (CONFIG_PROC_CHILDREN).
std::vector<pid_t> children_by_search() {
  std::vector<pid_t> children;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    const auto number = whole_number<pid_t>(entry->path().filename().string());
    if (number && parent_of(entry->path()) == ::getpid()) children.push_back(*number);
  }
  return children;
}

std::vector<pid_t> children() {
  const std::string self = std::to_string(::getpid());
  std::ifstream list("/proc/" + self + "/task/" + self + "/children");
  if (!list) return children_by_search();
  std::vector<pid_t> children;
  for (pid_t child = 0; list >> child;) children.push_back(child);
  return children;
}

bool contains(const std::vector<pid_t>& list, pid_t process) {
  return std::find(list.begin(), list.end(), process) != list.end();
}

}  // namespace

Orphans::Orphans() : ours_(children()) {
  struct sigaction action{};
  if (::sigaction(SIGCHLD, nullptr, &action) == 0 &&
      (action.sa_handler == SIG_IGN || (action.sa_flags & SA_NOCLDWAIT) != 0)) {
    ::signal(SIGCHLD, SIG_DFL);
  }
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

void Orphans::end_all_but(const std::vector<pid_t>& sessions) {
  left_ = true;
  for (int generation = 0; generation < kGenerations && left_; ++generation) {
    left_ = false;
    for (const pid_t child : children()) {
      if (contains(ours_, child) || contains(sessions, child)) continue;
      left_ = true;
      ::kill(child, SIGKILL);
      siginfo_t info{};
      ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG);
    }
  }
}

}  // namespace run_model::rpc
