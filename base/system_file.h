// Small files in which the kernel tells about itself: procfs, sysfs, cgroupfs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace run_model {

// The start of a file, at most `most` bytes; empty where it cannot be read.
std::string read_system_file(const std::filesystem::path& path, std::size_t most = 4096);

// Its first line without the newline; empty where it cannot be read.
std::string first_line(const std::filesystem::path& path);

// The decimal number, or with 0x the hexadecimal one, at the start of a file.
std::optional<std::uint64_t> read_number(const std::filesystem::path& path);

// <root>/sys/devices/system/cpu/cpu<number>/<file>.
std::filesystem::path cpu_file(int number, const char* file, const std::filesystem::path& root);

// The value after "key" and a colon or white space in a text of such lines, without the white space
// around it; empty where there is none. "VmRSS:\t  12 kB" gives "12 kB".
std::string_view field(std::string_view text, std::string_view key);

}  // namespace run_model
