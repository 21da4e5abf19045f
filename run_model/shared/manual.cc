#include "run_model/shared/manual.h"

#include <algorithm>
#include <array>

namespace run_model {
namespace {

// In the order of their exit codes, which begin at 1.
constexpr std::array kKinds{ErrorKind::kInternal, ErrorKind::kUsage,        ErrorKind::kFile,
                            ErrorKind::kFormat,   ErrorKind::kIncompatible, ErrorKind::kMismatch,
                            ErrorKind::kImage,    ErrorKind::kModel};

bool has_alias(const Flag& flag, std::string_view name) {
  const std::vector<std::string> aliases = flag_aliases(flag);
  return std::find(aliases.begin(), aliases.end(), name) != aliases.end();
}

}  // namespace

int exit_code(ErrorKind kind) {
  return static_cast<int>(std::find(kKinds.begin(), kKinds.end(), kind) - kKinds.begin()) + 1;
}

std::vector<ExitCode> exit_codes(const Manual& manual) {
  std::vector<ExitCode> codes{{0, manual.success}};
  for (const ErrorKind kind : kKinds) {
    codes.push_back({exit_code(kind), error_kind_name(kind)});
    if (kind == manual.last_error) break;
  }
  codes.insert(codes.end(), manual.exit_codes.begin(), manual.exit_codes.end());
  return codes;
}

const Flag* find_flag(const Manual& manual, std::string_view name) {
  for (const FlagGroup& group : manual.groups) {
    for (const Flag& flag : group.flags) {
      if (flag.name == name || has_alias(flag, name)) return &flag;
    }
  }
  return nullptr;
}

std::string flag_spelling(std::string_view name) {
  std::string text = (name.size() == 1 ? "-" : "--") + std::string(name);
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

std::vector<std::string> flag_aliases(const Flag& flag) {
  return flag.aliases == nullptr ? std::vector<std::string>() : split_words(flag.aliases);
}

std::vector<std::string> flag_choices(const Flag& flag) {
  return flag.choices == nullptr ? std::vector<std::string>() : split_words(flag.choices);
}

std::string flag_usage(const Flag& flag) {
  std::string text;
  for (const std::string& alias : flag_aliases(flag)) {
    if (alias.size() == 1) text += flag_spelling(alias) + ", ";
  }
  text += flag_spelling(flag.name);
  return flag.value == nullptr ? text : text + " " + flag.value;
}

std::string flag_words(const Flag& flag, std::string_view words) {
  std::string text(words);
  const std::size_t place = text.find("{}");
  if (place != text.npos && flag.standard != nullptr) text.replace(place, 2, flag.standard);
  return text;
}

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  while (true) {
    const std::size_t start = text.find_first_not_of(' ');
    if (start == text.npos) return words;
    text.remove_prefix(start);
    const std::size_t end = std::min(text.find(' '), text.size());
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

std::vector<Block> blocks(std::string_view text) {
  std::vector<Block> result;
  bool joins = false;  // the next line goes on where the last one ended
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) {
      joins = false;
      continue;
    }
    const bool kept = line.front() == ' ';
    if (joins && result.back().kept == kept) {
      result.back().text += (kept ? "\n" : " ") + std::string(line);
    } else {
      result.push_back({kept, std::string(line)});
    }
    joins = true;
  }
  return result;
}

}  // namespace run_model
