// What a session's process does first, so that it cannot harm the server or outlive it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>

namespace run_model::rpc {

struct ProcessLimits {
  std::uint64_t memory_bytes = 0;  // beyond what the process has at its start; 0: no limit
  std::uint64_t file_bytes = 0;    // of one file; 0: no limit
  bool landlock = true;            // where the kernel has it
};

// Where the client's socket is afterwards. Standard input is empty, standard output and error are
// the pipe to the server; every other descriptor is closed.
inline constexpr int kSessionSocket = 3;

// In the child, after fork(). Has a process group of its own, ends when `server` ends, makes no
// core files, gains no rights by running other programs, has the default signals, but for those
// that only say that a pipe is closed or a file full, and lives in `folder`, which is where its
// temporary files go and, with Landlock, all that it can write. Keeps what it starts (subreaper),
// so that it is found when the session is over. False when one of these that a session cannot do
// without has failed.
bool confine(pid_t server, int socket, int output, const std::filesystem::path& folder,
             const ProcessLimits& limits);

// By Landlock (landlock(7)): from now on this process and all that it starts can write, make and
// remove files below `folder` only, and to /dev/null; from Linux 6.7 on make no TCP connections;
// from 6.12 on signal only one another. Reading, and what is open already, stays as it is. False
// where the kernel has no Landlock, or less of it than Linux 5.19: nothing has changed then. Needs
// PR_SET_NO_NEW_PRIVS.
bool write_only_below(const std::filesystem::path& folder);

// What the kernel counts of a process's memory: columns of /proc/PID/statm (proc(5)), from 0.
enum class MemoryKind { kResident = 1, kData = 5 };

// In bytes; 0 when not known. `process` is a number or "self".
std::uint64_t process_memory(const std::string& process, MemoryKind kind);

}  // namespace run_model::rpc
