// Bytes of a file seen as characters.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace run_model {

inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace run_model
