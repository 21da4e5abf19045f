#include "rpc/server/statm.h"

#include <unistd.h>

#include <sstream>

#include "base/system_file.h"

namespace run_model::rpc {

std::uint64_t process_memory(const std::string& process, MemoryKind kind) {
  std::istringstream columns(read_system_file("/proc/" + process + "/statm"));
  std::uint64_t pages = 0;
  for (int column = 0; column <= static_cast<int>(kind); ++column) columns >> pages;
  return columns ? pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) : 0;
}

}  // namespace run_model::rpc
