#include "base/system_file.h"

#include <algorithm>
#include <span>

#include "base/file.h"
#include "base/text.h"

namespace run_model {

std::string read_system_file(const std::filesystem::path& path, std::size_t most) {
  std::string text;
  const OwnedFd file = open_to_read(path);
  if (!file) return text;
  text.resize(most);
  std::size_t size = 0;
  while (size < most) {
    const std::ptrdiff_t got =
        read_some(file.get(), std::as_writable_bytes(std::span(text).subspan(size)));
    if (got <= 0) break;
    size += static_cast<std::size_t>(got);
  }
  text.resize(size);
  return text;
}

std::string first_line(const std::filesystem::path& path) {
  std::string text = read_system_file(path);
  text.resize(std::min(text.find('\n'), text.size()));
  return text;
}

std::optional<std::uint64_t> read_number(const std::filesystem::path& path) {
  const std::string text = first_line(path);
  std::string_view rest = text;
  return rest.starts_with("0x") ? hex_number(rest.substr(2)) : take_number<std::uint64_t>(rest);
}

std::filesystem::path cpu_file(int number, const char* file, const std::filesystem::path& root) {
  return root / ("sys/devices/system/cpu/cpu" + std::to_string(number) + "/" + file);
}

std::string_view field(std::string_view text, std::string_view key) {
  constexpr std::string_view kSpace = " \t\r";
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (!line.starts_with(key)) continue;
    line.remove_prefix(key.size());
    const std::size_t value = line.find_first_not_of(": \t");
    // A longer key that begins alike is another one.
    if (value == 0 || value == line.npos) continue;
    line.remove_prefix(value);
    return line.substr(0, line.find_last_not_of(kSpace) + 1);
  }
  return {};
}

}  // namespace run_model
