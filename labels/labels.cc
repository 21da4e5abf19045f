#include <run_model/labels.h>

#include <algorithm>

#include <run_model/error.h>
#include "base/file.h"
#include "base/text.h"

namespace run_model {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{16} << 20;
constexpr std::size_t kMaxLineBytes = 1024;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
// "n01440764 ": WordNet's part of speech, eight digits of the synset's offset, and a space.
constexpr std::size_t kSynsetDigits = 8;
constexpr std::size_t kSynsetPrefix = kSynsetDigits + 2;

[[noreturn]] void fail(const std::string& name, const std::string& why,
                       const std::string& hint = "one label a line is expected, in UTF-8") {
  throw Error(ErrorKind::kFormat, name + " is not a usable label file: " + why, hint);
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  const auto blank = [](std::string_view line) {
    return line.find_first_not_of(" \t") == line.npos;
  };
  while (!lines.empty() && blank(lines.back())) lines.pop_back();
  return lines;
}

void check_line(std::string_view line, std::size_t number, const std::string& name) {
  const std::string where = "line " + std::to_string(number);
  if (line.size() > kMaxLineBytes) {
    fail(name, where + " has " + std::to_string(line.size()) + " bytes, more than " +
                   std::to_string(kMaxLineBytes));
  }
  if (line.find_first_not_of(" \t") == line.npos) {
    fail(name, where + " is empty", "an empty line would shift the labels after it: remove it");
  }
  const bool control = std::any_of(line.begin(), line.end(), [](unsigned char c) {
    return (c < 0x20 && c != '\t') || c == 0x7F;
  });
  if (control) fail(name, where + " holds control characters, so it is no text file");
  if (!is_utf8(line)) fail(name, where + " is not UTF-8");
}

bool has_synset_id(std::string_view line) {
  if (line.size() <= kSynsetPrefix || line[0] != 'n' || line[kSynsetPrefix - 1] != ' ') {
    return false;
  }
  return line.substr(1, kSynsetDigits).find_first_not_of("0123456789") == line.npos;
}

// The number that a line begins with, apart from what follows.
std::optional<std::size_t> number_of(std::string_view line) {
  const auto number = take_number<std::size_t>(line);
  return line.find_first_of(" \t:;,=") == 0 ? number : std::nullopt;
}

// Refuses lines that are numbered from 0 or 1 on, each with a number of its own, but not in that
// order, as where the numbers were sorted as text: the labels would be other classes'.
void check_numbers(const std::vector<std::string_view>& lines, const std::string& name) {
  std::size_t first = 1;
  for (const std::string_view line : lines) {
    if (number_of(line) == 0U) first = 0;
  }
  std::string seen(lines.size(), '\0');
  std::size_t wrong = lines.size();
  for (std::size_t i = lines.size(); i-- > 0;) {
    const std::optional<std::size_t> number = number_of(lines[i]);
    if (!number || *number - first >= lines.size() || seen[*number - first] != 0) return;
    seen[*number - first] = 1;
    if (*number != first + i) wrong = i;
  }
  if (wrong == lines.size()) return;
  fail(name, "line " + std::to_string(wrong + 1) + " has another number than its place",
       "sort the lines by their numbers");
}

}  // namespace

std::vector<std::string> parse_labels(std::string_view text, const std::string& name) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const std::vector<std::string_view> lines = split_lines(text);
  if (lines.empty()) fail(name, "it is empty");
  const std::string_view start = trimmed(lines.front());
  if (start.starts_with('{')) {
    fail(name, "it begins with '{', as a Python or JSON dictionary does");
  }
  if (start == "[" || start.starts_with("[\"") || start.starts_with("['")) {
    fail(name, "it begins with '[', as a Python or JSON list does");
  }
  for (std::size_t i = 0; i < lines.size(); ++i) check_line(lines[i], i + 1, name);
  check_numbers(lines, name);

  const bool synsets = std::all_of(lines.begin(), lines.end(), has_synset_id);
  std::vector<std::string> labels;
  labels.reserve(lines.size());
  for (const std::string_view line : lines) {
    labels.emplace_back(synsets ? line.substr(kSynsetPrefix) : line);
  }
  return labels;
}

std::vector<std::string> read_labels(const std::filesystem::path& path) {
  return parse_labels(as_text(read_file(path, kMaxFileBytes, "a label file")),
                      path_in_quotes(path));
}

void check_label_count(std::size_t labels, std::size_t outputs, const std::filesystem::path& path) {
  if (labels == outputs) return;
  throw Error(ErrorKind::kMismatch,
              path_in_quotes(path) + " has " + std::to_string(labels) +
                  " labels, but the model tells " + std::to_string(outputs) + " classes apart",
              "give the label file that belongs to this model");
}

}  // namespace run_model
