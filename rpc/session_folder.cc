#include "rpc/session_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <run_model/error.h>
#include "base/text.h"

namespace run_model::rpc {
namespace {

constexpr std::size_t kBlockBytes = 256 * 1024;

// The name of a file that is still being written. No client's file is called so.
constexpr char kUnfinished[] = ".unfinished";

[[noreturn]] void fail(const std::string& what) {
  throw Error(ErrorKind::kFile, what + ": " + std::strerror(errno));
}

void check_name(const std::string& name) {
  const bool plain = !name.empty() && name.size() <= NAME_MAX && name.front() != '.' &&
                     std::none_of(name.begin(), name.end(), [](unsigned char c) {
                       return c == '/' || c == '\\' || c < ' ' || c == 0x7f;
                     });
  if (plain) return;
  throw Error(
      ErrorKind::kUsage, "the file name " + in_quotes(name) + " is refused",
      "files of a session have plain names: no folders, no leading dot, no control characters");
}

}  // namespace

SessionFolder::SessionFolder(std::filesystem::path path, std::uint64_t most_bytes)
    : path_(std::move(path)),
      most_bytes_(most_bytes),
      directory_(open_to_read(path_, O_DIRECTORY | O_NOFOLLOW)) {
  if (!directory_) fail("the session's folder " + path_in_quotes(path_) + " cannot be opened");
}

void SessionFolder::write(const std::string& name, std::uint64_t bytes,
                          const std::function<std::size_t(std::span<std::byte>)>& next) {
  check_name(name);
  const std::uint64_t in_use = bytes_in_use();
  if (bytes > most_bytes_ || in_use > most_bytes_ - bytes) {
    throw Error(ErrorKind::kFile,
                "the file " + in_quotes(name) + " of " + std::to_string(bytes) +
                    " bytes does not fit: the session's files may have " +
                    std::to_string(most_bytes_) + " bytes together and have " +
                    std::to_string(in_use),
                "remove files that are not needed any more, or start the server with a higher "
                "--file-limit");
  }
  ::unlinkat(directory_.get(), kUnfinished, 0);
  OwnedFd file(::openat(directory_.get(), kUnfinished,
                        O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) fail("no file can be made in the session's folder");
  try {
    const auto block = std::make_unique_for_overwrite<std::byte[]>(kBlockBytes);
    while (bytes > 0) {
      const std::size_t most =
          static_cast<std::size_t>(std::min<std::uint64_t>(bytes, kBlockBytes));
      const std::size_t count = next({block.get(), most});
      if (!write_all(file.get(), {block.get(), count})) {
        fail("the file " + in_quotes(name) + " cannot be written");
      }
      bytes -= count;
    }
    // Some file systems tell only now that they are full.
    if (::close(file.release()) != 0 ||
        ::renameat(directory_.get(), kUnfinished, directory_.get(), name.c_str()) != 0) {
      fail("the file " + in_quotes(name) + " cannot be written");
    }
  } catch (...) {
    ::unlinkat(directory_.get(), kUnfinished, 0);
    throw;
  }
}

void SessionFolder::write(const std::string& name, std::span<const std::byte> content) {
  write(name, content.size(), [&content](std::span<std::byte> into) {
    const std::size_t count = std::min(into.size(), content.size());
    std::memcpy(into.data(), content.data(), count);
    content = content.subspan(count);
    return count;
  });
}

bool SessionFolder::remove(const std::string& name) {
  check_name(name);
  if (::unlinkat(directory_.get(), name.c_str(), 0) == 0) return true;
  if (errno != ENOENT) fail("the file " + in_quotes(name) + " cannot be removed");
  return false;
}

std::vector<std::string> SessionFolder::names() const {
  const int descriptor = ::openat(directory_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const listing = descriptor >= 0 ? ::fdopendir(descriptor) : nullptr;
  if (listing == nullptr) {
    if (descriptor >= 0) ::close(descriptor);
    fail("the session's folder cannot be listed");
  }
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(listing)) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  ::closedir(listing);
  std::sort(names.begin(), names.end());
  return names;
}

std::filesystem::path SessionFolder::file(const std::string& name) const {
  check_name(name);
  struct stat info{};
  if (::fstatat(directory_.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    throw Error(ErrorKind::kFile, "the session has no file " + in_quotes(name), "upload it first");
  }
  if (!S_ISREG(info.st_mode)) {
    throw Error(ErrorKind::kFile, in_quotes(name) + " is no regular file and is not used");
  }
  return path_ / name;
}

std::filesystem::path SessionFolder::place(const std::string& name) const {
  check_name(name);
  return path_ / name;
}

std::uint64_t SessionFolder::bytes_in_use() const {
  std::uint64_t bytes = 0;
  for (const std::string& name : names()) {
    struct stat info{};
    if (::fstatat(directory_.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(info.st_mode)) {
      bytes += static_cast<std::uint64_t>(info.st_size);
    }
  }
  return bytes;
}

}  // namespace run_model::rpc
