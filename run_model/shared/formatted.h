// Numbers in reports.
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>

namespace run_model {

// As printf prints it.
[[gnu::format(printf, 1, 2)]] std::string formatted(const char* format, ...);

// "320 B", "12.5 KiB", "4.0 MiB".
std::string bytes_text(std::size_t bytes);

// "1 core", "2 cores".
template <std::integral Number>
std::string counted(Number count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

}  // namespace run_model
