#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>

#include <run_model/error.h>
#include "base/text.h"

namespace run_model {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 16;

// What the file system says, 0 for pipes and devices.
std::uint64_t regular_size(int fd) {
  struct stat info{};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return 0;
  return static_cast<std::uint64_t>(info.st_size);
}

OwnedFd open_or_throw(const std::filesystem::path& path, std::string_view what) {
  OwnedFd file = open_to_read(path);
  if (!file) {
    throw Error(ErrorKind::kFile, "cannot read " + path_in_quotes(path) + " as " +
                                      std::string(what) + ": " + std::strerror(errno));
  }
  return file;
}

std::vector<std::byte> read_or_throw(const OwnedFd& file, const std::filesystem::path& path,
                                     std::size_t limit) {
  std::optional<std::vector<std::byte>> bytes = read_to_end(file.get(), limit);
  if (!bytes) {
    throw Error(ErrorKind::kFile,
                "cannot read " + path_in_quotes(path) + ": " + std::strerror(errno));
  }
  return std::move(*bytes);
}

}  // namespace

bool is_there(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

bool is_folder(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

OwnedFd open_to_read(const std::filesystem::path& path, int flags) {
  int fd = -1;
  do {
    fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags);
  } while (fd < 0 && errno == EINTR);
  return OwnedFd(fd);
}

std::ptrdiff_t read_some(int fd, std::span<std::byte> buffer) {
  ssize_t got = 0;
  do {
    got = ::read(fd, buffer.data(), buffer.size());
  } while (got < 0 && errno == EINTR);
  return got;
}

std::optional<std::vector<std::byte>> read_to_end(int fd, std::size_t limit) {
  // One byte more than expected, so that a regular file is read to its end without growing.
  std::vector<std::byte> bytes(static_cast<std::size_t>(
      std::min<std::uint64_t>(limit, std::max<std::uint64_t>(regular_size(fd) + 1, kChunk))));
  std::size_t used = 0;
  while (true) {
    if (used == bytes.size()) {
      if (used == limit) break;
      bytes.resize(std::min(limit, used * 2));
    }
    const std::ptrdiff_t got = read_some(fd, std::span(bytes).subspan(used));
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    used += static_cast<std::size_t>(got);
  }
  bytes.resize(used);
  return bytes;
}

bool write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

std::vector<std::byte> read_file(const std::filesystem::path& path, std::size_t limit,
                                 std::string_view what) {
  const OwnedFd file = open_or_throw(path, what);
  const auto too_large = [&] {
    return Error(ErrorKind::kFormat, path_in_quotes(path) + " is larger than " +
                                         std::to_string(limit) + " bytes, which is too large for " +
                                         std::string(what));
  };
  if (regular_size(file.get()) > limit) throw too_large();
  std::vector<std::byte> bytes = read_or_throw(file, path, limit + 1);
  if (bytes.size() > limit) throw too_large();
  return bytes;
}

std::vector<std::byte> read_file_start(const std::filesystem::path& path, std::size_t limit) {
  return read_or_throw(open_or_throw(path, "a file"), path, limit);
}

}  // namespace run_model
