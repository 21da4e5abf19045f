// Numbers in reports.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace run_model {

// As printf prints it.
[[gnu::format(printf, 1, 2)]] std::string formatted(const char* format, ...);

// "1 core", "2 cores".
template <std::integral Number>
std::string counted(Number count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

}  // namespace run_model
