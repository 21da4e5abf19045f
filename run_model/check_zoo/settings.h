// What check_zoo's command line asks for.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "run_model/shared/arguments.h"

namespace run_model {

// Every `count`-th artifact from the one at `index` on.
struct Shard {
  std::size_t index = 0;
  std::size_t count = 1;
};

struct CheckSettings {
  HelpRequest help = HelpRequest::kNone;  // anything else: nothing below has been read
  bool worker = false;  // check one artifact and print JSON lines, for another check_zoo
  std::filesystem::path artifacts;
  std::vector<std::filesystem::path> golden;
  std::filesystem::path images;
  std::filesystem::path tolerances;
  std::filesystem::path targets_file;  // empty: the list that the program was built with
  std::filesystem::path labels;        // empty: only the reference's own labels are shown
  std::filesystem::path programs;      // empty: beside this program
  std::filesystem::path intermediates;
  std::vector<std::string> models;   // empty: all that have golden cases
  std::vector<std::string> targets;  // empty: all that the zoo has artifacts of
  bool all_targets = false;
  std::vector<std::string> forms;
  std::vector<std::string> pictures;  // empty: all
  Shard shard;
  int jobs = 1;
  int threads = 1;
  double timeout = 120;  // seconds
  std::filesystem::path junit;
  bool json = false;
  bool verbose = false;
  bool allow_skip = false;
  bool locate = false;
  // The flags of the command line that say where files are and how to run, as they were given.
  std::vector<std::string> given;
};

// Sets gflags' flags from `args` (without the program's name) and checks that they make sense.
// Files that no flag names are looked for in the zoo's folder, then in artifacts/, then where an
// installed check_zoo has them. Throws Error(kUsage).
CheckSettings read_check_settings(std::span<const std::string> args);

// Flags that make a worker look at the same files: all that it needs but the ones that choose the
// artifact and the pictures.
std::vector<std::string> file_flags(const CheckSettings& settings);

// The path of the running program; empty where the system does not tell.
std::filesystem::path this_program();

}  // namespace run_model
