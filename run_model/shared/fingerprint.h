// A short name for bytes, to tell whether two things are the same.
#pragma once

#include <cstdint>
#include <string_view>

namespace run_model {

inline constexpr std::uint64_t kFnvStart = 0xcbf29ce484222325U;

// FNV-1a with 64 bits (RFC 9923); `hash` goes on from earlier bytes.
inline std::uint64_t fnv_1a(std::string_view bytes, std::uint64_t hash = kFnvStart) {
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

}  // namespace run_model
