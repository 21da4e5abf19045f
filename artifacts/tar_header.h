// The 512 bytes before each member of a tar archive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace run_model {

inline constexpr std::size_t kTarBlock = 512;

struct TarHeader {
  std::string name;  // prefix and name, joined
  std::uint64_t bytes = 0;
  char type = '0';  // '0' file, '5' folder, 'x' and 'g' pax records, 'L' GNU long name …
};

bool is_zero_block(std::span<const std::byte> block);

// What is wrong with a header that is no header is said in `problem`, as in "its checksum is
// wrong"; nothing is returned then. `block` has kTarBlock bytes.
std::optional<TarHeader> parse_tar_header(std::span<const std::byte> block, std::string& problem);

// "a symbolic link", "a device" …: the types that hold no bytes of their own.
std::string_view tar_type_name(char type);

}  // namespace run_model
