#include "run_model/documents/documents.h"

#include <cctype>

namespace run_model {
namespace {

bool is_name_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '-'; }

// The flag that begins at `start`, "--no-verify" or "-o", or nothing.
std::string_view flag_at(std::string_view text, std::size_t start) {
  const bool begins = start == 0 || std::string_view(" (/").find(text[start - 1]) != text.npos;
  std::size_t end = start;
  while (end < text.size() && is_name_character(text[end])) ++end;
  const std::string_view word = text.substr(start, end - start);
  const std::size_t dashes = word.find_first_not_of('-');
  const bool is_flag = begins && dashes != word.npos && std::islower(word[dashes]) != 0 &&
                       (dashes == 2 || (dashes == 1 && word.size() == 2));
  return is_flag ? word : std::string_view();
}

// Text in which roff sees no commands; a dash that is one on the command line stays one.
std::string escaped(std::string_view text, bool literal) {
  std::string result;
  for (const char c : text) {
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-' && literal) {
      result += "\\-";
    } else if ((c == '.' || c == '\'') && result.empty()) {
      result += std::string("\\&") + c;
    } else if (c == '^' || c == '~' || c == '`' || (c == '\'' && literal)) {
      result += c == '^' ? "\\(ha" : c == '~' ? "\\(ti" : c == '`' ? "\\(ga" : "\\(aq";
    } else {
      result += c;
    }
  }
  return result;
}

std::string bold(std::string_view text) { return "\\fB" + escaped(text, true) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + escaped(text, true) + "\\fR"; }

// Flags are bold wherever they are spoken of.
std::string with_flags(std::string_view text) {
  std::string result;
  std::size_t plain = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view flag = text[i] == '-' ? flag_at(text, i) : std::string_view();
    if (flag.empty()) continue;
    result += escaped(text.substr(plain, i - plain), false) + bold(flag);
    plain = i + flag.size();
    i = plain - 1;
  }
  return result + escaped(text.substr(plain), false);
}

// "NAME" and "IN.npz", but not "[flags]": what stands for something else in a synopsis.
bool is_placeholder(std::string_view word) {
  return !word.empty() && std::isupper(static_cast<unsigned char>(word.front())) != 0;
}

std::string synopsis(std::string_view usage) {
  std::string result;
  for (const std::string& word : split_words(usage)) {
    const std::size_t start = word.find_first_not_of('[');
    const std::size_t end = word.find_last_not_of(']') + 1;
    const std::string name = word.substr(start, end - start);
    const bool placeholder = is_placeholder(name) || name == "flags";
    result +=
        " " + word.substr(0, start) + (placeholder ? italic(name) : bold(name)) + word.substr(end);
  }
  return result;
}

// A sentence out of words that begin in lower case, unless with one of `names`, and end without a
// full stop.
std::string sentence(std::string_view words, const std::string& names = "") {
  std::string text(words);
  const std::string first = text.substr(0, text.find_first_of(" ,:;"));
  const bool is_word = first.find_first_not_of("abcdefghijklmnopqrstuvwxyz'") == first.npos;
  if (is_word && (" " + names + " ").find(" " + first + " ") == text.npos) {
    text[0] = static_cast<char>(std::toupper(text[0]));
  }
  if (std::string_view(".:?!").find(text.back()) == text.npos) text += ".";
  return text;
}

void add_blocks(std::string& page, std::string_view words, std::string_view separator) {
  bool first = true;
  for (const Block& block : blocks(words)) {
    if (block.kept) {
      page += ".PP\n.EX\n" + escaped(block.text, true) + "\n.EE\n.PP\n";
    } else {
      if (!first) page += separator;
      page += with_flags(block.text) + "\n";
    }
    first = false;
  }
}

// An entry of a list; kept lines of its words are indented with it. Words may begin with one of
// `names`.
void add_item(std::string& page, const std::string& tag, const std::string& words, const char* more,
              const std::string& names = "") {
  page += ".TP\n" + tag + "\n";
  const std::vector<Block> parts = blocks(words);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].kept) {
      page += ".RS\n.PP\n.EX\n" + escaped(parts[i].text, true) + "\n.EE\n.RE\n.IP\n";
    } else {
      page += with_flags(sentence(parts[i].text, names)) + "\n";
    }
  }
  if (more != nullptr) page += with_flags(more) + "\n";
}

std::string tag_of(const Flag& flag) {
  std::string tag;
  for (const std::string& alias : flag_aliases(flag)) {
    if (alias.size() == 1) tag += bold(flag_spelling(alias)) + ", ";
  }
  tag += bold(flag_spelling(flag.name));
  return flag.value == nullptr ? tag : tag + " " + italic(flag.value);
}

void add_flags(std::string& page, const FlagGroup& group) {
  page += ".SS " + escaped(group.heading, false) + "\n";
  if (group.note != nullptr) page += with_flags(group.note) + "\n";
  if (group.more != nullptr) page += with_flags(group.more) + "\n";
  for (const Flag& flag : group.flags) {
    if (flag.words != nullptr) {
      add_item(page, tag_of(flag), flag_words(flag, flag.words), flag.more,
               flag.choices == nullptr ? "" : flag.choices);
    }
    if (flag.negated != nullptr) {
      add_item(page, bold(flag_spelling("no_" + std::string(flag.name))), flag.negated, nullptr);
    }
  }
}

void add_entries(std::string& page, const char* heading, std::span<const Entry> entries) {
  if (entries.empty()) return;
  page += ".SH " + std::string(heading) + "\n";
  for (const Entry& entry : entries) add_item(page, bold(entry.name), entry.words, entry.more);
}

std::string upper_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return result;
}

}  // namespace

std::string man_page(const Manual& manual) {
  const std::string program = manual.program;
  std::string page =
      ".TH " + upper_case(program) + " 1 \"\" \"run_model " RUN_MODEL_VERSION "\"\n.ad l\n.nh\n";
  page += ".SH NAME\n" + program + " \\- " + escaped(manual.summary, false) + "\n.SH SYNOPSIS\n";
  for (std::size_t i = 0; i < manual.usages.size(); ++i) {
    page += (i > 0 ? ".br\n" : "") + bold(program) + synopsis(manual.usages[i].name) + "\n";
  }
  page += ".SH DESCRIPTION\n";
  add_blocks(page, manual.description, ".PP\n");
  if (manual.more != nullptr) page += ".PP\n", add_blocks(page, manual.more, ".PP\n");
  for (const Entry& argument : manual.arguments) {
    add_item(page, italic(argument.name), argument.words, argument.more);
  }
  page += ".SH OPTIONS\n";
  for (const FlagGroup& group : manual.groups) add_flags(page, group);
  for (const Entry& topic : manual.topics) {
    page += ".SH " + upper_case(topic.name) + "\n";
    add_blocks(page, sentence(topic.words), ".PP\n");
  }
  page += ".SH EXIT STATUS\n";
  for (const ExitCode& code : exit_codes(manual)) {
    page += ".TP\n.B " + std::to_string(code.code) + "\n" + with_flags(code.words) + "\n";
  }
  add_entries(page, "ENVIRONMENT", manual.environment);
  add_entries(page, "FILES", manual.files);
  page += ".SH EXAMPLES\n";
  for (const Entry& example : manual.examples) {
    page += ".PP\n" + with_flags(example.words) + "\n.PP\n.RS 4\n.EX\n" +
            escaped(example.name, true) + "\n.EE\n.RE\n";
  }
  page += ".SH SEE ALSO\n";
  std::string before;
  for (const std::string& other : split_words(manual.see_also)) {
    page += before + bold(other) + "(1)";
    before = ",\n";
  }
  return page + "\n";
}

}  // namespace run_model
