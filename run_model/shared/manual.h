// What a program says about itself, once: the table of its flags and the words around it. The
// command line is read by it, and --help, the manual page and the completion of bash are laid out
// from it.
//
// Words are plain text. A blank line ends a paragraph; lines that begin with a space are kept as
// they are, all others are filled. Neither this header nor the tables know gflags, so that a tool
// of the machine that builds can write the pages of programs for another one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <run_model/error.h>

namespace run_model {

// Where the value of a flag is kept; nothing for a flag that gflags or glog have by themselves.
using FlagStorage =
    std::variant<std::monostate, bool*, std::int32_t*, std::uint64_t*, double*, std::string*>;

// What a value is, for what bash offers.
enum class ValueKind { kOther, kFile, kFolder };

// Texts are null where there is nothing to say: that takes no relocation.
struct Flag {
  const char* name =
      nullptr;            // as gflags has it: print_time is written --print-time, or --print_time
  FlagStorage storage{};  // a switch is a bool
  const char* value = nullptr;  // what stands for the value in texts: "FILE"; null for a switch
  const char* standard =
      nullptr;                  // the default as a user would write it; null for none, 0 and false
  const char* words = nullptr;  // "{}" in them is the default; null for a flag that is not shown
  const char* more = nullptr;   // further sentences, for the manual page only
  const char* negated = nullptr;  // the words for --no-NAME; null where that is not shown
  const char* choices = nullptr;  // the values that it takes, "crop squash"; null for any
  bool list = false;              // several values in one argument, with commas between them
  int values = 1;                 // arguments that it takes
  const char* aliases = nullptr;  // other names, "o save_outputs"
  ValueKind kind = ValueKind::kOther;

  bool is_switch() const { return value == nullptr; }
  bool is_shown() const { return words != nullptr || negated != nullptr; }
};

struct FlagGroup {
  const char* heading = "";
  const char* note = nullptr;  // what is true of all of them
  const char* more = nullptr;  // for the manual page only
  std::span<const Flag> flags{};
};

// A way to call the program, a place for an argument, a file, a variable, a topic or an example.
struct Entry {
  const char* name = "";
  const char* words = "";
  const char* more = nullptr;  // for the manual page only
};

struct ExitCode {
  int code = 0;
  std::string_view words;
};

struct Manual {
  const char* program = "";
  const char* summary = "";      // one line without a full stop
  const char* description = "";  // what --help begins with
  const char* more = nullptr;    // for the manual page only
  std::span<const Entry> usages{};
  std::span<const Entry> arguments{};
  std::span<const FlagGroup> groups{};
  std::span<const Entry> topics{};           // after the flags
  const char* success = "done";              // exit code 0
  ErrorKind last_error = ErrorKind::kModel;  // of the kinds in the order of their exit codes
  std::span<const ExitCode> exit_codes{};    // besides, or instead
  std::span<const Entry> environment{};
  std::span<const Entry> files{};
  std::span<const Entry> examples{};  // the command, and what it is for
  const char* see_also = "";          // "check_zoo rpc_server", all in section 1
};

// The exit code that the programs document for a kind of failure: 1 to 8, none of them for success.
int exit_code(ErrorKind kind);

// All exit codes of a program, ascending.
std::vector<ExitCode> exit_codes(const Manual& manual);

// By gflags' name or an alias in gflags' spelling; null where there is none.
const Flag* find_flag(const Manual& manual, std::string_view name);

// "--print-time", "-o"; of gflags' name or an alias.
std::string flag_spelling(std::string_view name);

// "-o, --outputs FILE"
std::string flag_usage(const Flag& flag);

// The words with the default put in.
std::string flag_words(const Flag& flag, std::string_view words);

// The flag's other names in gflags' spelling, and the values that it takes; none for any.
std::vector<std::string> flag_aliases(const Flag& flag);
std::vector<std::string> flag_choices(const Flag& flag);

// "a b" as {"a", "b"}.
std::vector<std::string> split_words(std::string_view text);

// Paragraphs, and the lines of them that are kept as they are.
struct Block {
  bool kept = false;
  std::string text;  // of a paragraph one line, however long; of kept lines all of them
};
std::vector<Block> blocks(std::string_view text);

}  // namespace run_model
