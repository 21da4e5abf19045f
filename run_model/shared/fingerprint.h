// A short name for bytes, to tell whether two things are the same.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace run_model {

inline constexpr std::uint64_t kFnvStart = 0xcbf29ce484222325U;

// FNV-1a with 64 bits (RFC 9923); `hash` goes on from earlier bytes.
inline std::uint64_t fnv_1a(std::string_view bytes, std::uint64_t hash = kFnvStart) {
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

// 16 lower-case hexadecimal digits.
inline std::string hex(std::uint64_t hash) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(hash));
  return text.data();
}

}  // namespace run_model
