#include "rpc/server/hmac.h"

#include <algorithm>
#include <vector>

#include "base/sha256.h"

namespace run_model::rpc {
namespace {

constexpr std::size_t kBlock = 64;

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
    return sha256(bytes);
  };
  return keyed(std::byte{0x5c}, keyed(std::byte{0x36}, message));
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

}  // namespace run_model::rpc
