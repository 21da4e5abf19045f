#include "rpc/server/sessions/confinement.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <vector>

#include "base/system_file.h"

namespace run_model::rpc {
namespace {

// Above all that arrange_descriptors() fills.
constexpr int kAside = 10;

void set_limit(int resource, std::uint64_t value) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0) return;
  const auto wanted = static_cast<rlim_t>(value);
  if (limit.rlim_max != RLIM_INFINITY && limit.rlim_max < wanted) return;
  limit.rlim_cur = limit.rlim_max = wanted;
  static_cast<void>(::setrlimit(static_cast<__rlimit_resource_t>(resource), &limit));
}

void reset_signals() {
  for (int signal = 1; signal < NSIG; ++signal) {
    if (signal != SIGKILL && signal != SIGSTOP) ::signal(signal, SIG_DFL);
  }
  // Writing to what nobody reads and beyond the limit of a file's size are errors, not the end.
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void close_from(int first) {
#ifdef SYS_close_range
  if (::syscall(SYS_close_range, static_cast<unsigned>(first), ~0U, 0U) == 0) return;
#endif
  // Before Linux 5.9.
  DIR* listing = ::opendir("/proc/self/fd");
  if (listing == nullptr) return;
  std::vector<int> open;
  while (const dirent* entry = ::readdir(listing)) {
    const int fd = std::atoi(entry->d_name);
    if (fd >= first && fd != ::dirfd(listing)) open.push_back(fd);
  }
  ::closedir(listing);
  for (const int fd : open) ::close(fd);
}

// Where memory runs out, the system ends the session and not something else of the board.
void offer_for_out_of_memory() {
  const int fd = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  static_cast<void>(!::write(fd, "800", 3));
  ::close(fd);
}

bool arrange_descriptors(int socket, int output) {
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int aside_nothing = ::fcntl(nothing, F_DUPFD_CLOEXEC, kAside);
  const int aside_socket = ::fcntl(socket, F_DUPFD_CLOEXEC, kAside);
  const int aside_output = ::fcntl(output, F_DUPFD_CLOEXEC, kAside);
  if (::dup2(aside_nothing, STDIN_FILENO) < 0 || ::dup2(aside_output, STDOUT_FILENO) < 0 ||
      ::dup2(aside_output, STDERR_FILENO) < 0 ||
      ::dup3(aside_socket, kSessionSocket, O_CLOEXEC) < 0) {
    return false;
  }
  close_from(kSessionSocket + 1);
  return true;
}

}  // namespace

bool confine(pid_t server, int socket, int output, const std::filesystem::path& folder,
             const ProcessLimits& limits) {
  reset_signals();
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != server) return false;
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  ::umask(077);
  if (!arrange_descriptors(socket, output) || ::chdir(folder.c_str()) != 0) return false;
  ::setenv("TMPDIR", folder.c_str(), 1);
  // Where drivers of GPUs keep what they have compiled: Mesa's and others', pocl's, NVIDIA's.
  for (const char* variable : {"XDG_CACHE_HOME", "POCL_CACHE_DIR", "CUDA_CACHE_PATH"}) {
    ::setenv(variable, (folder / ".cache").c_str(), 1);
  }
  offer_for_out_of_memory();
  if (limits.landlock) write_only_below(folder);
  set_limit(RLIMIT_CORE, 0);
  if (limits.file_bytes > 0) set_limit(RLIMIT_FSIZE, limits.file_bytes);
  if (limits.memory_bytes > 0)
    set_limit(RLIMIT_DATA, process_memory("self", MemoryKind::kData) + limits.memory_bytes);
  return true;
}

std::uint64_t process_memory(const std::string& process, MemoryKind kind) {
  std::istringstream columns(read_system_file("/proc/" + process + "/statm"));
  std::uint64_t pages = 0;
  for (int column = 0; column <= static_cast<int>(kind); ++column) columns >> pages;
  return columns ? pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) : 0;
}

}  // namespace run_model::rpc
