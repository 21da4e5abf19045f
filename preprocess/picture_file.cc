#include "preprocess/picture_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <run_model/error.h>
#include <run_model/image.h>
#include "base/text.h"

namespace run_model {
namespace {

class Descriptor {
 public:
  explicit Descriptor(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~Descriptor() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return fd_; }

 private:
  int fd_;
};

[[noreturn]] void unreadable(const std::string& path, int error) {
  const bool missing = error == ENOENT || error == ENOTDIR;
  throw Error(ErrorKind::kFile,
              path_in_quotes(path) +
                  (missing ? ": there is no such picture file"
                           : std::string(": the picture cannot be read: ") + std::strerror(error)),
              missing ? "check the path" : "");
}

}  // namespace

std::vector<std::uint8_t> read_picture_file(const std::string& path) {
  const Descriptor file(path);
  struct stat status{};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) {
    unreadable(path, errno);
  }
  if (S_ISDIR(status.st_mode)) {
    unreadable(path, EISDIR);
  }
  constexpr auto kLimit = static_cast<std::size_t>(kMaxImageFileBytes);
  // One byte more than the file has, so that its end is found without growing.
  const auto expected = static_cast<std::size_t>(std::max<off_t>(status.st_size, 0));
  std::vector<std::uint8_t> bytes(std::clamp<std::size_t>(expected, 1 << 16, kLimit) + 1);
  std::size_t size = 0;
  for (;;) {
    const ssize_t count = ::read(file.get(), bytes.data() + size, bytes.size() - size);
    if (count < 0) {
      if (errno == EINTR) {
        continue;
      }
      unreadable(path, errno);
    }
    if (count == 0) {
      break;
    }
    size += static_cast<std::size_t>(count);
    if (size > kLimit) {
      throw Error(ErrorKind::kImage,
                  path_in_quotes(path) + ": the picture file is larger than the limit of " +
                      std::to_string(kLimit >> 20) + " MiB",
                  "give a smaller picture");
    }
    if (size == bytes.size()) {
      bytes.resize(std::min(2 * size, kLimit + 1));
    }
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace run_model
