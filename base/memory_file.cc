#include "base/memory_file.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include <run_model/error.h>
#include "base/text.h"

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
  OwnedFd fd(::memfd_create(shown.c_str(), MFD_CLOEXEC));
  if (!fd || !write_all(fd.get(), content)) fail(shown);
  return std::shared_ptr<const MemoryFile>(new MemoryFile(std::move(fd)));
}

std::filesystem::path MemoryFile::path() const {
  return "/proc/self/fd/" + std::to_string(fd_.get());
}

}  // namespace run_model
