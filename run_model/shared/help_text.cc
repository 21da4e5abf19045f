#include "run_model/shared/help_text.h"

#include <algorithm>

namespace run_model {
namespace {

constexpr std::size_t kWidth = 100;
// Where the words on a flag, and those on an argument, begin.
constexpr std::size_t kFlagColumn = 23;
constexpr std::size_t kArgumentColumn = 13;

// Fills lines with the words, all indented; the first line goes on at the end of `text`.
void fill_lines(std::string& text, std::string_view words, std::size_t indent) {
  std::size_t column = text.size() - (text.rfind('\n') + 1);
  bool first = true;
  for (const std::string& word : split_words(words)) {
    if (!first && column + 1 + word.size() > kWidth) {
      text += "\n";
      column = 0;
    } else if (!first) {
      text += " ";
      ++column;
    }
    if (column < indent) {
      text.append(indent - column, ' ');
      column = indent;
    }
    text += word;
    column += word.size();
    first = false;
  }
  text += "\n";
}

// With a blank line before every paragraph but the first where there is room for it.
void add_words(std::string& text, std::string_view words, std::size_t indent, bool spaced) {
  bool first = true;
  for (const Block& block : blocks(words)) {
    if (!first && spaced && !block.kept) text += "\n";
    if (!block.kept) {
      fill_lines(text, block.text, indent);
    } else {
      std::string_view rest = block.text;
      while (!rest.empty()) {
        const std::size_t end = std::min(rest.find('\n'), rest.size());
        text.append(indent, ' ').append(rest.substr(0, end)).append("\n");
        rest.remove_prefix(std::min(end + 1, rest.size()));
      }
    }
    first = false;
  }
}

void add_entry(std::string& text, const std::string& name, std::string_view words,
               std::size_t column) {
  text += "  " + name;
  const std::size_t end = 2 + name.size();
  if (end + 1 > column) text += "\n";
  add_words(text, words, column, false);
}

void add_flag(std::string& text, const Flag& flag) {
  if (flag.words != nullptr) {
    add_entry(text, flag_usage(flag), flag_words(flag, flag.words), kFlagColumn);
  }
  if (flag.negated != nullptr) {
    add_entry(text, flag_spelling("no_" + std::string(flag.name)), flag.negated, kFlagColumn);
  }
}

void add_usages(std::string& text, const Manual& manual) {
  std::size_t longest = 0;
  for (const Entry& usage : manual.usages) {
    longest = std::max(longest, std::string_view(usage.name).size());
  }
  text += "\nUsage:\n";
  for (const Entry& usage : manual.usages) {
    text += std::string("  ") + manual.program + " " + usage.name;
    if (*usage.words != 0) {
      text.append(longest - std::string_view(usage.name).size() + 1, ' ').append(usage.words);
    }
    text += "\n";
  }
}

}  // namespace

std::string help_text(const Manual& manual) {
  std::string text;
  add_words(text, manual.description, 0, true);
  add_usages(text, manual);
  if (!manual.arguments.empty()) text += "\n";
  for (const Entry& argument : manual.arguments) {
    add_entry(text, argument.name, argument.words, kArgumentColumn);
  }
  for (const FlagGroup& group : manual.groups) {
    text += "\n" + std::string(group.heading) + ":\n";
    if (group.note != nullptr) add_words(text, group.note, 2, true);
    for (const Flag& flag : group.flags) add_flag(text, flag);
  }
  for (const Entry& topic : manual.topics) {
    text += "\n" + std::string(topic.name) + ":\n";
    add_words(text, topic.words, 2, true);
  }
  text += "\nExit codes:\n";
  for (const ExitCode& code : exit_codes(manual)) {
    const std::string number = std::to_string(code.code);
    text += "  " + number + std::string(3 - number.size(), ' ') + std::string(code.words) + "\n";
  }
  text += "\nExamples:\n";
  for (const Entry& example : manual.examples) text += "  " + std::string(example.name) + "\n";
  return text;
}

std::string version_text(const Manual& manual) {
  return std::string(manual.program) + " " RUN_MODEL_VERSION "\n";
}

}  // namespace run_model
