#include "base/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <run_model/error.h>
#include "base/quoted.h"

namespace run_model {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 16;

class OpenFile {
 public:
  OpenFile(const std::filesystem::path& path, std::string_view what)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd_ < 0) {
      throw Error(ErrorKind::kFile, "cannot read " + path_in_quotes(path) + " as " +
                                        std::string(what) + ": " + std::strerror(errno));
    }
  }
  ~OpenFile() { ::close(fd_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  int fd() const { return fd_; }

  // What the file system says, 0 for pipes and devices.
  std::uint64_t regular_size() const {
    struct stat info{};
    if (::fstat(fd_, &info) != 0 || !S_ISREG(info.st_mode)) return 0;
    return static_cast<std::uint64_t>(info.st_size);
  }

 private:
  int fd_;
};

// Up to `limit` bytes.
std::vector<std::byte> read_bytes(const OpenFile& file, const std::filesystem::path& path,
                                  std::size_t limit) {
  // One byte more than expected, so that a regular file is read to its end without growing.
  std::vector<std::byte> bytes(static_cast<std::size_t>(
      std::min<std::uint64_t>(limit, std::max<std::uint64_t>(file.regular_size() + 1, kChunk))));
  std::size_t used = 0;
  while (true) {
    if (used == bytes.size()) {
      if (used == limit) break;
      bytes.resize(std::min(limit, used * 2));
    }
    const ssize_t got = ::read(file.fd(), bytes.data() + used, bytes.size() - used);
    if (got < 0) {
      if (errno == EINTR) continue;
      throw Error(ErrorKind::kFile,
                  "cannot read " + path_in_quotes(path) + ": " + std::strerror(errno));
    }
    if (got == 0) break;
    used += static_cast<std::size_t>(got);
  }
  bytes.resize(used);
  return bytes;
}

}  // namespace

std::vector<std::byte> read_file(const std::filesystem::path& path, std::size_t limit,
                                 std::string_view what) {
  const OpenFile file(path, what);
  const auto too_large = [&] {
    return Error(ErrorKind::kFormat, path_in_quotes(path) + " is larger than " +
                                         std::to_string(limit) + " bytes, which is too large for " +
                                         std::string(what));
  };
  if (file.regular_size() > limit) throw too_large();
  std::vector<std::byte> bytes = read_bytes(file, path, limit + 1);
  if (bytes.size() > limit) throw too_large();
  return bytes;
}

std::vector<std::byte> read_file_start(const std::filesystem::path& path, std::size_t limit) {
  const OpenFile file(path, "a file");
  return read_bytes(file, path, limit);
}

}  // namespace run_model
