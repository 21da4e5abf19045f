// SHA-256 (FIPS 180-4), the hash that golden cases and the scripts name files and tensors by.
//
// Own code because it is the only cryptography here: the packaged libraries (libcrypto, nettle)
// would have to be built from source for riscv64, which Debian 12 does not have, and add more to a
// program than the rest of it. Of files it guards against mix-ups and damage;
// rpc/server/authentication.h makes of it what proves to the RPC server that a client knows its
// key. What is hashed takes no part in deciding what is done next, so that the time tells its
// length only.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>

namespace run_model {

std::array<std::byte, 32> sha256(std::span<const std::byte> bytes);

// 64 lower-case hexadecimal digits, as sha256sum prints them.
std::string sha256_hex(std::span<const std::byte> bytes);

}  // namespace run_model
