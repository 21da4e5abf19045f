#include "base/memory_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <run_model/error.h>
#include "base/quoted.h"

namespace run_model {
namespace {

// memfd_create(2).
constexpr std::size_t kMaxName = 249;

[[noreturn]] void fail(const std::string& name) {
  throw Error(ErrorKind::kFile,
              "no file in memory can be made for " + in_quotes(name, kMaxName) + ": " +
                  std::strerror(errno),
              "unpack the archive with tar -xf and give the folder");
}

}  // namespace

std::shared_ptr<const MemoryFile> MemoryFile::create(const std::string& name,
                                                     std::span<const std::byte> content) {
  const std::string shown = name.size() <= kMaxName ? name : name.substr(name.size() - kMaxName);
  const int fd = ::memfd_create(shown.c_str(), MFD_CLOEXEC);
  if (fd < 0) fail(shown);
  std::shared_ptr<const MemoryFile> file(new MemoryFile(fd));
  for (std::size_t done = 0; done < content.size();) {
    const ssize_t written = ::write(fd, content.data() + done, content.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail(shown);
    done += static_cast<std::size_t>(written);
  }
  return file;
}

MemoryFile::~MemoryFile() { ::close(fd_); }

std::filesystem::path MemoryFile::path() const { return "/proc/self/fd/" + std::to_string(fd_); }

}  // namespace run_model
