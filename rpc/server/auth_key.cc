#include "rpc/server/auth_key.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include <run_model/error.h>
#include "base/file.h"
#include "base/text.h"

namespace run_model::rpc {
namespace {

constexpr std::size_t kLeast = 16;
constexpr std::size_t kMost = 4096;
constexpr char kHowToMake[] = "make one with: (umask 077; head -c 32 /dev/urandom | base64 > FILE)";

bool is_space(std::byte byte) {
  return std::strchr(" \t\n\r\v\f", std::to_integer<int>(byte)) != nullptr && byte != std::byte{0};
}

}  // namespace

std::vector<std::byte> read_auth_key(const std::filesystem::path& path) {
  const std::string name = "the key file " + path_in_quotes(path);
  const OwnedFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) != 0) {
    throw Error(ErrorKind::kFile, name + " cannot be read: " + std::strerror(errno), kHowToMake);
  }
  if (!S_ISREG(status.st_mode)) throw Error(ErrorKind::kFile, name + " is not a regular file");
  if ((status.st_mode & 077) != 0) {
    throw Error(ErrorKind::kFile, name + " can be read or changed by others than its owner",
                "chmod 600 it, and make a new key if others may have seen it");
  }
  std::vector<std::byte> key(kMost + 1);
  std::size_t length = 0;
  while (length < key.size()) {
    const ssize_t got = ::read(file.get(), key.data() + length, key.size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      throw Error(ErrorKind::kFile, name + " cannot be read: " + std::strerror(errno));
    }
    if (got == 0) break;
    length += static_cast<std::size_t>(got);
  }
  if (length > kMost) {
    throw Error(ErrorKind::kFormat, name + " has more than " + std::to_string(kMost) + " bytes",
                kHowToMake);
  }
  while (length > 0 && is_space(key[length - 1])) --length;
  if (length < kLeast) {
    throw Error(ErrorKind::kFormat,
                name + " has a key of " + std::to_string(length) + " bytes, expected at least " +
                    std::to_string(kLeast),
                kHowToMake);
  }
  key.resize(length);
  return key;
}

}  // namespace run_model::rpc
