#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string>
#include <system_error>
#include <utility>

#include <run_model/error.h>
#include "base/file.h"
#include "base/text.h"

namespace run_model {
namespace {

std::string reason(int error) { return std::generic_category().message(error); }

std::string_view kind_of(mode_t mode) {
  if (S_ISDIR(mode)) {
    return "a directory";
  }
  if (S_ISFIFO(mode)) {
    return "a pipe";
  }
  if (S_ISSOCK(mode)) {
    return "a socket";
  }
  return "a device";
}

// memfd_create(2).
constexpr std::size_t kMaxName = 249;

[[noreturn]] void fail_to_map(const std::string& name) {
  throw Error(ErrorKind::kFile,
              "no file in memory can be made for " + in_quotes(name, kMaxName) + ": " +
                  std::strerror(errno),
              "unpack the archive with tar -xf and give the folder");
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path,
                                                   std::string_view what) {
  const std::string name = std::string(what) + " " + path_in_quotes(path);
  // O_NONBLOCK: opening a pipe that nobody writes to would wait for ever.
  const OwnedFd file = open_to_read(path, O_NONBLOCK);
  if (!file) {
    const int error = errno;
    if (error == ENOENT || error == ENOTDIR) {
      throw Error(ErrorKind::kFile, name + " does not exist",
                  "check the path for a typing mistake");
    }
    throw Error(ErrorKind::kFile, name + " cannot be opened: " + reason(error));
  }
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) {
    throw Error(ErrorKind::kFile, name + " cannot be examined: " + reason(errno));
  }
  if (!S_ISREG(info.st_mode)) {
    throw Error(ErrorKind::kFile,
                name + " is " + std::string(kind_of(info.st_mode)) + ", not a regular file");
  }
  if (info.st_size == 0) {
    throw Error(ErrorKind::kFormat, name + " is empty",
                "it was probably not completely written or copied; make it again");
  }
  if (static_cast<std::uintmax_t>(info.st_size) > std::numeric_limits<std::size_t>::max() / 2) {
    throw Error(ErrorKind::kFile, name + " has " + std::to_string(info.st_size) +
                                      " bytes, more than fits in this machine's address space");
  }
  std::shared_ptr<MappedFile> mapped(new MappedFile(path));
  const auto size = static_cast<std::size_t>(info.st_size);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) {
    throw Error(ErrorKind::kFile, name + " cannot be mapped into memory: " + reason(errno));
  }
  mapped->data_ = static_cast<const std::byte*>(data);
  mapped->size_ = size;
  return mapped;
}

MappedFile::MappedFile(std::filesystem::path path) : path_(std::move(path)) {}

MappedFile::~MappedFile() {
  if (data_ != nullptr) {
    ::munmap(const_cast<std::byte*>(data_), size_);
  }
}

void MappedFile::release(std::size_t offset, std::size_t length) const {
  static const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  offset = std::min(offset, size_);
  const std::size_t end = offset + std::min(length, size_ - offset);
  const std::size_t first = (offset + page - 1) / page * page;
  // The last page of the file belongs to nobody else, so a range that reaches the end includes it.
  const std::size_t last = end == size_ ? end : end / page * page;
  if (first < last) {
    ::madvise(const_cast<std::byte*>(data_) + first, last - first, MADV_DONTNEED);
  }
}

std::shared_ptr<const MemoryFile> MemoryFile::create(const std::string& name,
                                                     std::span<const std::byte> content) {
  const std::string shown = name.size() <= kMaxName ? name : name.substr(name.size() - kMaxName);
  OwnedFd fd(::memfd_create(shown.c_str(), MFD_CLOEXEC));
  if (!fd || !write_all(fd.get(), content)) fail_to_map(shown);
  return std::shared_ptr<const MemoryFile>(new MemoryFile(std::move(fd)));
}

std::filesystem::path MemoryFile::path() const {
  return "/proc/self/fd/" + std::to_string(fd_.get());
}

}  // namespace run_model
