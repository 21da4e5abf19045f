#include "run_model/shared/arguments.h"

#include <gflags/gflags.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <map>
#include <optional>

#include <run_model/error.h>
#include "base/text.h"
#include "run_model/shared/help_text.h"
#include "run_model/shared/program.h"

namespace run_model {
namespace {

// gflags has these in every program; they would read other files or exit on their own.
constexpr std::array<std::string_view, 11> kHiddenFlags{"flagfile",
                                                        "fromenv",
                                                        "tryfromenv",
                                                        "undefok",
                                                        "helpshort",
                                                        "helpon",
                                                        "helpxml",
                                                        "helppackage",
                                                        "helpmatch",
                                                        "tab_completion_word",
                                                        "tab_completion_columns"};

template <typename Container>
bool contains(const Container& container, std::string_view value) {
  return std::find(container.begin(), container.end(), value) != container.end();
}

// gflags' name of the type, or empty when there is no such flag.
std::string flag_type(const std::string& name) {
  gflags::CommandLineFlagInfo info;
  if (contains(kHiddenFlags, name) || !gflags::GetCommandLineFlagInfo(name.c_str(), &info)) {
    return "";
  }
  return info.type;
}

std::optional<double> parse_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto value = whole_number<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

const std::string kListHint = "--help lists the flags";

[[noreturn]] void fail(const std::string& message, const std::string& hint = kListHint) {
  throw Error(ErrorKind::kUsage, message, hint);
}

// How many letters have to be put in, left out, changed or swapped with their neighbour (the
// optimal string alignment distance).
std::size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> edits(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) edits[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) edits[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      edits[i][j] =
          std::min({edits[i - 1][j] + 1, edits[i][j - 1] + 1, edits[i - 1][j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        edits[i][j] = std::min(edits[i][j], edits[i - 2][j - 2] + 1);
      }
    }
  }
  return edits[a.size()][b.size()];
}

// The flag that was probably meant, as it is written, or nothing.
std::string nearest_flag(const Manual& manual, std::string_view name) {
  constexpr std::size_t kLongestName = 40;
  if (name.size() < 2 || name.size() > kLongestName) return "";
  std::string nearest;
  std::size_t least = std::max<std::size_t>(1, name.size() / 3) + 1;
  const auto consider = [&](const std::string& known) {
    const std::size_t edits = known.size() > 1 ? edits_between(name, known) : least;
    if (edits >= least) return;
    least = edits;
    nearest = known;
  };
  for (const FlagGroup& group : manual.groups) {
    for (const Flag& flag : group.flags) {
      if (!flag.is_shown()) continue;
      consider(flag.name);
      if (flag.negated != nullptr) consider("no_" + std::string(flag.name));
      for (const std::string& alias : flag_aliases(flag)) consider(alias);
    }
  }
  return nearest.empty() ? "" : flag_spelling(nearest);
}

class Splitter {
 public:
  Splitter(const Manual& manual, std::span<const std::string> args)
      : manual_(manual), args_(args) {}

  Arguments run() {
    bool flags_end = false;
    while (next_ < args_.size()) {
      const std::string& arg = args_[next_++];
      if (flags_end || arg.size() < 2 || arg[0] != '-') {
        result_.positional.push_back(arg);
      } else if (arg == "--") {
        flags_end = true;
      } else {
        flag(arg);
      }
    }
    return std::move(result_);
  }

 private:
  void flag(const std::string& arg) {
    const std::size_t start = arg.starts_with("--") ? 2 : 1;
    const std::size_t equals = arg.find('=');
    std::string name = arg.substr(start, equals == arg.npos ? arg.npos : equals - start);
    std::replace(name.begin(), name.end(), '-', '_');
    const Flag* known = find_flag(manual_, name);
    if (known != nullptr) name = known->name;
    std::optional<std::string> value;
    if (equals != arg.npos) value = arg.substr(equals + 1);

    const std::string type = flag_type(name);
    if (type.empty()) {
      negated_switch(arg, name, value);
    } else if (type == "bool") {
      add(name, value.value_or("true"));
    } else if (known != nullptr && known->values == 3) {
      add(name, value ? *value : triple(name));
    } else {
      add(name, value ? *value : single(name));
    }
  }

  void negated_switch(const std::string& arg, const std::string& name,
                      const std::optional<std::string>& value) {
    for (const std::string_view prefix : {"no_", "no"}) {
      if (!name.starts_with(prefix) || flag_type(name.substr(prefix.size())) != "bool") continue;
      if (value)
        fail(flag_spelling(name) + " takes no value, but " + in_quotes(*value) + " was given");
      add(name.substr(prefix.size()), "false");
      return;
    }
    const std::string nearest = nearest_flag(manual_, name);
    fail("there is no flag " + in_quotes(arg.substr(0, arg.find('='))),
         nearest.empty() ? kListHint : "did you mean " + nearest + "? " + kListHint);
  }

  std::string single(const std::string& name) {
    if (next_ == args_.size() || args_[next_].starts_with("--")) {
      fail(flag_spelling(name) + " needs a value" + found_instead());
    }
    return args_[next_++];
  }

  // Three numbers, in one argument or in three.
  std::string triple(const std::string& name) {
    if (next_ < args_.size() && args_[next_].find(',') != std::string::npos) return args_[next_++];
    std::string joined;
    for (int count = 0; count < 3; ++count) {
      if (next_ == args_.size() || !parse_number(args_[next_])) {
        fail(flag_spelling(name) + " takes three numbers, one for each channel, but " +
                 (count == 0 ? "none was"
                             : std::to_string(count) + (count == 1 ? " was" : " were")) +
                 " given" + found_instead(),
             "write it as in " + flag_spelling(name) + " 0.485 0.456 0.406");
      }
      joined += (count == 0 ? "" : ",") + args_[next_++];
    }
    return joined;
  }

  std::string found_instead() const {
    return next_ < args_.size() ? " before " + in_quotes(args_[next_]) : "";
  }

  void add(const std::string& name, const std::string& value) {
    result_.flags.push_back({name, value});
  }

  const Manual& manual_;
  std::span<const std::string> args_;
  std::size_t next_ = 0;
  Arguments result_;
};

// Tells gflags of one flag: where its value is kept, and what it is by default. gflags keeps copies
// of neither name nor words, which are literals here, but owns the place of the default.
struct Registration {
  const Flag& flag;

  void operator()(std::monostate) const {}

  template <typename Value>
  void operator()(Value* value) const {
    const gflags::FlagRegisterer registerer(flag.name, flag.words == nullptr ? "" : flag.words, "",
                                            value, new Value());
    if (flag.standard == nullptr) return;
    gflags::SetCommandLineOptionWithMode(flag.name, flag.standard, gflags::SET_FLAGS_DEFAULT);
  }
};

std::string joined_choices(const std::vector<std::string>& choices) {
  std::string text;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const bool last = i + 1 == choices.size();
    text += (i == 0 ? "" : last ? " or " : ", ") + choices[i];
  }
  return text;
}

void check_choice(const Flag& flag, std::string_view value) {
  const std::vector<std::string> choices = flag_choices(flag);
  if (choices.empty() || flag.list || contains(choices, value)) return;
  fail(flag_spelling(flag.name) + " is " + in_quotes(value) + ", expected " +
       joined_choices(choices));
}

std::string expected_for(const std::string& type) {
  if (type == "bool") return "true or false";
  if (type == "double") return "a number";
  return "a whole number";
}

}  // namespace

bool register_flags(const Manual& manual) {
  for (const FlagGroup& group : manual.groups) {
    for (const Flag& flag : group.flags) std::visit(Registration{flag}, flag.storage);
  }
  return true;
}

Arguments split_arguments(const Manual& manual, std::span<const std::string> args) {
  return Splitter(manual, args).run();
}

void set_flags(const Manual& manual, const std::vector<FlagArgument>& flags) {
  std::map<std::string, std::string> switches;
  for (const FlagArgument& flag : flags) {
    const std::string type = flag_type(flag.name);
    const Flag* known = find_flag(manual, flag.name);
    if (known != nullptr) check_choice(*known, flag.value);
    if (gflags::SetCommandLineOption(flag.name.c_str(), flag.value.c_str()).empty()) {
      fail(flag_spelling(flag.name) + " is given " + in_quotes(flag.value) + ", but takes " +
           expected_for(type));
    }
    if (type != "bool") continue;
    std::string value;
    gflags::GetCommandLineOption(flag.name.c_str(), &value);
    if (!switches.emplace(flag.name, value).second && switches[flag.name] != value) {
      fail(flag_spelling(flag.name) + " and " + flag_spelling("no_" + flag.name) +
               " contradict each other",
           "give one of them");
    }
  }
}

HelpRequest help_request() {
  const auto is_on = [](const char* name) { return flag_value(name) == "true"; };
  if (is_on("help")) return HelpRequest::kHelp;
  if (is_on("helpfull")) return HelpRequest::kFullHelp;
  return is_on("version") ? HelpRequest::kVersion : HelpRequest::kNone;
}

void print_help(const Manual& manual, HelpRequest request) {
  const bool version = request == HelpRequest::kVersion;
  // Whoever looks at the first lines only has seen enough.
  std::signal(SIGPIPE, SIG_DFL);
  write_standard_output(version ? version_text(manual) : help_text(manual));
  if (request == HelpRequest::kFullHelp) gflags::ShowUsageWithFlags(manual.program);
}

bool flag_is_set(const char* name) { return !gflags::GetCommandLineFlagInfoOrDie(name).is_default; }

std::string flag_value(const char* name) {
  return gflags::GetCommandLineFlagInfoOrDie(name).current_value;
}

bool asks_for_json(std::span<const std::string> args) {
  return std::any_of(args.begin(), args.end(), [](const std::string& arg) {
    return arg == "--json" || arg == "-json" || arg == "--json=true" || arg == "--json=1";
  });
}

std::array<double, 3> parse_triple(const std::string& flag, std::string_view text) {
  const auto refuse = [&](const std::string& why) {
    fail(flag_spelling(flag) + " takes three numbers, one for each channel, but " + why,
         "write it as in " + flag_spelling(flag) + " 0.485 0.456 0.406");
  };
  std::array<double, 3> values{};
  std::size_t count = 0;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    const std::optional<double> value = parse_number(item);
    if (!value) refuse(in_quotes(item) + " is none");
    if (count < values.size()) values[count] = *value;
    ++count;
    if (comma == text.npos) break;
    text.remove_prefix(comma + 1);
  }
  if (count != values.size()) {
    refuse(std::to_string(count) + (count == 1 ? " was given" : " were given"));
  }
  return values;
}

double parse_percentage(const std::string& flag, std::string_view text) {
  std::string_view digits = text;
  if (digits.ends_with('%')) digits.remove_suffix(1);
  const std::optional<double> percent = parse_number(digits);
  if (!percent || *percent < 0 || *percent > 100) {
    fail(flag_spelling(flag) + " is " + in_quotes(text) + ", expected a percentage such as 2%");
  }
  return *percent / 100;
}

}  // namespace run_model
