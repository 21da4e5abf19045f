#include "base/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include <run_model/error.h>
#include "base/quoted.h"

namespace run_model {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, int error) {
  std::string hint;
  if (error == ENOENT) hint = "make its folder first";
  if (error == ENOSPC) hint = "free some space on that device";
  throw Error(ErrorKind::kFile,
              "cannot write " + path_in_quotes(path) + ": " + std::strerror(error), hint);
}

// Closes the file, and removes it again unless keep() was called.
class PendingFile {
 public:
  PendingFile(fs::path path, int fd, bool temporary)
      : path_(std::move(path)), fd_(fd), temporary_(temporary) {}
  ~PendingFile() {
    if (fd_ >= 0) ::close(fd_);
    if (temporary_) ::unlink(path_.c_str());
  }
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;

  // Returns 0 or errno.
  int write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
      if (written < 0) {
        if (errno == EINTR) continue;
        return errno;
      }
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    return 0;
  }

  int close() {
    const int status = ::close(fd_);
    fd_ = -1;
    return status == 0 ? 0 : errno;
  }

  int rename_to(const fs::path& target) {
    if (::rename(path_.c_str(), target.c_str()) != 0) return errno;
    temporary_ = false;
    return 0;
  }

 private:
  fs::path path_;
  int fd_;
  bool temporary_;
};

bool exists_as_special_file(const fs::path& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

// The file that a symbolic link stands for, so that the rename replaces the file and not the link.
fs::path resolve(const fs::path& path) {
  std::error_code error;
  if (!fs::is_symlink(path, error)) return path;
  const fs::path resolved = fs::weakly_canonical(path, error);
  return error ? path : resolved;
}

struct OpenedFile {
  fs::path path;
  int fd;
};

// A new file beside `target`. Never one that was there before, which might be somebody else's.
OpenedFile open_temporary(const fs::path& target) {
  constexpr int kAttempts = 100;
  for (int attempt = 0;; ++attempt) {
    fs::path file = target;
    file += ".tmp" + std::to_string(::getpid()) + "." + std::to_string(attempt);
    const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) return {file, fd};
    if (errno != EEXIST || attempt == kAttempts) fail(target, errno);
  }
}

OpenedFile open_special(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) fail(path, errno);
  return {path, fd};
}

}  // namespace

void write_file(const fs::path& path, std::span<const std::span<const std::byte>> pieces) {
  const bool direct = exists_as_special_file(path);
  const fs::path target = direct ? path : resolve(path);
  const OpenedFile file = direct ? open_special(path) : open_temporary(target);
  PendingFile pending(file.path, file.fd, !direct);
  for (const std::span<const std::byte> piece : pieces) {
    if (const int error = pending.write(piece)) fail(path, error);
  }
  if (const int error = pending.close()) fail(path, error);
  if (direct) return;
  if (const int error = pending.rename_to(target)) fail(path, error);
}

}  // namespace run_model
