#include "run_model/shared/arguments.h"

#include <gflags/gflags.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>

#include <run_model/error.h>
#include "base/text.h"

namespace run_model {
namespace {

// Flags that take one value for each channel.
constexpr std::array<std::string_view, 2> kTripleFlags{"mean", "std"};

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

const std::map<std::string, std::string, std::less<>> kAliases{
    {"h", "help"}, {"i", "inputs"}, {"o", "outputs"}, {"save_outputs", "outputs"}};

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
  double value = 0;
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

std::string shown(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return (name.size() == 1 ? "-" : "--") + name;
}

[[noreturn]] void fail(const std::string& message,
                       const std::string& hint = "--help lists the flags") {
  throw Error(ErrorKind::kUsage, message, hint);
}

class Splitter {
 public:
  explicit Splitter(std::span<const std::string> args) : args_(args) {}

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
    if (const auto alias = kAliases.find(name); alias != kAliases.end()) name = alias->second;
    std::optional<std::string> value;
    if (equals != arg.npos) value = arg.substr(equals + 1);

    const std::string type = flag_type(name);
    if (type.empty()) {
      negated_switch(arg, name, value);
    } else if (type == "bool") {
      add(name, value.value_or("true"));
    } else if (contains(kTripleFlags, name)) {
      add(name, value ? *value : triple(name));
    } else {
      add(name, value ? *value : single(name));
    }
  }

  void negated_switch(const std::string& arg, std::string name,
                      const std::optional<std::string>& value) {
    for (const std::string_view prefix : {"no_", "no"}) {
      if (!name.starts_with(prefix) || flag_type(name.substr(prefix.size())) != "bool") continue;
      if (value) fail(shown(name) + " takes no value, but " + in_quotes(*value) + " was given");
      add(name.substr(prefix.size()), "false");
      return;
    }
    fail("there is no flag " + in_quotes(arg.substr(0, arg.find('='))));
  }

  std::string single(const std::string& name) {
    if (next_ == args_.size() || args_[next_].starts_with("--")) {
      fail(shown(name) + " needs a value" + found_instead());
    }
    return args_[next_++];
  }

  // Three numbers, in one argument or in three.
  std::string triple(const std::string& name) {
    if (next_ < args_.size() && args_[next_].find(',') != std::string::npos) return args_[next_++];
    std::string joined;
    for (int count = 0; count < 3; ++count) {
      if (next_ == args_.size() || !parse_number(args_[next_])) {
        fail(shown(name) + " takes three numbers, one for each channel, but " +
                 (count == 0 ? "none was"
                             : std::to_string(count) + (count == 1 ? " was" : " were")) +
                 " given" + found_instead(),
             "write it as in " + shown(name) + " 0.485 0.456 0.406");
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

  std::span<const std::string> args_;
  std::size_t next_ = 0;
  Arguments result_;
};

std::string expected_for(const std::string& type) {
  if (type == "bool") return "true or false";
  if (type == "double") return "a number";
  return "a whole number";
}

}  // namespace

Arguments split_arguments(std::span<const std::string> args) { return Splitter(args).run(); }

void set_flags(const std::vector<FlagArgument>& flags) {
  std::map<std::string, std::string> switches;
  for (const FlagArgument& flag : flags) {
    const std::string type = flag_type(flag.name);
    if (gflags::SetCommandLineOption(flag.name.c_str(), flag.value.c_str()).empty()) {
      fail(shown(flag.name) + " is given " + in_quotes(flag.value) + ", but takes " +
           expected_for(type));
    }
    if (type != "bool") continue;
    std::string value;
    gflags::GetCommandLineOption(flag.name.c_str(), &value);
    if (!switches.emplace(flag.name, value).second && switches[flag.name] != value) {
      fail(shown(flag.name) + " and " + shown("no_" + flag.name) + " contradict each other",
           "give one of them");
    }
  }
}

bool flag_is_set(const char* name) { return !gflags::GetCommandLineFlagInfoOrDie(name).is_default; }

bool asks_for_json(std::span<const std::string> args) {
  return std::any_of(args.begin(), args.end(), [](const std::string& arg) {
    return arg == "--json" || arg == "-json" || arg == "--json=true" || arg == "--json=1";
  });
}

std::array<double, 3> parse_triple(const std::string& flag, std::string_view text) {
  const auto refuse = [&](const std::string& why) {
    fail(shown(flag) + " takes three numbers, one for each channel, but " + why,
         "write it as in " + shown(flag) + " 0.485 0.456 0.406");
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
    fail(shown(flag) + " is " + in_quotes(text) + ", expected a percentage such as 2%");
  }
  return *percent / 100;
}

}  // namespace run_model
