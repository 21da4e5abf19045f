// SHA-256 (FIPS 180-4), the hash that golden cases and the scripts name files and tensors by.
//
// Own code because it is the only use of cryptography here: the packaged libraries (libcrypto,
// nettle) would have to be built from source for riscv64, which Debian 12 does not have, and add
// more to a program than the rest of it. It guards against mix-ups and damage, not against
// attackers.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace run_model {

// 64 lower-case hexadecimal digits, as sha256sum prints them.
std::string sha256_hex(std::span<const std::byte> bytes);

}  // namespace run_model
