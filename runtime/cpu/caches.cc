#include "runtime/cpu/caches.h"

#include <string_view>

#include "base/system_file.h"
#include "base/text.h"
#include "runtime/cpu/topology.h"

namespace run_model {
namespace {

std::uint64_t cache_bytes(std::string_view text) {
  const auto value = take_number<std::uint64_t>(text);
  if (!value || *value > (std::uint64_t{1} << 40)) return 0;
  if (text.empty()) return *value;
  return text == "K" ? *value << 10 : text == "M" ? *value << 20 : 0;
}

}  // namespace

std::vector<CpuCache> cpu_caches(int number, const std::filesystem::path& root) {
  constexpr int kMost = 16;
  std::vector<CpuCache> found;
  for (int index = 0; index < kMost; ++index) {
    const std::string folder = "cache/index" + std::to_string(index) + "/";
    const auto line = [&](const char* file) {
      return first_line(cpu_file(number, (folder + file).c_str(), root));
    };
    const std::string level_text = line("level");
    std::string_view rest = level_text;
    const auto level = take_number<int>(rest);
    if (!level) break;
    found.push_back({*level, line("type"), cache_bytes(line("size")),
                     parse_cpu_list(line("shared_cpu_list")).value_or(std::vector<int>{})});
  }
  return found;
}

}  // namespace run_model
