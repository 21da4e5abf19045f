#include "rpc/server/sessions/work_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include <run_model/error.h>
#include "base/text.h"

namespace run_model::rpc {
namespace {

namespace fs = std::filesystem;

constexpr char kFolderPrefix[] = "run_model_rpc.";

[[noreturn]] void fail_at(const fs::path& path, const std::string& what) {
  throw Error(ErrorKind::kFile,
              "cannot make a folder for sessions in " + path_in_quotes(path) + ": " + what,
              "name a folder that can be written with --work-dir");
}

// The lock of the folder, or nothing where somebody has it, or it is no folder of ours.
OwnedFd lock(const fs::path& folder) {
  OwnedFd fd = open_to_read(folder, O_DIRECTORY | O_NOFOLLOW);
  struct stat opened{};
  if (!fd || ::fstat(fd.get(), &opened) != 0 || opened.st_uid != ::geteuid() ||
      ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    return OwnedFd();
  }
  // It may have been removed, and made again, before it was locked.
  struct stat named{};
  const bool same = ::lstat(folder.c_str(), &named) == 0 && named.st_dev == opened.st_dev &&
                    named.st_ino == opened.st_ino;
  return same ? std::move(fd) : OwnedFd();
}

void remove_leftovers(const fs::path& place) {
  std::error_code error;
  for (fs::directory_iterator entry(place, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!entry->path().filename().string().starts_with(kFolderPrefix)) continue;
    if (const OwnedFd held = lock(entry->path())) WorkFolder::remove(entry->path());
  }
}

fs::path usual_place() {
  const char* place = std::getenv("TMPDIR");
  return place != nullptr && *place != '\0' ? place : "/tmp";
}

}  // namespace

WorkFolder::WorkFolder(fs::path place) {
  if (place.empty()) place = usual_place();
  std::error_code error;
  place = fs::absolute(place, error);
  if (error) fail_at(place, error.message());
  remove_leftovers(place);
  // A server that starts at the same time may take a folder that is not locked yet for left over.
  for (int tries = 0; !lock_; ++tries) {
    std::string name = (place / (std::string(kFolderPrefix) + "XXXXXX")).string();
    if (tries == 100) fail_at(place, "others remove it again and again");
    if (::mkdtemp(name.data()) == nullptr) fail_at(place, std::strerror(errno));
    path_ = name;
    errno = 0;
    lock_ = lock(path_);
    const int why = errno;
    if (lock_ || why == 0 || why == ENOENT || why == EWOULDBLOCK) continue;
    ::rmdir(path_.c_str());
    fail_at(place, std::strerror(why));
  }
}

WorkFolder::~WorkFolder() { remove(path_); }

fs::path WorkFolder::session_folder(std::uint64_t session) const {
  return path_ / std::to_string(session);
}

fs::path WorkFolder::make_session_folder(std::uint64_t session) const {
  fs::path folder = session_folder(session);
  if (::mkdir(folder.c_str(), 0700) != 0) {
    throw Error(ErrorKind::kFile,
                "cannot make the folder " + path_in_quotes(folder) + ": " + std::strerror(errno));
  }
  return folder;
}

bool WorkFolder::remove(const fs::path& folder) {
  std::error_code error;
  fs::remove_all(folder, error);
  return !error;
}

}  // namespace run_model::rpc
