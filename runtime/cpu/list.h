// Lists of CPU numbers as Linux writes them: "0,2-3".
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace run_model {

// The highest CPU number that a list may name.
inline constexpr int kHighestCpu = 65535;

// Ascending, each once; nothing for text of another form (also an empty one) and for numbers beyond
// kHighestCpu. White space around the list is passed over.
std::optional<std::vector<int>> parse_cpu_list(std::string_view text);

// The shortest list of these ascending numbers, with a range for two and more in a row.
std::string cpu_list_text(std::span<const int> cpus);

}  // namespace run_model
