#include "rpc/server/authentication.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <run_model/error.h>
#include "base/file.h"
#include "base/sha256.h"
#include "base/text.h"
#include "rpc/server/wire.h"

namespace run_model::rpc {
namespace {

constexpr std::size_t kBlock = 64;

Digest proof(std::span<const std::byte> key, std::string_view role, const Nonce& client,
             const Nonce& server) {
  ByteVector message;
  append_text(message, role);
  message.insert(message.end(), client.begin(), client.end());
  message.insert(message.end(), server.begin(), server.end());
  return hmac_sha256(key, message);
}

constexpr std::size_t kLeast = 16;
constexpr std::size_t kMost = 4096;
constexpr char kHowToMake[] = "make one with: (umask 077; head -c 32 /dev/urandom | base64 > FILE)";

bool is_space(std::byte byte) {
  return std::strchr(" \t\n\r\v\f", std::to_integer<int>(byte)) != nullptr && byte != std::byte{0};
}

// Whether the rights of a group that the file seems to give are those of this process's user in an
// access control list: so systemd hands credentials to services. The list as the kernel gives it
// (linux/posix_acl_xattr.h), little-endian: u32 version, then for each entry u16 tag, u16 rights,
// u32 id.
bool is_ours_by_access_list(int file) {
  constexpr std::uint32_t kVersion = 2;
  constexpr std::size_t kHead = 4;
  constexpr std::size_t kEntry = 8;
  enum Tag : std::uint16_t { kOwner = 1, kUser = 2, kMask = 16 };
  std::array<std::byte, 256> list;
  const ssize_t size = ::fgetxattr(file, "system.posix_acl_access", list.data(), list.size());
  if (size < static_cast<ssize_t>(kHead) || number_at<std::uint32_t>(list) != kVersion)
    return false;
  const auto end = static_cast<std::size_t>(size);
  for (std::size_t entry = kHead; entry + kEntry <= end; entry += kEntry) {
    const auto tag = number_at<std::uint16_t>(list, entry);
    const bool has_rights = number_at<std::uint16_t>(list, entry + 2) != 0;
    const bool ours = tag == kUser && number_at<std::uint32_t>(list, entry + 4) == ::geteuid();
    if (has_rights && !ours && tag != kOwner && tag != kMask) return false;
  }
  return true;
}

}  // namespace

Digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message) {
  std::array<std::byte, kBlock> block{};
  if (key.size() > kBlock) {
    const Digest hashed = sha256(key);
    std::copy(hashed.begin(), hashed.end(), block.begin());
  } else {
    std::copy(key.begin(), key.end(), block.begin());
  }
  const auto keyed = [&block](std::byte pad, std::span<const std::byte> rest) {
    std::vector<std::byte> bytes;
    bytes.reserve(kBlock + rest.size());
    for (const std::byte byte : block) bytes.push_back(byte ^ pad);
    bytes.insert(bytes.end(), rest.begin(), rest.end());
    const Digest digest = sha256(bytes);
    ::explicit_bzero(bytes.data(), kBlock);
    return digest;
  };
  const Digest digest = keyed(std::byte{0x5c}, keyed(std::byte{0x36}, message));
  // Sessions get a copy of this process's memory, of which the key is to be no part.
  ::explicit_bzero(block.data(), block.size());
  return digest;
}

bool equal_in_constant_time(std::span<const std::byte> a, std::span<const std::byte> b) {
  if (a.size() != b.size()) return false;
  // volatile, so that the compiler does not end the loop at the first difference.
  volatile unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference = difference | std::to_integer<unsigned>(a[i] ^ b[i]);
  }
  return difference == 0;
}

Nonce random_nonce() {
  std::random_device device;
  Nonce nonce;
  for (std::size_t i = 0; i < nonce.size(); i += sizeof(std::uint32_t)) {
    const std::uint32_t word = device();
    std::memcpy(nonce.data() + i, &word, sizeof(word));
  }
  return nonce;
}

Digest client_proof(std::span<const std::byte> key, const Nonce& client, const Nonce& server) {
  return proof(key, "run_model rpc client", client, server);
}

Digest server_proof(std::span<const std::byte> key, const Nonce& client, const Nonce& server) {
  return proof(key, "run_model rpc server", client, server);
}

std::vector<std::byte> read_auth_key(const std::filesystem::path& path) {
  const std::string name = "the key file " + path_in_quotes(path);
  const OwnedFd file = open_to_read(path, O_NONBLOCK);
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) != 0) {
    throw Error(ErrorKind::kFile, name + " cannot be read: " + std::strerror(errno), kHowToMake);
  }
  if (!S_ISREG(status.st_mode)) throw Error(ErrorKind::kFile, name + " is not a regular file");
  if ((status.st_mode & 077) != 0 && !is_ours_by_access_list(file.get())) {
    throw Error(ErrorKind::kFile, name + " can be read or changed by others than its owner",
                "chmod 600 it, and make a new key if others may have seen it");
  }
  std::optional<std::vector<std::byte>> key = read_to_end(file.get(), kMost + 1);
  if (!key) throw Error(ErrorKind::kFile, name + " cannot be read: " + std::strerror(errno));
  if (key->size() > kMost) {
    throw Error(ErrorKind::kFormat, name + " has more than " + std::to_string(kMost) + " bytes",
                kHowToMake);
  }
  while (!key->empty() && is_space(key->back())) key->pop_back();
  if (key->size() < kLeast) {
    throw Error(ErrorKind::kFormat,
                name + " has a key of " + std::to_string(key->size()) +
                    " bytes, expected at least " + std::to_string(kLeast),
                kHowToMake);
  }
  return std::move(*key);
}

}  // namespace run_model::rpc
