// The flags of check_zoo, and all that it says about itself.
#pragma once

#include <cstdint>
#include <string>

#include "run_model/shared/manual.h"

namespace run_model {

// What the command line has set, under gflags' names; the table of the manual has the defaults.
struct CheckFlags {
  std::string artifacts, models, target, forms, pictures, shard;
  std::string golden, images, tolerances, labels;
  std::int32_t jobs = 0, threads = 0;
  double timeout = 0;
  std::string programs, targets;
  bool locate = false;
  std::string intermediates;
  bool verbose = false, json = false, allow_skip = false;
  std::string junit;
  bool worker = false;
};

extern CheckFlags check_flags;

extern const Manual kCheckManual;

}  // namespace run_model
