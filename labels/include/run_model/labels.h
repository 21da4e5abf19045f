// The names of the classes that a classifier tells apart.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace run_model {

// Reads a text file with one label a line, in the order of the network's outputs: UTF-8, with or
// without a byte order mark, LF or CRLF. Empty lines at the end do not count; one between labels is
// an error, since it would shift all that follow. Where every line begins with a WordNet id, as in
// ImageNet's synset_words.txt ("n02123159 tiger cat"), the ids are left out.
// Throws Error(kFile), or Error(kFormat) naming the line: an empty file, a line of more than 1024
// bytes, bytes that are no UTF-8, control characters, a Python or JSON dictionary or list, or lines
// that are numbered from 0 or 1 on but lie in another order.
std::vector<std::string> read_labels(const std::filesystem::path& path);

// The same from memory; `name` stands for the file in messages.
std::vector<std::string> parse_labels(std::string_view text, const std::string& name);

// Throws Error(kMismatch) naming `path` unless there is one label for each of `outputs` classes.
void check_label_count(std::size_t labels, std::size_t outputs, const std::filesystem::path& path);

}  // namespace run_model
