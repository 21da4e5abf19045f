// Text from untrusted files, made fit for an error message.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace run_model {

// `text` in single quotes on one line: control characters and bytes that are no UTF-8 become \xNN,
// so that a file cannot send escape sequences to a terminal and the result is always valid UTF-8.
// Everything after `limit` bytes becomes "…".
std::string in_quotes(std::string_view text, std::size_t limit = 80);

// The same for the name of a file, in full.
std::string path_in_quotes(const std::filesystem::path& path);

}  // namespace run_model
