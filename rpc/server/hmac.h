// HMAC-SHA256 (RFC 2104, FIPS 198-1).
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace run_model::rpc {

using Digest = std::array<std::byte, 32>;

Digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message);

// Takes the same time wherever the two differ. False for different lengths.
bool equal_in_constant_time(std::span<const std::byte> a, std::span<const std::byte> b);

}  // namespace run_model::rpc
