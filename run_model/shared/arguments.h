// Splits the command line into flags and positional arguments, and hands the flags to gflags.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "run_model/shared/manual.h"

namespace run_model {

// A flag as it was given, in gflags' spelling: "mean", "0.4,0.5,0.6".
struct FlagArgument {
  std::string name;
  std::string value;
};

struct Arguments {
  std::vector<std::string> positional;
  std::vector<FlagArgument> flags;
};

// Tells gflags of the flags of a program and their defaults. Once, before main(): what is told
// later is not put back by gflags::FlagSaver. Returns true.
bool register_flags(const Manual& manual);

// Understands one or two dashes, - or _ inside names, --name=value and --name value (also where the
// value is a negative number), --no-name and --noname for switches, separate values after flags
// that take several, aliases, and -- before arguments that begin with a dash. Flags and positional
// arguments may be mixed. `args` does not hold the program's name. Throws Error(kUsage) for a flag
// that does not exist, with the nearest one that does, or lacks its values.
Arguments split_arguments(const Manual& manual, std::span<const std::string> args);

// Sets the flags in gflags, in order. Throws Error(kUsage) naming a value that does not fit the
// flag's type or is none of its choices, and when a switch is given both ways.
void set_flags(const Manual& manual, const std::vector<FlagArgument>& flags);

enum class HelpRequest { kNone, kHelp, kFullHelp, kVersion };

// What the flags that every program has ask for.
HelpRequest help_request();

// Prints what is asked for, to standard output.
void print_help(const Manual& manual, HelpRequest request);

// Whether the command line has set the flag, be it to its default.
bool flag_is_set(const char* name);

// The flag's value as text.
std::string flag_value(const char* name);

// Whether --json is among the arguments, for reporting that they could not be understood.
bool asks_for_json(std::span<const std::string> args);

// "0.4,0.5,0.6" as three finite numbers. Throws Error(kUsage) naming the flag.
std::array<double, 3> parse_triple(const std::string& flag, std::string_view text);

// "2%", or "2", as 0.02: from 0 to 100 %. Throws Error(kUsage) naming the flag.
double parse_percentage(const std::string& flag, std::string_view text);

}  // namespace run_model
