// Files by their descriptors: one owner, one way to read, one way to write.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace run_model {

// A file descriptor that is closed with its owner.
class OwnedFd {
 public:
  OwnedFd() = default;
  explicit OwnedFd(int fd) : fd_(fd) {}
  ~OwnedFd() { reset(); }
  OwnedFd(OwnedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }

  void reset() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

// False also where the system does not say.
bool is_there(const std::filesystem::path& path);
bool is_folder(const std::filesystem::path& path);

// The primitives leave the reason in errno when they fail, for callers that have their own words.
// All begin again when a signal interrupts them.

// The file opened for reading, closed in programs that this one starts; `flags` come on top
// (O_NONBLOCK, O_NOFOLLOW). False when it cannot be opened.
OwnedFd open_to_read(const std::filesystem::path& path, int flags = 0);

// As read(2): the number of bytes read, 0 at the end, -1 on failure.
std::ptrdiff_t read_some(int fd, std::span<std::byte> buffer);

// The bytes from here to the end of the file or pipe, at most `limit`. Nothing on failure; EISDIR
// where it is a directory.
std::optional<std::vector<std::byte>> read_to_end(int fd, std::size_t limit);

// Whether all of the bytes were written.
bool write_all(int fd, std::span<const std::byte> bytes);

// The largest file of arrays: 4 GiB, and no more than a 32-bit address space has room for beside
// the arrays themselves.
inline constexpr auto kMaxArrayFileBytes = static_cast<std::size_t>(
    std::min<std::uint64_t>(std::uint64_t{1} << 32, std::numeric_limits<std::size_t>::max() / 4));

// The bytes of a file, which may also be a pipe. Throws Error(kFile) when it cannot be read, and
// Error(kFormat) when it holds more than `limit` bytes; `what` says in the sentence what the file
// was expected to be, for instance "a NumPy file".
std::vector<std::byte> read_file(const std::filesystem::path& path, std::size_t limit,
                                 std::string_view what);

// The first `limit` bytes, or fewer where the file is shorter. Throws Error(kFile).
std::vector<std::byte> read_file_start(const std::filesystem::path& path, std::size_t limit);

}  // namespace run_model
