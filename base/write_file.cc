#include "base/write_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include <run_model/error.h>
#include "base/file.h"
#include "base/text.h"

namespace run_model {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_to_write(const fs::path& path, int error) {
  std::string hint;
  if (error == ENOENT) hint = "make its folder first";
  if (error == ENOSPC) hint = "free some space on that device";
  throw Error(ErrorKind::kFile,
              "cannot write " + path_in_quotes(path) + ": " + std::strerror(error), hint);
}

// Removes the file again unless rename_to() was called.
class PendingFile {
 public:
  PendingFile(fs::path path, OwnedFd fd, bool temporary)
      : path_(std::move(path)), fd_(std::move(fd)), temporary_(temporary) {}
  ~PendingFile() {
    if (temporary_) ::unlink(path_.c_str());
  }
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;

  bool write(std::span<const std::byte> bytes) { return write_all(fd_.get(), bytes); }

  // A file system may only say here that it could not store what was written.
  bool close() { return ::close(fd_.release()) == 0; }

  bool rename_to(const fs::path& target) {
    if (::rename(path_.c_str(), target.c_str()) != 0) return false;
    temporary_ = false;
    return true;
  }

 private:
  fs::path path_;
  OwnedFd fd_;
  bool temporary_;
};

// The file that a symbolic link stands for, so that the rename replaces the file and not the link.
fs::path resolve(const fs::path& path) {
  std::error_code error;
  if (!fs::is_symlink(path, error)) return path;
  const fs::path resolved = fs::weakly_canonical(path, error);
  return error ? path : resolved;
}

// A new file beside `target`. Never one that was there before, which might be somebody else's.
PendingFile open_temporary(const fs::path& target) {
  constexpr int kAttempts = 100;
  for (int attempt = 0;; ++attempt) {
    fs::path file = target;
    file += ".tmp" + std::to_string(::getpid()) + "." + std::to_string(attempt);
    OwnedFd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (fd) return {file, std::move(fd), true};
    if (errno != EEXIST || attempt == kAttempts) fail_to_write(target, errno);
  }
}

PendingFile open_special(const fs::path& path) {
  OwnedFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd) fail_to_write(path, errno);
  return {path, std::move(fd), false};
}

}  // namespace

void write_file(const fs::path& path, std::span<const std::span<const std::byte>> pieces) {
  const bool direct = exists_as_special_file(path);
  const fs::path target = direct ? path : resolve(path);
  PendingFile file = direct ? open_special(path) : open_temporary(target);
  for (const std::span<const std::byte> piece : pieces) {
    if (!file.write(piece)) fail_to_write(path, errno);
  }
  if (!file.close() || (!direct && !file.rename_to(target))) fail_to_write(path, errno);
}

bool exists_as_special_file(const fs::path& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

void check_can_write(const fs::path& path) {
  if (exists_as_special_file(path)) return;
  if (is_folder(path)) fail_to_write(path, EISDIR);
  open_temporary(resolve(path));
}

}  // namespace run_model
