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

// A file's name as a person knows it: a file that exists in memory only (/proc/self/fd/7) goes by
// the name that it was made with.
std::string shown_path(const std::filesystem::path& path);

// The same in quotes, in full.
std::string path_in_quotes(const std::filesystem::path& path);

}  // namespace run_model
